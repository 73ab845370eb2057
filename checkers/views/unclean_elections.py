"""What unclean elections gave up, and what they did not.

An unclean election makes a replica the leader that may lack committed records. It gives up what that replica did not
have when it became leader: records at or beyond its log end at that time, and records of another lineage, at offsets at
which it already had something else. It does not explain a later loss of what the replica had.

The timeline has each replica's log end, and the leader epoch that the replica was in at the time. A replica gets a
record of leader epoch e only after e has begun. So what it had before it was in e, and has not cut since, is not of e;
everything that it got later it got from the leader of that time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple


class LeaderStart(NamedTuple):
    """A broker became leader. Ordered by epoch, then by time."""

    leader_epoch: int
    begin_ns: int
    node: int
    log_end: int


class End(NamedTuple):
    """A replica's log ends in its rows of one leader epoch: the lowest and the last."""

    leader_epoch: int
    lowest: int
    last: int


class UncleanElection(NamedTuple):
    """One unclean election.

    Attributes:
        taken: the epoch of its first leader, the election's own or a later one; None: there was no leader.
        log_end: that leader's log end when it began; None with ``taken``.
        before: that replica's log ends in the epochs before, in the order of its rows.
    """

    time_ns: int
    leader_epoch: int
    taken: int | None
    log_end: int | None
    before: tuple[End, ...]

    def gave_up(self, leader_epoch: int | None, offset: int | None) -> bool:
        """Whether it gave up a record of that epoch at that offset; where any of these is unknown, whether it may have.

        A leader that has not heard of the election may still serve such a record, and acknowledge more of them.
        """
        if leader_epoch is not None and self.leader_epoch <= leader_epoch:
            return False
        if leader_epoch is None or offset is None or self.log_end is None:
            return True
        return offset >= self.log_end or offset < had_before(self.before, leader_epoch, self.log_end)


def had_before(ends: Sequence[End], leader_epoch: int, log_end: int) -> int:
    """Up to which offset (exclusive) a replica had its log before it was in ``leader_epoch``, and kept it.

    ``ends``: its log ends until its log ended at ``log_end``.
    """
    earlier = [one for one in ends if one.leader_epoch < leader_epoch]
    since = [one.lowest for one in ends if one.leader_epoch >= leader_epoch]
    newest = max((one.leader_epoch for one in earlier), default=None)
    had = [one.last for one in earlier if one.leader_epoch == newest]
    return min([had[-1] if had else 0, *since, log_end])


def unclean_elections(
    elections: Iterable[tuple[int, int]], starts: Sequence[LeaderStart], ends: Mapping[int, Sequence[End]]
) -> Iterator[UncleanElection]:
    """What each unclean election gave up.

    Args:
        elections: when, and for which leader epoch.
        starts: of all leaders of the partition.
        ends: by node, its log ends, in the order of its rows.
    """
    for time_ns, leader_epoch in elections:
        winner = min((one for one in starts if one.leader_epoch >= leader_epoch), default=None)
        if winner is None:
            yield UncleanElection(time_ns, leader_epoch, None, None, ())
            continue
        before = tuple(one for one in ends.get(winner.node, ()) if one.leader_epoch < winner.leader_epoch)
        yield UncleanElection(time_ns, leader_epoch, winner.leader_epoch, winner.log_end, before)
