"""What unclean elections gave up, and what they did not.

An unclean election makes a replica the leader that may lack what was committed. It gives up what that replica did not
have when it took office: records at or beyond the end of its log then (the *fork*), and records of another lineage, at
offsets at which it already had something else. What it had is as safe as ever: losing that later is nobody's choice.

Of a replica's log the timeline says where it ended, and in which leader epoch the replica was by then. A record of
leader epoch e cannot be got before e has begun. So what a replica had before it heard of e, and has not cut since, is
not of e; everything that it got later is of the lineage of whoever led then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple


class Office(NamedTuple):
    """A leader's taking office, in the order in which they count: by epoch, then by time."""

    leader_epoch: int
    begin_ns: int
    node: int
    log_end: int


class End(NamedTuple):
    """Where a replica's log ended while it was in a leader epoch: at the least, and the last that it said."""

    leader_epoch: int
    lowest: int
    last: int


class Fork(NamedTuple):
    """One unclean election.

    Attributes:
        taken: the epoch in which the first took office: that one or a later one; None: nobody did.
        log_end: where that one's log ended then; None with ``taken``.
        before: where it had ended in the epochs before, in the order in which the replica said so.
    """

    time_ns: int
    leader_epoch: int
    taken: int | None
    log_end: int | None
    before: tuple[End, ...]

    def gave_up(self, leader_epoch: int | None, offset: int | None) -> bool:
        """Whether it gave up a record of that epoch at that offset.

        A leader that has not heard of the election may still serve such a record, and acknowledge more of them. Where
        nobody knows the epoch or the offset, or nobody took office, it may have.
        """
        if leader_epoch is not None and self.leader_epoch <= leader_epoch:
            return False
        if leader_epoch is None or offset is None or self.log_end is None:
            return True
        return offset >= self.log_end or offset < had_before(self.before, leader_epoch, self.log_end)


def had_before(ends: Sequence[End], leader_epoch: int, log_end: int) -> int:
    """Up to which offset (exclusive) a replica had its log before it heard of ``leader_epoch``, and kept it.

    ``ends``: what it said until its log ended at ``log_end``.
    """
    earlier = [one for one in ends if one.leader_epoch < leader_epoch]
    since = [one.lowest for one in ends if one.leader_epoch >= leader_epoch]
    newest = max((one.leader_epoch for one in earlier), default=None)
    had = [one.last for one in earlier if one.leader_epoch == newest]
    return min([had[-1] if had else 0, *since, log_end])


def forks(
    elections: Iterable[tuple[int, int]], offices: Sequence[Office], ends: Mapping[int, Sequence[End]]
) -> Iterator[Fork]:
    """What each unclean election gave up.

    Args:
        elections: when, and for which leader epoch.
        offices: every taking of office in the partition.
        ends: by node, where its log ended, in the order in which it said so.
    """
    for time_ns, leader_epoch in elections:
        winner = min((one for one in offices if one.leader_epoch >= leader_epoch), default=None)
        if winner is None:
            yield Fork(time_ns, leader_epoch, None, None, ())
            continue
        before = tuple(one for one in ends.get(winner.node, ()) if one.leader_epoch < winner.leader_epoch)
        yield Fork(time_ns, leader_epoch, winner.leader_epoch, winner.log_end, before)
