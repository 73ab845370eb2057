"""The leader epoch cache: the start offset of each leader epoch in a log, by which followers truncate.

Follows Kafka's ``LeaderEpochFileCache`` as of 2.0.1 and later (KIP-101, KIP-279, KAFKA-7415, KAFKA-10706); a knob has
the older answer about epochs before the first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from operator import attrgetter
from typing import Literal

from harness.model import NO_EPOCH, NO_OFFSET, Offset
from harness.replication.messages import EpochEnd, EpochEntry

UNDEFINED = EpochEnd(NO_EPOCH, NO_OFFSET)
"""The answer of a log that does not know where an epoch ends."""


class LeaderEpochCache:
    """The epochs of one log, each with the offset at which it starts; strictly increasing in both.

    Attributes:
        latest: the newest epoch; ``NO_EPOCH`` when there is none.

    Args:
        entries: as read from ``leader-epoch-checkpoint``, oldest first; it drops entries that a later one
            contradicts.
        below_first: the answer about an epoch older than all entries (the knob ``lookup_below_first``).
    """

    __slots__ = ("_below_first", "_entries", "latest")

    def __init__(
        self,
        entries: Iterable[EpochEntry] = (),
        below_first: Literal["undefined", "start_of_first"] = "start_of_first",
    ) -> None:
        self._entries: list[EpochEntry] = []
        self._below_first = below_first
        self.latest = NO_EPOCH
        for epoch, start_offset in entries:
            self.assign(epoch, start_offset)

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        """All entries, oldest first."""
        return tuple(self._entries)

    def assign(self, leader_epoch: int, start_offset: Offset) -> bool:
        """Record that ``leader_epoch`` starts at ``start_offset``, unless it is known to start before.

        Entries at the end that contradict the new one (an epoch or a start not below its own) are dropped.

        Returns:
            Whether anything changed.
        """
        assert leader_epoch >= 0
        assert start_offset >= 0
        if self.latest == leader_epoch and self._entries[-1].start_offset <= start_offset:
            return False
        while self._entries and (
            self._entries[-1].leader_epoch >= leader_epoch or self._entries[-1].start_offset >= start_offset
        ):
            self._entries.pop()
        self._entries.append(EpochEntry(leader_epoch, start_offset))
        self.latest = leader_epoch
        return True

    def truncate_from_end(self, end_offset: Offset) -> bool:
        """Forget every epoch that starts at or after ``end_offset``, the log's (exclusive) new end.

        Returns:
            Whether anything changed.
        """
        before = len(self._entries)
        while self._entries and self._entries[-1].start_offset >= end_offset:
            self._entries.pop()
        self.latest = self._entries[-1].leader_epoch if self._entries else NO_EPOCH
        return len(self._entries) != before

    def truncate_from_start(self, start_offset: Offset) -> bool:
        """Forget every epoch that ends at or before ``start_offset``, where the log begins from now on.

        The epoch that it lies in starts there now, and so does an epoch without records at the log's very end.

        Returns:
            Whether anything changed.
        """
        below = bisect_right(self._entries, start_offset, key=attrgetter("start_offset"))
        if not below or (below == 1 and self._entries[0].start_offset == start_offset):
            return False
        self._entries[:below] = [EpochEntry(self._entries[below - 1].leader_epoch, start_offset)]
        return True

    def clear(self) -> bool:
        """Forget everything. Returns whether there was anything."""
        known = bool(self._entries)
        self._entries.clear()
        self.latest = NO_EPOCH
        return known

    def end_offset_for(self, requested: int, log_end_offset: Offset) -> EpochEnd:
        """The largest epoch ``<= requested`` and where it ends (exclusive): ``OffsetForLeaderEpoch``'s answer.

        The latest epoch ends at ``log_end_offset``. An epoch older than all known ones is answered as itself,
        ending where the first known one starts, if at all; one newer than all known ones, or negative, is
        :data:`UNDEFINED`.
        """
        latest = self.latest
        if requested == latest and requested >= 0:
            return EpochEnd(requested, log_end_offset)
        if requested < 0 or requested > latest:
            return UNDEFINED
        following = bisect_right(self._entries, requested, key=attrgetter("leader_epoch"))
        if following:
            return EpochEnd(self._entries[following - 1].leader_epoch, self._entries[following].start_offset)
        return (
            EpochEnd(requested, self._entries[0].start_offset) if self._below_first == "start_of_first" else UNDEFINED
        )
