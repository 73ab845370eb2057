"""Whether a deletion that the configuration permits can explain that a record is gone.

A limit permits to delete what is beyond it, and no more: ``log.retention.ms`` of an hour deletes nothing in a run of
seconds. The row of the log's new start behind the record (``log_start``, of a leader, or of any replica's retention)
gives the reason, and that reason must permit it:

* ``delete_records``: a DeleteRecords that had been sent by then (:mod:`checkers.views.delete_records_orders`) covers
  the record's offset: it lies before the requested offset, or, where that is the high watermark, before the leader's in
  that row. One that the leader refused covers nothing. One that was over before the record was sent does not cover that
  record: a leader had obeyed it, or the client had given up, and every broker that may have got it was restarted. A run
  without its orders permits any deletion.
* ``retention``: the record can have been as old as ``log.retention.ms`` (``.minutes``, ``.hours``; 7 days by default):
  the time from when its send began to that row, by how much the clock of the node that deleted it was ahead then, and
  how old a timestamp its sender may have given it; with LogAppendTime, by how much the clock of a leader that may have
  stamped it was behind. Or what the log still held can have been as large as ``log.retention.bytes``, if every record
  was as large as the workload makes them, for Kafka deletes a segment only while that much stays. In the random load of
  virtual time retention is an event of its own, which permits its node's deletion at that very time.

A record that is gone in the end is gone because of what made the last leader's log begin behind it since the record was
sent; where that was a follower that followed its leader's log start, because of what moved that one's. What another
node deleted excuses nothing, unless the last leader's log had begun there before the record was sent, so that it never
had the record.

Where no such row exists (the timeline is sampled, or a broker died before it could write it), any of these may be the
reason, on any node, at the time when a log was first seen to begin behind the record since its send; and an order until
it was last seen so, for another log may begin there already when the record is stored, after one that it is not in was
truncated. A configuration without settings permits any deletion.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from checkers.views.clock_steps import clock_step_ms
from checkers.views.conclusion import age, detail
from checkers.views.delete_records_orders import Order
from checkers.views.fault_journal import FaultJournal
from checkers.views.leadership import leaders, was_restarted
from checkers.views.recorded_load import recorded_load
from checkers.views.row import ALL
from checkers.views.sampled_timelines import LOOK_NS
from checkers.views.states import States
from faults import traits_of
from harness.anomaly import AnomalyKind, Retention
from harness.downtime import in_force
from harness.facts import StateInterval
from harness.findings import Finding
from harness.history.run_directory import Manifest
from harness.model import NodeId, TopicPartition, node_name
from harness.payload import FOREIGN_VALUE, encode

_WEEK_MS: Final = 7 * 24 * 3_600_000
_UNITS_MS: Final[Mapping[str, int]] = {
    "log.retention.ms": 1,
    "log.retention.minutes": 60_000,
    "log.retention.hours": 3_600_000,
}
"""The settings that limit a record's age, the one that wins first, and their units."""
_SIZE: Final = "log.retention.bytes"
_RETENTION, _DELETE_RECORDS = "retention", "delete_records"
"""Reasons for which a broker deletes by itself."""
_SLACK_MS: Final = 1_000
"""A client reads the clock for a record's timestamp before the row of its invocation: on a busy machine its
thread may be kept waiting for that long in between."""
_BATCH_BYTES: Final = 61 + 64
"""What a record takes beside its own fields when it is alone in its batch: the header of a batch of format v2, which is
larger than that of v0 and v1, and more than any codec adds to what it cannot compress."""
_FIELD_BYTES: Final = 5
"""What the length of a field takes at most, or a number in a record: a varint of 32 bits."""
_LATE_MS: Final = 10**15
"""A timestamp with more digits than any in use."""
_STAMPED: Final = ("log.message.timestamp.type", "LogAppendTime")


class _Removal(NamedTuple):
    """What made a log begin behind the record.

    Attributes:
        time_ns: by then it began there, at ``log_start``.
        row: the row with the reason, if any has it.
        ordered_by_ns: until when an order may have been sent that did so; None: ``time_ns``.
    """

    time_ns: int
    log_start: int
    row: StateInterval | None = None
    ordered_by_ns: int | None = None


def may_be_deleted(
    states: States, journal: FaultJournal, manifest: Manifest, finding: Finding, kind: AnomalyKind
) -> bool:
    """Whether something that the configuration permits can have deleted what a finding of ``kind`` misses."""
    if manifest.configuration.get("settings") is None or journal.orders is None:
        return True
    which = kind.excuses.retention
    sent_ns = (finding.since_ns or 0) if which is Retention.OF_A_SENT_RECORD else 0
    return any(
        _is_permitted(states, journal, manifest, finding, one, sent_ns=sent_ns)
        for one in _removals(states, finding, which, sent_ns)
    )


