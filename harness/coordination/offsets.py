"""What a group has committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from harness.coordination.ports import LogRecord
from harness.coordination.records import OffsetCommitKey, OffsetCommitValue, offset_record
from harness.model import NO_EPOCH, NO_OFFSET, Offset, TopicPartition

_OVERHEAD_BYTES = 512


class CommittedOffset(NamedTuple):
    """Where a group goes on: the next offset, the leader epoch of the record before it, and what it adds itself.

    ``commit_ms`` is when, by the coordinator's wall clock, and ``expires_ms`` until when it is kept; -1: as long as its
    group's are (:mod:`harness.coordination.expiry`).
    """

    offset: Offset
    leader_epoch: int
    metadata: str
    commit_ms: int
    expires_ms: int = -1


class OffsetRetention(NamedTuple):
    """How long committed offsets are kept; times in milliseconds.

    Attributes:
        retention_ms: ``offsets.retention.minutes``.
        check_interval_ms: ``offsets.retention.check.interval.ms``.
        after_commit: whether the time counts from the commit: the knob ``offset_expiry``.
    """

    retention_ms: int
    check_interval_ms: int
    after_commit: bool


class _Appended(NamedTuple):
    """A commit, and the number of its append."""

    committed: CommittedOffset
    number: int


Commits = Mapping[TopicPartition, CommittedOffset]

NOT_COMMITTED = CommittedOffset(NO_OFFSET, NO_EPOCH, "", 0)


class GroupOffsets:
    """The committed offsets of one group.

    Of two commits to a partition the one that is later in the log counts, also if the marker of its transaction is not:
    so a coordinator that reads the log finds the same, compacted or not. Appends are numbered in the order of the log.

    Attributes:
        size: about how many bytes they take.
    """

    def __init__(self, group: str) -> None:
        self.size = 0
        self._group = group
        self._kept: dict[TopicPartition, _Appended] = {}
        self._pending: dict[int, dict[TopicPartition, _Appended]] = {}  # by the id of a producer
        self._storing: Counter[TopicPartition] = Counter()

    def __bool__(self) -> bool:
        return bool(self._kept or self._pending)

    def __iter__(self) -> Iterator[tuple[TopicPartition, CommittedOffset]]:
        return ((name, one.committed) for name, one in sorted(self._kept.items()))

    def store(self, names: Iterable[TopicPartition]) -> None:
        """Commits for these partitions are being stored."""
        self._storing.update(list(names))

    def stored(self, names: Iterable[TopicPartition]) -> None:
        """Commits for these partitions are stored, or could not be."""
        self._storing -= Counter(list(names))

    def keep(self, name: TopicPartition, committed: CommittedOffset, number: int) -> None:
        """Replace what was committed for a partition by append ``number``, unless that was a later one."""
        if name in self._kept and self._kept[name].number > number:
            return
        self.forget(name)
        self._kept[name] = _Appended(committed, number)
        self.size += self._size(name, committed)

    def forget(self, name: TopicPartition) -> None:
        """Delete what was committed for a partition."""
        known = self._kept.pop(name, None)
        if known is not None:
            self.size -= self._size(name, known.committed)

    def pend(self, producer_id: int, name: TopicPartition, committed: CommittedOffset, number: int) -> None:
        """Keep what append ``number`` commits for a partition in a transaction that has not ended."""
        pending = self._pending.setdefault(producer_id, {})
        if name in pending:
            self.size -= self._size(name, pending[name].committed)
        pending[name] = _Appended(committed, number)
        self.size += self._size(name, committed)

    def withdraw(self, producer_id: int, commits: Commits) -> bool:
        """Forget what could not be stored; whether the same transaction has committed nothing else."""
        pending = self._pending.get(producer_id, {})
        for name, committed in commits.items():
            if name in pending and pending[name].committed is committed:
                del pending[name]
                self.size -= self._size(name, committed)
        if not pending:
            self._pending.pop(producer_id, None)
        return not pending

    def unpend(self, producer_id: int, *, commits: bool) -> None:
        """The transaction of a producer has ended: keep what it has committed, or forget it."""
        for name, one in self._pending.pop(producer_id, {}).items():
            self.size -= self._size(name, one.committed)
            if commits:
                self.keep(name, *one)

    def is_stable(self, name: TopicPartition) -> bool:
        """Whether no transaction that has not ended commits for the partition."""
        return not any(name in pending for pending in self._pending.values())

    def is_settled(self, name: TopicPartition) -> bool:
        """Whether no commit for the partition is being stored, and no transaction commits for it."""
        return self.is_stable(name) and not self._storing[name]

    def growth(self, commits: Commits) -> int:
        """How many bytes more the offsets would take with ``commits``."""
        before = sum(self._size(name, self._kept[name].committed) for name in commits if name in self._kept)
        return sum(self._size(name, committed) for name, committed in commits.items()) - before

    def asked(self, partitions: Iterable[TopicPartition] | None) -> dict[TopicPartition, CommittedOffset]:
        """The offsets of these partitions; None: of all that the group has committed to."""
        names = sorted(self._kept) if partitions is None else partitions
        return {name: self._kept[name].committed if name in self._kept else NOT_COMMITTED for name in names}

    def records(self, commits: Commits) -> list[LogRecord]:
        """The records of ``commits``."""
        return [
            offset_record(OffsetCommitKey(self._group, *name), OffsetCommitValue(*one))
            for name, one in sorted(commits.items())
        ]

    def tombstones(self, partitions: Iterable[TopicPartition] | None = None) -> list[LogRecord]:
        """The records that delete what was committed for these partitions; None: for all."""
        names = set(self._kept if partitions is None else partitions) & self._kept.keys()
        return [offset_record(OffsetCommitKey(self._group, *name), None) for name in sorted(names)]

    def _size(self, name: TopicPartition, one: CommittedOffset) -> int:
        return len(self._group) + len(name.topic) + len(one.metadata) + _OVERHEAD_BYTES


def stored(commits: dict[TopicPartition, CommittedOffset], bugs: Collection[str]) -> Commits:
    """What a coordinator stores of ``commits``: all, but for its injected bugs."""
    if "commit_forgotten" in bugs:
        return {}
    if "commits_swapped" in bugs:
        return dict(zip(commits, reversed(commits.values()), strict=True))
    return commits
