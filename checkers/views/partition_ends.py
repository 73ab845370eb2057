"""How the partitions of one run ended: what the final read reached, and what the final leader's log holds."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property

from checkers.views.history import History
from checkers.views.replica_logs import ReplicaLogs
from checkers.views.row import Row
from checkers.views.timeline import Timeline
from harness.findings import PartitionEnd
from harness.model import TopicPartition


class PartitionEnds:
    """How every partition that clients used ended, by what they, the nodes and the logs say."""

    def __init__(self, history: History, timeline: Timeline, logs: ReplicaLogs) -> None:
        self.run = history.run
        self._history = history
        self._timeline = timeline
        self._logs = logs

    @cached_property
    def by_partition(self) -> dict[TopicPartition, PartitionEnd]:
        """How every partition that clients used ended."""
        used = sorted({*(send.where for send in self._history.sends), *(read.where for read in self._history.reads)})
        return {place: self._end(place, self._timeline.final_leaders.get(place)) for place in used}

    def _end(self, place: TopicPartition, leader: Row | None) -> PartitionEnd:
        reached = max(self._history.final_read.get(place, {}), default=-1) + 1
        bounds = ("node", "leader_epoch", "high_watermark", "log_end_offset", "log_start_offset")
        known = {name: leader[name] for name in bounds} if leader else {}
        polled, data_end = self._polled.get(place, 0), self._data_end(place, leader)
        final = self._history.final_readers.get(place)
        exhausted, short = (reached in final.exhausted_at, final.short) if final else (False, None)
        return PartitionEnd(
            self.run, *place, reached, **known, polled=polled, exhausted=exhausted, short=short, data_end=data_end
        )

    def _data_end(self, place: TopicPartition, leader: Row | None) -> int | None:
        """One more than the last offset below the watermark at which a read_committed consumer is given a record.

        None where the log is not known up to there.
        """
        if (
            leader is None
            or leader["high_watermark"] is None
            or not any(row["txn"] for row in self._history.operations)
        ):
            return None
        rows = [row for at in self._logs.logged.get(place, {}).values() for row in at if row["node"] == leader["node"]]
        below = [row for row in rows if row["offset"] < leader["high_watermark"]]
        offsets = [row["offset"] for row in below]
        if not below or max(offsets) + 1 != leader["high_watermark"] or len(below) != max(offsets) - min(offsets) + 1:
            return None
        markers: dict[int | None, list[tuple[int, str]]] = defaultdict(list)
        for row in sorted(below, key=lambda row: (row["offset"], row.get("control") or "")):
            if row.get("control") is not None and row.get("producer_id") is not None:
                markers[row["producer_id"]].append((row["offset"], row["control"]))
        given = (row["offset"] for row in below if row.get("control") is None and not _is_aborted(row, markers))
        return max(given, default=-1) + 1

    @cached_property
    def _polled(self) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = defaultdict(int)
        for read in self._history.reads:
            found[read.where] = max(found[read.where], read.offset + 1)
        return found

    def begins_behind(self, place: TopicPartition, offset: int, since_ns: int | None) -> bool:
        """Whether the partition's log begins behind ``offset`` in the end because its records were deleted on purpose.

        A deletion counts that was recorded since the record was sent; None: that is not known. In a sampled timeline
        any such log counts.
        """
        if offset >= (self.by_partition[place].log_start_offset or 0):
            return False
        since = (one for one in self._timeline.deletions.get(place, []) if since_ns is None or one.time_ns >= since_ns)
        return self._timeline.sampled or any(offset < one.log_start for one in since)

    def may_be_deleted(self, place: TopicPartition, offset: int | None, since_ns: int) -> bool:
        """Whether a record was deleted on purpose since it was sent.

        Of an unknown offset (None): whether anything has been deleted since then that may have been written since then.
        """
        if offset is not None:
            return self.begins_behind(place, offset, since_ns)
        start = self.by_partition[place].log_start_offset or 0
        if self._timeline.sampled:
            return start > 0
        since = [one.log_start for one in self._timeline.deletions.get(place, []) if one.time_ns >= since_ns]
        lowest = min((x.first_log_end for x in self._timeline.leaders_since(place, since_ns)), default=None)
        return lowest is not None and min(start, max(since, default=0)) > lowest

    def judged(self, place: TopicPartition, offset: int | None) -> bool:
        """Whether the final read would have delivered a record at ``offset``, had it been there.

        Below what the final read reached it would. Beyond, it would when it reached the final leader's high
        watermark, except for records between that watermark and the leader's log end: they are not yet readable.
        An unknown offset (None) may be anywhere, so nothing may be unread or unreadable.
        """
        end = self.by_partition[place]
        if offset is not None and offset < end.reached:
            return True
        if not self._history.was_read or not end.complete:
            return False
        assert end.high_watermark is not None
        unreadable = range(end.high_watermark, end.log_end_offset or 0)
        return not unreadable if offset is None else offset not in unreadable

    def missing(self, place: TopicPartition, offset: int | None, *, read: bool) -> bool:
        """Whether a record that the final read did not deliver is known not to be there.

        It is when it is :meth:`judged`. Where no broker's row shows how the partition ended, clients' rows must do: a
        record that was ``read`` before is gone when the final read went on until it was given nothing any more (see
        :mod:`checkers.views.final_reads`); one that never was is gone when a poll delivered a later one, for some poll
        should have been given it on the way.
        """
        if self.judged(place, offset):
            return True
        end = self.by_partition[place]
        if end.node is not None:
            return False
        return end.exhausted if read else offset is not None and offset < end.polled

    def final_records(self, place: TopicPartition, offset: int) -> list[Row]:
        """What the final leader's log holds at an offset, also without a value; none where it is not known."""
        end = self.by_partition.get(place)
        return [row for row in self._logs.logged.get(place, {}).get(offset, []) if end and row["node"] == end.node]

    def final_log(self, place: TopicPartition) -> list[Row]:
        """The workload's records in the final leader's log."""
        end = self.by_partition.get(place)
        held = [row for rows in self._logs.logged.get(place, {}).values() for row in rows if row["value"] is not None]
        return [row for row in held if end and row["node"] == end.node]


def _is_aborted(row: Row, markers: Mapping[int | None, Sequence[tuple[int, str]]]) -> bool:
    """Whether the next of its producer's ``markers`` is an abort; False for what is known to be in no transaction."""
    group = markers.get(row.get("producer_id"), ())
    at = bisect_right(group, row["offset"], key=lambda marker: marker[0])
    return row.get("transactional") is not False and at < len(group) and group[at][1] == "abort"