def _removals(states: States, finding: Finding, which: Retention, sent_ns: int) -> Sequence[_Removal]:
    """What removed the record, by the brokers' rows; without a reason in one, the first row that shows it gone.

    ``sent_ns``: when its send began; 0: that is not known.
    """
    place, offset = TopicPartition(finding.topic, finding.partition), finding.offset
    last = _Removal(max((one.end_ns for one in states.intervals), default=0), 0)
    if offset is None:
        return [last]
    if states.sampled:
        later = (one for one in states.deletions.get(place, ()) if one.time_ns + LOOK_NS >= sent_ns)
        known = [one for one in later if one.log_start > offset]
        if not known:
            return [last]
        first, latest = min(known), max(known)
        return [_Removal(first.time_ns + LOOK_NS, first.log_start, ordered_by_ns=latest.time_ns + LOOK_NS)]
    by_ns = finding.time_ns if which is Retention.BEFORE_THE_POLL and finding.time_ns is not None else math.inf
    last_led = states.final_leader(place)
    found = {
        node: _removal(states, place, intervals, offset, by_ns)
        for node, intervals in states.reported.get(place, {}).items()
    }
    known_removals = [one for one in found.values() if one is not None]
    if not known_removals:
        return [last]
    final = found.get(last_led) if which is Retention.OF_A_SENT_RECORD and last_led is not None else None
    if final is not None and final.time_ns >= sent_ns:
        return [final]
    return [one for one in known_removals if one.time_ns >= sent_ns]


def _removal(
    states: States, place: TopicPartition, intervals: Sequence[StateInterval], offset: int, by_ns: float
) -> _Removal | None:
    """What made a replica's log begin behind an offset, by then; None: it did not."""
    row, followed = _passed(intervals, offset, by_ns), set[StateInterval]()
    while row is not None and not _is_own(row):
        followed.add(row)
        led = states.reported[place].get(-1 if row.leader is None else row.leader, ())
        before = _passed(led, offset, row.begin_ns)
        if before is None or before in followed:
            return _Removal(row.begin_ns, row.log_start_offset or 0)
        row = before
    return None if row is None else _Removal(row.begin_ns, row.log_start_offset or 0, row)


def _passed(intervals: Sequence[StateInterval], offset: int, by_ns: float) -> StateInterval | None:
    """The row with which a log came to begin behind an offset that it had not come back before since; None: none."""
    known = [one for one in intervals if one.log_start_offset is not None and one.begin_ns <= by_ns]
    behind = [*takewhile(lambda one: (one.log_start_offset or 0) > offset, reversed(known))]
    recorded = (one for one in behind if one.kind == "log_start" and offset in _covered(one))
    return next(recorded, min(behind, key=age, default=None))


def _covered(one: StateInterval) -> range:
    return range(detail(one).get("from_offset", 0), one.log_start_offset or 0)


def _is_own(one: StateInterval) -> bool:
    """Whether the row records a deletion that its broker decided itself."""
    return one.kind == "log_start" and (one.role == "leader" or _reason(one) == _RETENTION)


def _reason(one: StateInterval | None) -> str | None:
    return None if one is None else detail(one).get("reason")


def _is_permitted(
    states: States, journal: FaultJournal, manifest: Manifest, finding: Finding, removal: _Removal, *, sent_ns: int
) -> bool:
    reason = _reason(removal.row)
    if reason != _RETENTION and _is_ordered(states, journal, finding, removal, sent_ns):
        return True
    if reason == _DELETE_RECORDS:
        return False
    if _is_retired(states, journal, finding, removal):
        return True
    return _may_be_old(states, journal, manifest, finding, removal, sent_ns=sent_ns) or _may_be_large(
        states, manifest, finding, removal
    )


def _is_ordered(states: States, journal: FaultJournal, finding: Finding, removal: _Removal, sent_ns: int) -> bool:
    """Whether an order covers the record, and was neither over before the record was sent nor sent after the row."""
    place, row = TopicPartition(finding.topic, finding.partition), removal.row
    mark = None if row is None else row.high_watermark
    orders = (journal.orders or {}).get(place, ())
    by_ns = removal.time_ns if removal.ordered_by_ns is None else removal.ordered_by_ns
    begun = [x for x in orders if not x.is_refused and x.invoked_ns <= by_ns]
    known = [(x, mark if x.before is None else x.before) for x in begun]
    covering = (x for x, end in known if end is None or finding.offset is None or finding.offset < end)
    return any(not _is_over(states, place, x, sent_ns) for x in covering)


def _is_over(states: States, place: TopicPartition, order: Order, by_ns: int) -> bool:
    """Whether an order could delete nothing any more: it is obeyed, or all who may have got it have been restarted."""
    if order.completed_ns is None or order.completed_ns >= by_ns:
        return False
    if order.is_obeyed:
        return True
    able = leaders(states, place, order.invoked_ns, order.completed_ns)
    able |= set() if order.node is None else {order.node}
    return bool(able) and all(was_restarted(states, node, order.completed_ns, by_ns) for node in able)


