"""Which records of a partition were deleted on purpose, and by when.

A leader deletes records on DeleteRecords, and each replica by its own retention. A follower whose log starts later
because its leader's does deletes nothing itself: the leader must have recorded the deletion before. Where the log of a
new leader starts proves nothing, for that replica may have lost the records before. So a deletion is

* a ``log_start`` row of a leader, or one of retention;
* one of a follower, where no leader of its epoch wrote a later row or was alive at the end: that leader may have died
  before it wrote its own row;
* the first row that a life of a broker writes about a replica, where the log starts higher than in its lives before:
  the broker may have died while it deleted.

A sampled timeline has no such rows: wherever a log is seen to begin, what came before may have been deleted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple


class Start(NamedTuple):
    """Where a replica's log starts, according to a row of its broker, which is of kind ``state`` or ``log_start``.

    ``reason``: why it starts there, where the row has it.
    """

    node: int
    incarnation: int
    sequence: int
    time_ns: int
    kind: str
    role: str | None
    leader_epoch: int | None
    log_start: int
    reason: str | None


class Deletion(NamedTuple):
    """By that time everything below ``log_start`` had been deleted."""

    time_ns: int
    log_start: int


def deletions(starts: Iterable[Start], last_ns: Mapping[tuple[int, int], int]) -> list[Deletion]:
    """What was deleted of one partition.

    Args:
        starts: where its replicas' logs start, by their brokers' rows.
        last_ns: until when each life of a node is known to have lasted, by node and incarnation.
    """
    ordered = sorted(starts)
    return [*_recorded(ordered, last_ns), *_found(one for one in ordered if one.kind == "state")]


def _recorded(starts: list[Start], last_ns: Mapping[tuple[int, int], int]) -> Iterator[Deletion]:
    led: dict[int | None, int] = defaultdict(int)
    for one in starts:
        if (one.kind, one.role) == ("state", "leader") and one.leader_epoch is not None:
            led[one.leader_epoch] = max(led[one.leader_epoch], last_ns[one.node, one.incarnation])
    for one in starts:
        by_itself = one.role == "leader" or one.reason == "retention"
        if one.kind == "log_start" and (by_itself or led[one.leader_epoch] <= one.time_ns):
            yield Deletion(one.time_ns, one.log_start)


def _found(states: Iterable[Start]) -> Iterator[Deletion]:
    most: dict[int, int] = defaultdict(int)
    life: dict[int, int] = {}
    for one in states:
        if life.get(one.node) != one.incarnation and one.log_start > most[one.node]:
            yield Deletion(one.time_ns, one.log_start)
        life[one.node] = one.incarnation
        most[one.node] = max(most[one.node], one.log_start)
