"""What the groups of one partition of ``__consumer_offsets`` commit, at once or as a part of a transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import count
from typing import NamedTuple

from harness.coordination.append_errors import of_commit
from harness.coordination.classic_group import ClassicGroup
from harness.coordination.consumer_protocol import subscribed_topics
from harness.coordination.kept_groups import GROUP_BYTES, KeptGroup, KeptGroups
from harness.coordination.offsets import NOT_COMMITTED, Commits, CommittedOffset, GroupOffsets, OffsetRetention, stored
from harness.coordination.ports import GroupPorts, ProducerIdentity
from harness.error_codes import ErrorCode
from harness.model import TopicPartition

CONSUMER = "consumer"
"""The protocol type of groups of consumers; Kafka Connect has another one."""


class Committer(NamedTuple):
    """Who commits offsets: generation -1 and no member id for a consumer that assigns itself its partitions.

    ``generation`` is a member epoch in a group of the consumer protocol. Only from version 9 of OffsetCommit on can a
    request name one: it ``names_epochs``.
    """

    member_id: str
    instance_id: str | None
    generation: int
    names_epochs: bool = False


class GroupCommits:
    """The committed offsets of the groups.

    Args:
        ports: the broker.
        groups: whose they are.
        retention: how long they are kept.
        bugs: the injected ones of :data:`harness.replication.bugs.BUGS`.
    """

    def __init__(
        self, ports: GroupPorts, groups: KeptGroups, retention: OffsetRetention, bugs: Collection[str]
    ) -> None:
        self._ports = ports
        self._groups = groups
        self._retention = retention
        self._bugs = bugs
        self._pending: dict[int, set[str]] = {}  # by the id of a producer, the groups for which its transaction commits
        self._appends = count()  # the numbers of appends of commits, in the order of the log

    def replay(self, group_id: str, name: TopicPartition, committed: CommittedOffset, producer_id: int | None) -> None:
        """A commit is in the log, perhaps as a part of the transaction of a producer."""
        if producer_id is None:
            self._groups.made(group_id).offsets.keep(name, committed, next(self._appends))
        else:
            self._pend(group_id, producer_id, {name: committed})

    def transaction_ended(self, producer_id: int, *, commits: bool) -> None:
        """The marker of a producer's transaction is in the log."""
        for group_id in self._pending.pop(producer_id, ()):
            group = self._groups.get(group_id)
            if group is not None:
                group.offsets.unpend(producer_id, commits=commits)
                self._groups.free()

    def commit(
        self, group_id: str, who: Committer, offsets: dict[TopicPartition, CommittedOffset],
        committed: Callable[[int], None],
    ) -> None:  # fmt: skip
        """Store ``offsets``, which replace older ones, all or none; calls ``committed`` with the error."""
        self._once_certain(group_id, who, partial(self._commit, group_id, who, offsets, committed), committed)

    def _commit(
        self, group_id: str, who: Committer, offsets: dict[TopicPartition, CommittedOffset],
        committed: Callable[[int], None],
    ) -> None:  # fmt: skip
        error, kept = self._acceptable(group_id, who, offsets)
        if not kept:
            committed(error)
            return
        group = self._groups.made(group_id)
        group.offsets.store(kept)
        keep = partial(self._keep, group.offsets, kept, next(self._appends), lambda code: committed(error or code))
        self._ports.store(group.offsets.records(kept), keep)

    def commit_in_transaction(
        self, group_id: str, who: Committer, producer: ProducerIdentity, offsets: dict[TopicPartition, CommittedOffset],
        committed: Callable[[int], None],
    ) -> None:  # fmt: skip
        """Store ``offsets`` as a part of a producer's transaction, with whose marker they replace older ones."""
        serve = partial(self._commit_in_transaction, group_id, who, producer, offsets, committed)
        self._once_certain(group_id, who, serve, committed)

    def _commit_in_transaction(
        self, group_id: str, who: Committer, producer: ProducerIdentity, offsets: dict[TopicPartition, CommittedOffset],
        committed: Callable[[int], None],
    ) -> None:  # fmt: skip
        error, kept = self._acceptable(group_id, who, offsets, in_transaction=True)
        if error or not kept:
            committed(error)
            return
        records = self._groups.made(group_id).offsets.records(kept)
        self._pend(group_id, producer.producer_id, kept)

        def stored(code: int) -> None:
            group = self._groups.get(group_id)
            if code and group is not None:
                self._withdraw(group_id, group.offsets, producer.producer_id, kept)
            committed(of_commit(code))

        self._ports.store_in_transaction(records, producer, stored)

    def _once_certain(
        self, group_id: str, who: Committer, serve: Callable[[], None], committed: Callable[[int], None]
    ) -> None:
        """Serve a commit, now or when what is being stored about its sender is certain."""
        group = self._groups.get(group_id)
        if group is None or group.consumer is None:
            serve()
        else:
            group.consumer.once_certain(who.member_id, serve, lambda: committed(ErrorCode.NOT_COORDINATOR))

    def _pend(self, group_id: str, producer_id: int, commits: Commits) -> None:
        offsets, number = self._groups.made(group_id).offsets, next(self._appends)
        for name, one in commits.items():
            offsets.pend(producer_id, name, one, number)
        self._pending.setdefault(producer_id, set()).add(group_id)

    def _withdraw(self, group_id: str, offsets: GroupOffsets, producer_id: int, commits: Commits) -> None:
        """A commit in a transaction could not be stored."""
        self._groups.free()
        if not offsets.withdraw(producer_id, commits):
            return
        pending = self._pending.get(producer_id, set())
        pending.discard(group_id)
        if not pending:
            self._pending.pop(producer_id, None)

    def _acceptable(
        self, group_id: str, who: Committer, offsets: dict[TopicPartition, CommittedOffset], *,
        in_transaction: bool = False,
    ) -> tuple[int, Commits]:  # fmt: skip
        """Why a commit is refused, and what of it is to be stored."""
        group = self._groups.get(group_id)
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID, {}
        if group is not None:
            error = self._transaction_error(group, who) if in_transaction else self._commit_error(group, who)
        elif who.generation < 0:
            error = ErrorCode.NONE
        else:
            error = ErrorCode.GROUP_ID_NOT_FOUND if who.names_epochs else ErrorCode.ILLEGAL_GENERATION
        if error and (group is None or in_transaction or "refused_commits_stored" not in self._bugs):
            return error, {}
        kept = stored(self._timed(offsets), self._bugs)
        before = GroupOffsets(group_id) if group is None or in_transaction else group.offsets
        if not self._groups.has_room_for(before.growth(kept) + (GROUP_BYTES if group is None else 0)):
            return ErrorCode.INVALID_COMMIT_OFFSET_SIZE, {}
        return error, kept

    def _timed(self, offsets: dict[TopicPartition, CommittedOffset]) -> dict[TopicPartition, CommittedOffset]:
        """The offsets, each with the time of its end where that counts from the commit."""
        kept_ms = self._retention.retention_ms
        if not self._retention.after_commit:
            return offsets
        return {
            name: one if one.expires_ms >= 0 else one._replace(expires_ms=one.commit_ms + kept_ms)
            for name, one in offsets.items()
        }

    def _commit_error(self, group: KeptGroup, who: Committer) -> ErrorCode:
        """Why a commit outside of transactions is refused."""
        if isinstance(group.members, ClassicGroup):
            error = group.members.commit_error(who.member_id, who.instance_id, who.generation)
        else:
            error = group.members.commit_error(who.member_id, who.generation)
            if who.member_id in group.members.known.members and not who.names_epochs:
                error = ErrorCode.UNSUPPORTED_VERSION
        return ErrorCode.NONE if "commits_unfenced" in self._bugs else error

    def _transaction_error(self, group: KeptGroup, who: Committer) -> ErrorCode:
        """Why a commit in a transaction is refused; a producer need not say whose offsets it commits."""
        if (who.generation < 0 and not who.member_id) or "txn_commits_unfenced" in self._bugs:
            return ErrorCode.NONE
        if isinstance(group.members, ClassicGroup):
            return group.members.member_error(who.member_id, who.instance_id, who.generation)
        error = group.members.member_error(who.member_id, who.generation)
        return ErrorCode.ILLEGAL_GENERATION if error is ErrorCode.STALE_MEMBER_EPOCH else error

    def _keep(
        self, offsets: GroupOffsets, commits: Commits, number: int, committed: Callable[[int], None], error: int
    ) -> None:
        offsets.stored(commits)
        if error:
            self._groups.free()
        else:
            for name, one in commits.items():
                offsets.keep(name, one, number)
        committed(of_commit(error))

    def committed(
        self, group_id: str, partitions: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, CommittedOffset]:
        """What a group has committed for these partitions, -1 for nothing; None: all that it has committed."""
        group = self._groups.get(group_id)
        if group is None:
            return dict.fromkeys(partitions or (), NOT_COMMITTED)
        return group.offsets.asked(partitions)

    def fetch_error(self, group_id: str, member_id: str, epoch: int) -> ErrorCode:
        """Why a member in this epoch must not ask what its group has committed; a group of the classic protocol may."""
        group = self._groups.get(group_id)
        if group is None or isinstance(group.members, ClassicGroup):
            return ErrorCode.NONE
        return group.members.member_error(member_id, epoch)

    def is_stable(self, group_id: str, name: TopicPartition) -> bool:
        """Whether no open transaction commits for the partition, so that its offset is certain (KIP-447)."""
        group = self._groups.get(group_id)
        return group is None or group.offsets.is_stable(name) or "unstable_offsets_served" in self._bugs

    def delete_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition],
        deleted: Callable[[int, dict[TopicPartition, int]], None],
    ) -> None:  # fmt: skip
        """Delete what a group has committed for partitions of topics that it does not subscribe to.

        Calls ``deleted``, now or later, with the error of all, and the error of each partition.
        """
        group = self._groups.get(group_id)
        if group is None:
            deleted(ErrorCode.GROUP_ID_NOT_FOUND, {})
            return
        busy, is_foreign = busy_topics(group)
        if is_foreign:
            deleted(ErrorCode.NON_EMPTY_GROUP, {})
            return
        errors: dict[TopicPartition, int] = {
            name: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if busy is None or name.topic in busy else ErrorCode.NONE
            for name in partitions
        }
        free = [name for name, error in errors.items() if not error]
        gone = group.offsets.tombstones(free)
        if not gone:
            deleted(ErrorCode.NONE, errors)
            return

        def forget(error: int) -> None:
            for name in () if error else free:
                group.offsets.forget(name)
            self._groups.free()
            deleted(of_commit(error), errors)

        self._ports.store(gone, forget)


def busy_topics(group: KeptGroup) -> tuple[set[str] | None, bool]:
    """The topics that some member subscribes to, None: it is not known; and whether these are no consumers."""
    members = group.members
    if not isinstance(members, ClassicGroup):
        return members.subscribed, False
    is_foreign = bool(len(members.members)) and members.protocol_type != CONSUMER
    return subscribed_topics(one.metadata(members.protocol) for one in members.members), is_foreign