def _is_retired(states: States, journal: FaultJournal, finding: Finding, removal: _Removal) -> bool:
    """Whether the random load of virtual time had a node retire what its row deleted, or may have deleted.

    A sampled timeline need not have that row.
    """
    if states.sampled:
        return any(fault["kind"] == _RETENTION and fault["injected_ns"] is not None for fault in journal.excusing)
    nodes = states.reported.get(TopicPartition(finding.topic, finding.partition), {})
    rows = [removal.row] if removal.row is not None else [x for intervals in nodes.values() for x in intervals]
    retired = [one for one in rows if one.kind == "log_start" and _reason(one) == _RETENTION]
    return any(
        fault["kind"] == _RETENTION
        and node_name(NodeId(one.node)) in fault["nodes"]
        and in_force(fault["injected_ns"], fault["healed_ns"], one.begin_ns, one.begin_ns)
        and (finding.offset is None or finding.offset < (one.log_start_offset or 0))
        for one in retired
        for fault in journal.excusing
    )


def _may_be_old(
    states: States, journal: FaultJournal, manifest: Manifest, finding: Finding, removal: _Removal, *, sent_ns: int
) -> bool:
    settings = manifest.configuration["settings"]
    limit_ms = next(
        (int(settings[name]) * unit for name, unit in _UNITS_MS.items() if name in settings), _WEEK_MS
    )  # fmt: skip
    if limit_ms < 0:
        return False
    begun = [one.begin_ns for one in states.intervals]
    since_ns = sent_ns or min(begun, default=0)
    age_ms = (removal.time_ns - since_ns) / 1_000_000
    off_ms = _ahead_ms(journal, since_ns, removal) + _stamped_ms(
        states, journal, manifest, finding, removal, since_ns=since_ns
    )
    return age_ms + off_ms + _SLACK_MS >= limit_ms


def _ahead_ms(journal: FaultJournal, since_ns: int, removal: _Removal) -> float:
    """By how much the clock was ahead by which the record was found too old; of an unknown node, of any since then."""
    if removal.row is None:
        return max((0.0, *_offsets_ms(journal, None, since_ns, removal.time_ns)))
    return max((0.0, *_offsets_ms(journal, {removal.row.node}, removal.time_ns - _SLACK_MS * 1e6, removal.time_ns)))


def _stamped_ms(
    states: States, journal: FaultJournal, manifest: Manifest, finding: Finding, removal: _Removal, *, since_ns: int
) -> float:
    """By how much a record's timestamp may lie before its send, which is its sender's or its leader's."""
    name, appended = _STAMPED
    if manifest.configuration["settings"].get(name) != appended:
        return max((0.0, *_ages_ms(manifest, finding)))
    led = leaders(states, TopicPartition(finding.topic, finding.partition), since_ns, removal.time_ns)
    return max((0.0, *(-moved for moved in _offsets_ms(journal, led, since_ns, removal.time_ns))))


def _offsets_ms(journal: FaultJournal, nodes: set[int] | None, since_ns: float, until_ns: float) -> Iterator[float]:
    """By how much the clocks of these nodes (None: of all) were off at some time in between; negative: behind."""
    names = None if nodes is None else {node_name(NodeId(node)) for node in nodes}
    for fault in journal.excusing:
        intervals = traits_of(fault["kind"]).moves_clock and (names is None or not names.isdisjoint(fault["nodes"]))
        if intervals and in_force(fault["injected_ns"], fault["heal_proven_ns"], since_ns, until_ns):
            yield clock_step_ms(fault)


def _ages_ms(manifest: Manifest, finding: Finding) -> Iterator[float]:
    """The ages that the schedule gives to sends which may be the one that is gone, by its acks."""
    for step in manifest.configuration.get("scenario", {}).get("schedule") or ():
        send = step.get("send") or {}
        acks = send.get("acks", "all")
        if finding.acks in (None, ALL if acks == "all" else acks):
            yield 1_000 * float(send.get("age_s") or 0)


def _may_be_large(states: States, manifest: Manifest, finding: Finding, removal: _Removal) -> bool:
    """Whether the log can still have been as large as the limit without its first records."""
    limit = int(manifest.configuration["settings"].get(_SIZE, -1))
    place = TopicPartition(finding.topic, finding.partition)
    reported = [
        one
        for intervals in states.reported.get(place, {}).values()
        for one in intervals
        if one.begin_ns <= removal.time_ns
    ]
    rows = reported if removal.row is None else [removal.row]
    end = max((one.log_end_offset or 0 for one in rows), default=0)
    return 0 <= limit <= (end - removal.log_start) * _largest_bytes(manifest, place)


def _largest_bytes(manifest: Manifest, place: TopicPartition) -> int:
    """What a record of the workload takes in a log at most, in bytes."""
    load = recorded_load(manifest.configuration)
    size = 0 if load is None else load.largest_size
    record = encode(FOREIGN_VALUE, place.topic, place.partition, size, timestamp_ms=_LATE_MS)
    text = record.value or b""
    fields = [record.key, text, *(part for name, content in record.headers for part in (name, content or b""))]
    numbers = 5  # the record's length, attributes, timestamp, offset, and how many headers it has
    return _BATCH_BYTES + (numbers + len(fields)) * _FIELD_BYTES + sum(map(len, fields))
