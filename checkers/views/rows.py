"""One run's tables as lists of rows, and the views of them that the references share.

This is the executable specification that the Spark engine is tested against: as plain as possible, not fast.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from checkers.views.deletions import Deletion, Start, deletions
from checkers.views.final_reads import Ended, ended, is_superseded, readers
from checkers.views.row import Read, Row, Send, detail, is_malformed, read_of, sends, where
from checkers.views.terms import Term, terms
from checkers.views.unclean_elections import End, LeaderStart, UncleanElection, unclean_elections
from harness.findings import PartitionEnd
from harness.model import TopicPartition


class Life(NamedTuple):
    """One incarnation of a node: its last row, and when the next incarnation wrote its first (None: never)."""

    last_ns: int
    next_ns: int | None


@dataclass(frozen=True)
class RunRows:
    """The tables of one run.

    Attributes:
        healed_ns: when the last fault was healed; None: there was none. sampled: whether the timeline consists of
        samples of the brokers' states (:mod:`checkers.views.sampled_timelines`). settled: whether the run promises to
        come to rest, and every fault was healed. lag_ns: how long a replica that lags may stay in the ISR; None: the
        run does not state it. min_isr: how large an ISR has to be for acks=all; None: the run does not state it.
        rotten: the logs that a fault has damaged unnoticed, see :mod:`checkers.views.rotten_logs`: partition and node.
        swapped: the partitions of which a fault has put records of another cluster into a log, see there.
    """

    run: str
    history: Sequence[Row] = field(default=())
    timeline: Sequence[Row] = field(default=())
    replica_logs: Sequence[Row] = field(default=())
    healed_ns: int | None = None
    sampled: bool = False
    settled: bool = False
    lag_ns: int | None = None
    min_isr: int | None = None
    rotten: frozenset[tuple[TopicPartition, int]] = frozenset()
    swapped: frozenset[TopicPartition] = frozenset()

    # -------------------------------------------------------------------------------------------------- history

    @cached_property
    def operations(self) -> list[Row]:
        """The rows of the history that are well formed; ``final`` only those since :attr:`final_since`."""
        begun = self.final_since
        return [{**row, "final": False} if is_superseded(row, begun) else row for row in self._well_formed]

    @cached_property
    def _well_formed(self) -> list[Row]:
        return [row for row in self.history if not is_malformed(row)]

    @cached_property
    def final_since(self) -> dict[TopicPartition, int]:
        """By partition, the row at which its final read begins."""
        return {place: ended.since for place, ended in self._final_readers.items()}

    @cached_property
    def _final_readers(self) -> dict[TopicPartition, Ended]:
        marks = {place: leader["high_watermark"] for place, leader in self.final_leaders.items()}
        return ended(readers(self._well_formed), marks)

    @cached_property
    def sends(self) -> list[Send]:
        """Every send."""
        return [send for (place, _), group in self._sent.items() for send in sends(place, group)]

    def sends_of(self, place: TopicPartition, value: int) -> list[Send]:
        """The sends of one value, which is one unless it was sent, or acknowledged, more than once."""
        group = self._sent.get((place, value))
        return list(sends(place, group)) if group else []

    @cached_property
    def resent(self) -> set[tuple[TopicPartition, int]]:
        """The values that are sent to a partition by several operations, or steps of one."""
        return {key for key, group in self._sent.items() if len({(row["op"], row["mop"]) for row in group}) > 1}

    @cached_property
    def _sent(self) -> dict[tuple[TopicPartition, int], list[Row]]:
        rows: dict[tuple[TopicPartition, int], list[Row]] = defaultdict(list)
        for row in self.operations:
            if row["f"] == "send":
                rows[where(row), row["value"]].append(row)
        return rows

    @cached_property
    def transactional(self) -> dict[tuple[TopicPartition, int], Send]:
        """The sends that belong to transactions; of one at several offsets any."""
        return {(send.where, send.value): send for send in self.sends if send.txn}

    @cached_property
    def marked(self) -> set[TopicPartition]:
        """The partitions to which transactions send, so that markers take offsets there."""
        return {send.where for send in self.sends if send.txn}

    def is_uncommitted(self, send: Send) -> bool:
        """Whether the send belongs to a transaction that failed, or is not known to be committed."""
        if not send.txn or send.type == "ok":
            return False
        return send.type == "fail" or not self.was_delivered(send)

    def was_delivered(self, send: Send) -> bool:
        """Whether a poll delivered the record; a record of a transaction, a read_committed poll."""
        return (send.where, send.value) in (self._committed_values if send.txn else self.read_values)

    @cached_property
    def _committed_values(self) -> set[tuple[TopicPartition, int | None]]:
        return {(read.where, read.value) for read in self.reads if read.read_committed}

    @cached_property
    def reads(self) -> list[Read]:
        """Every record that a poll delivered, in the order of the history."""
        polls = [r for r in self.operations if r["f"] == "poll" and r["type"] != "invoke"]
        rows = [r for r in polls if r["topic"] is not None]
        return [read_of(row) for row in sorted(rows, key=lambda r: int(r["index"]))]

    @cached_property
    def delivered(self) -> dict[tuple[TopicPartition, int, int | None], list[Read]]:
        """Every delivery of a record: by partition, offset and value."""
        found: dict[tuple[TopicPartition, int, int | None], list[Read]] = defaultdict(list)
        for read in self.reads:
            found[read.where, read.offset, read.value].append(read)
        return found

    @cached_property
    def final_read(self) -> dict[TopicPartition, dict[int, list[int | None]]]:
        """What the final read delivered: by partition and offset, the values in order."""
        found: dict[TopicPartition, dict[int, list[int | None]]] = defaultdict(lambda: defaultdict(list))
        for read in self.reads:
            if read.final:
                found[read.where][read.offset].append(read.value)
        return found

    @cached_property
    def read_in_the_end(self) -> dict[tuple[TopicPartition, int | None], int]:
        """The lowest offset at which the final read delivered a value: by partition and value."""
        found: dict[tuple[TopicPartition, int | None], int] = {}
        for place, offsets in self.final_read.items():
            for offset in sorted(offsets, reverse=True):
                found.update(((place, value), offset) for value in offsets[offset])
        return found

    def in_final_read(self, place: TopicPartition, offset: int, value: int) -> bool:
        """Whether the final read delivered ``value`` at ``offset``."""
        return value in self.final_read.get(place, {}).get(offset, [])

    def replacement(self, place: TopicPartition, offset: int) -> int | None:
        """The lowest value that the final read delivered at ``offset``; None for none."""
        return min((v for v in self.final_read.get(place, {}).get(offset, []) if v is not None), default=None)

    @cached_property
    def was_read(self) -> bool:
        """Whether a poll of the final read completed, empty or not."""
        return any(r["f"] == "poll" and r["type"] == "ok" and r["final"] for r in self.operations)

    # ------------------------------------------------------------------------------------------------- timeline

    @cached_property
    def terms(self) -> dict[TopicPartition, list[Term]]:
        """Every term of every replica: by partition; see :class:`Term`."""
        rows: dict[tuple[TopicPartition, int], dict[tuple[Any, ...], list[Row]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for row in self.timeline:
            if row["kind"] == "state" and row["topic"] is not None:
                key = (row["incarnation"], row["role"], row["leader_epoch"])
                rows[where(row), row["node"]][key].append(row)
        found: dict[TopicPartition, list[Term]] = defaultdict(list)
        for (place, _), groups in rows.items():
            found[place] += terms(groups.values())
        return found

    def leader_terms(self, place: TopicPartition) -> list[Term]:
        """The terms of leaders of ``place``, by epoch and then by time."""
        terms = [t for t in self.terms.get(place, []) if t.role == "leader"]
        return sorted(terms, key=lambda t: (t.leader_epoch, t.begin_ns, t.node))

    def leaders_during(self, send: Send) -> list[Term]:
        """The terms of leaders of the send's partition that overlap the send."""
        return self.leaders_between(send.where, send.invoked_ns, send.completed_ns)

    def leaders_between(self, place: TopicPartition, begin_ns: int, end_ns: int) -> list[Term]:
        """The terms of leaders of ``place`` that overlap the time; in a sampled timeline those that may.

        There a term may have begun before the first sample of it.
        """
        return [
            term
            for term in self.leader_terms(place)
            if (self.sampled or term.begin_ns <= end_ns) and (term.end_ns is None or term.end_ns >= begin_ns)
        ]

    def may_have_lacked(self, place: TopicPartition, leader_epoch: int, begin_ns: int, end_ns: int) -> bool:
        """Whether a leader of an earlier epoch than a record's, which need not have it, may have led in that time."""
        return any(term.leader_epoch < leader_epoch for term in self.leaders_between(place, begin_ns, end_ns))

    @cached_property
    def lives(self) -> dict[tuple[int, int], Life]:
        """Every incarnation of every node, by node and incarnation."""
        times: dict[tuple[int, int], list[int]] = defaultdict(list)
        for row in self.timeline:
            if row["kind"] != "final":
                times[row["node"], row["incarnation"]].append(row["time_ns"])
        keys = sorted(times)
        nexts = {a: min(times[b]) for a, b in pairwise(keys) if a[0] == b[0]}
        return {key: Life(max(times[key]), nexts.get(key)) for key in keys}

    @cached_property
    def log_starts(self) -> dict[TopicPartition, list[Start]]:
        """Where the replicas' logs started, by partition: every row that says so."""
        starts: dict[TopicPartition, list[Start]] = defaultdict(list)
        for row in self.timeline:
            if row["topic"] is not None and row["kind"] in ("state", "log_start"):
                starts[where(row)].append(_start(row))
        return starts

    @cached_property
    def deletions(self) -> dict[TopicPartition, list[Deletion]]:
        """What was deleted on purpose, by partition."""
        last_ns: dict[tuple[int, int], int] = defaultdict(int)
        for row in (r for r in self.timeline if r["kind"] != "final" or r["role"] != "offline"):
            life = row["node"], row["incarnation"]
            last_ns[life] = max(last_ns[life], row["time_ns"])
        return {place: deletions(found, last_ns) for place, found in self.log_starts.items()}

    def deleted_to(self, place: TopicPartition, until_ns: int) -> int:
        """Up to which offset (exclusive) was deleted on purpose by then; see :mod:`checkers.views.deletions`."""
        return max((x.log_start for x in self.deletions.get(place, []) if x.time_ns <= until_ns), default=0)

    def begins_behind(self, place: TopicPartition, offset: int, since_ns: int | None) -> bool:
        """Whether the partition's log begins behind ``offset`` in the end because its records were deleted on purpose.

        A deletion counts that was recorded since the record was sent; None: that is not known. In a sampled timeline
        any such log counts.
        """
        if offset >= (self.ends[place].log_start_offset or 0):
            return False
        since = (one for one in self.deletions.get(place, []) if since_ns is None or one.time_ns >= since_ns)
        return self.sampled or any(offset < one.log_start for one in since)

    @cached_property
    def unclean(self) -> dict[TopicPartition, list[tuple[int, int]]]:
        """The unclean elections: by partition, when and for which leader epoch."""
        found: dict[TopicPartition, list[tuple[int, int]]] = defaultdict(list)
        for row in self.timeline:
            if row["kind"] == "election" and row["topic"] is not None and detail(row).get("clean") is False:
                found[where(row)].append((row["time_ns"], row["leader_epoch"]))
        return found

    @cached_property
    def unclean_elections(self) -> dict[TopicPartition, list[UncleanElection]]:
        """What the unclean elections gave up, by partition."""
        return {
            place: list(unclean_elections(elections, self._leader_starts(place), self._log_ends.get(place, {})))
            for place, elections in self.unclean.items()
        }

    def _leader_starts(self, place: TopicPartition) -> list[LeaderStart]:
        return [LeaderStart(t.leader_epoch, t.begin_ns, t.node, t.first_log_end) for t in self.leader_terms(place)]

    @cached_property
    def _log_ends(self) -> dict[TopicPartition, dict[int, list[End]]]:
        rows = [r for r in self.timeline if r["kind"] == "state" and r["topic"] is not None]
        known = [r for r in rows if r["leader_epoch"] is not None and r["log_end_offset"] is not None]
        found: dict[TopicPartition, dict[int, list[End]]] = defaultdict(lambda: defaultdict(list))
        for row in sorted(known, key=lambda r: (r["incarnation"], r["sequence"])):
            end = row["log_end_offset"]
            found[where(row)][row["node"]].append(End(row["leader_epoch"], end, end))
        return found

    def given_up(self, place: TopicPartition, leader_epoch: int | None, offset: int | None, time_ns: int) -> bool:
        """Whether an unclean election of ``place`` gave up a record of ``leader_epoch`` at ``offset``.

        A record of unknown epoch (None) was there at ``time_ns``, so an election then or later may have given it up.
        See :mod:`checkers.views.unclean_elections`.
        """
        known = self.unclean_elections.get(place, [])
        if leader_epoch is None:
            return any(election.time_ns >= time_ns for election in known)
        return any(election.gave_up(leader_epoch, offset) for election in known)

    def thrown_back(self, place: TopicPartition, leader_epoch: int, offset: int, time_ns: int) -> bool:
        """Whether an unclean election of ``place`` until ``time_ns`` gave up a record.

        A sampled timeline does not show where the winner's log ended.
        """
        passed = None if self.sampled else offset
        known = self.unclean_elections.get(place, [])
        return any(election.time_ns <= time_ns and election.gave_up(leader_epoch, passed) for election in known)

    def cut_off(self, place: TopicPartition, offset: int, time_ns: int, leader_epoch: int | None = None) -> bool:
        """Whether an unclean election gave up everything from ``offset`` on that was written in ``leader_epoch``.

        Where the epoch is unknown (None): one at ``time_ns`` or later.
        """
        known = [
            election
            for election in self.unclean_elections.get(place, [])
            if election.log_end is None or election.log_end <= offset
        ]
        return any(x.time_ns >= time_ns if leader_epoch is None else x.leader_epoch > leader_epoch for x in known)

    @cached_property
    def ends(self) -> dict[TopicPartition, PartitionEnd]:
        """How every partition that clients used ended."""
        used = sorted({*(send.where for send in self.sends), *(read.where for read in self.reads)})
        return {place: self._end(place, self.final_leaders.get(place)) for place in used}

    @cached_property
    def final_leaders(self) -> dict[TopicPartition, Row]:
        """The row of the final leader, by partition."""
        leaders: dict[TopicPartition, Row] = {}
        for row in self.timeline:
            if row["kind"] == "final" and row["role"] == "leader":
                known = leaders.get(where(row))
                if known is None or _seniority(row) > _seniority(known):
                    leaders[where(row)] = row
        return leaders

    def _end(self, place: TopicPartition, leader: Row | None) -> PartitionEnd:
        reached = max(self.final_read.get(place, {}), default=-1) + 1
        bounds = ("node", "leader_epoch", "high_watermark", "log_end_offset", "log_start_offset")
        known = {name: leader[name] for name in bounds} if leader else {}
        polled, data_end = self._polled.get(place, 0), self._data_end(place, leader)
        final = self._final_readers.get(place)
        exhausted, short = (reached in final.exhausted_at, final.short) if final else (False, None)
        return PartitionEnd(
            self.run, *place, reached, **known, polled=polled, exhausted=exhausted, short=short, data_end=data_end
        )

    def _data_end(self, place: TopicPartition, leader: Row | None) -> int | None:
        """One more than the last offset below the watermark at which a read_committed consumer is given a record.

        None where the log is not known up to there.
        """
        if leader is None or leader["high_watermark"] is None or not any(row["txn"] for row in self.operations):
            return None
        rows = [row for at in self.logged.get(place, {}).values() for row in at if row["node"] == leader["node"]]
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
        for read in self.reads:
            found[read.where] = max(found[read.where], read.offset + 1)
        return found

    def judged(self, place: TopicPartition, offset: int | None) -> bool:
        """Whether the final read would have delivered a record at ``offset``, had it been there.

        Below what the final read reached it would. Beyond, it would when it reached the final leader's high
        watermark, except for records between that watermark and the leader's log end: they are not yet readable.
        An unknown offset (None) may be anywhere, so nothing may be unread or unreadable.
        """
        end = self.ends[place]
        if offset is not None and offset < end.reached:
            return True
        if not self.was_read or not end.complete:
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
        end = self.ends[place]
        if end.node is not None:
            return False
        return end.exhausted if read else offset is not None and offset < end.polled

    @cached_property
    def read_values(self) -> set[tuple[TopicPartition, int | None]]:
        """Every value that a poll delivered, wherever from its partition."""
        return {(read.where, read.value) for read in self.reads}

    @cached_property
    def final_values(self) -> set[tuple[TopicPartition, int | None]]:
        """Every value that the final read delivered, wherever from its partition."""
        return {(read.where, read.value) for read in self.reads if read.final}

    # --------------------------------------------------------------------------------------------- replica logs

    @cached_property
    def logged(self) -> dict[TopicPartition, dict[int, list[Row]]]:
        """The replicas' records: by partition and offset."""
        found: dict[TopicPartition, dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
        for row in self.replica_logs:
            found[where(row)][row["offset"]].append(row)
        return found

    def final_records(self, place: TopicPartition, offset: int) -> list[Row]:
        """What the final leader's log holds at an offset, also without a value; none where it is not known."""
        end = self.ends.get(place)
        return [row for row in self.logged.get(place, {}).get(offset, []) if end and row["node"] == end.node]

    def final_log(self, place: TopicPartition) -> list[Row]:
        """The workload's records in the final leader's log."""
        end = self.ends.get(place)
        held = [row for rows in self.logged.get(place, {}).values() for row in rows if row["value"] is not None]
        return [row for row in held if end and row["node"] == end.node]


def _is_aborted(row: Row, markers: Mapping[int | None, Sequence[tuple[int, str]]]) -> bool:
    """Whether the next of its producer's ``markers`` is an abort; False for what is known to be in no transaction."""
    group = markers.get(row.get("producer_id"), ())
    at = bisect_right(group, row["offset"], key=lambda marker: marker[0])
    return row.get("transactional") is not False and at < len(group) and group[at][1] == "abort"


def _start(row: Row) -> Start:
    return Start(
        row["node"], row["incarnation"], row["sequence"], row["time_ns"], row["kind"], row["role"], row["leader_epoch"],
        row["log_start_offset"] or 0, detail(row).get("reason"),
    )  # fmt: skip


def _seniority(row: Row) -> tuple[int, int, int]:
    return row["leader_epoch"], row["time_ns"], row["node"]
