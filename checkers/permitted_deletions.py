"""Whether what a configuration permits can have deleted a record, at the time at which it went.

A limit permits what is beyond it, and no more: an hour's ``log.retention.ms`` deletes nothing in a run of seconds. The
row that says that a log begins behind the record (``log_start``, of a leader, or of anybody's retention) gives the
reason, and that reason must permit it:

* ``delete_records``: a DeleteRecords that had been sent by then (:mod:`checkers.orders`) covers the record's offset: it
  lies before the offset that was asked for, or, where that is the high watermark, before the leader's in that row. One
  that the leader has refused covers nothing. A run that does not say which were sent permits any deletion.
* ``retention``: the record can have been as old as ``log.retention.ms`` (``.minutes``, ``.hours``; 7 days where nothing
  is written): the time from when its send began to that row, and by how much clocks and timestamps were off; or what
  the log still held can have been as large as ``log.retention.bytes``, if every record was as large as the workload
  makes them, for Kafka deletes a segment only while that much stays. In the random load of virtual time that is a
  trouble of its own, which permits what its node says at that very time to have deleted.

Where no such row tells (the timeline is sampled, a broker died before it could write it, a follower only did what its
leader had done), any of these may be the reason, and the time is when a log was first seen to begin behind the record.
A configuration that does not say which settings were in force permits any deletion.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from checkers.conclusion import RunFacts, detail
from harness.downtime import in_force
from harness.history import Manifest
from harness.model import NodeId, TopicPartition, node_name
from spark_analysis.answer import Finding
from spark_analysis.facts import Stretch

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
"""A client reads the clock for a record's timestamp before the row says that its send begins: on a busy machine its
thread may be kept waiting for that long in between."""
_OVERHEAD_BYTES: Final = 1_024
"""More than a record takes in a log beside what the workload asks for, alone in its batch."""
_OF_ONE_SEND: Final = frozenset({"lost-write", "vanished-read"})
"""The kinds whose ``since_ns`` is when the send of the record began that is gone."""


class _Removal(NamedTuple):
    """A log began at ``log_start``, behind the record, by then; ``row``: the row that says why, where one does."""

    time_ns: int
    log_start: int
    row: Stretch | None = None


def may_be_deleted(run: RunFacts, manifest: Manifest, finding: Finding) -> bool:
    """Whether something that the configuration permits can have deleted what a finding misses."""
    if manifest.configuration.get("settings") is None or run.orders is None:
        return True
    place = TopicPartition(finding.topic, finding.partition)
    return any(_is_permitted(run, manifest, finding, one) for one in _removals(run, place, finding.offset))


def _removals(run: RunFacts, place: TopicPartition, offset: int | None) -> Sequence[_Removal]:
    """What removed the record, in the brokers' words; where none says why, when it was first seen to be gone."""
    if offset is not None:
        rows = [one for ours in run.told.get(place, {}).values() for one in ours if _removes(one, offset)]
        if rows:
            return [_Removal(one.begin_ns, one.log_start_offset or 0, one) for one in rows]
    known = [one for one in run.deletions.get(place, ()) if offset is not None and one.log_start > offset]
    if known:
        return [_Removal(*min(known))]
    return [_Removal(max((one.end_ns for one in run.facts.stretches), default=0), 0)]


def _removes(one: Stretch, offset: int) -> bool:
    """Whether the row says that its broker, by itself, deleted what was at the offset."""
    if one.kind != "log_start" or (one.role != "leader" and _reason(one) != _RETENTION):
        return False
    return offset in range(detail(one).get("from_offset", 0), one.log_start_offset or 0)


def _reason(one: Stretch | None) -> str | None:
    return None if one is None else detail(one).get("reason")


def _is_permitted(run: RunFacts, manifest: Manifest, finding: Finding, removal: _Removal) -> bool:
    reason = _reason(removal.row)
    if reason != _RETENTION and _is_ordered(run, finding, removal):
        return True
    if reason == _DELETE_RECORDS:
        return False
    if _is_retired(run, finding, removal):
        return True
    return _may_be_old(run, manifest, finding, removal) or _may_be_large(run, manifest, finding, removal)


def _is_ordered(run: RunFacts, finding: Finding, removal: _Removal) -> bool:
    """Whether an order covers the record, which had been sent by the time of the row, where there is one."""
    orders = (run.orders or {}).get(TopicPartition(finding.topic, finding.partition), ())
    row = removal.row
    mark = None if row is None else row.high_watermark
    sent = [x for x in orders if not x.is_refused and (row is None or x.invoked_ns <= row.begin_ns)]
    known = [mark if one.before is None else one.before for one in sent]
    return any(before is None or finding.offset is None or finding.offset < before for before in known)


def _is_retired(run: RunFacts, finding: Finding, removal: _Removal) -> bool:
    """Whether the random load of virtual time had a node retire what it says that it deleted, or may have deleted."""
    nodes = run.told.get(TopicPartition(finding.topic, finding.partition), {})
    rows = [removal.row] if removal.row is not None else [x for ours in nodes.values() for x in ours]
    retired = [one for one in rows if one.kind == "log_start" and _reason(one) == _RETENTION]
    return any(
        fault["kind"] == _RETENTION
        and node_name(NodeId(one.node)) in fault["nodes"]
        and in_force(fault["injected_ns"], fault["healed_ns"], one.begin_ns, one.begin_ns)
        and (finding.offset is None or finding.offset < (one.log_start_offset or 0))
        for one in retired
        for fault in run.excusing
    )


def _may_be_old(run: RunFacts, manifest: Manifest, finding: Finding, removal: _Removal) -> bool:
    settings = manifest.configuration["settings"]
    limit_ms = next(
        (int(settings[name]) * unit for name, unit in _UNITS_MS.items() if name in settings), _WEEK_MS
    )  # fmt: skip
    if limit_ms < 0:
        return False
    begun = [one.begin_ns for one in run.facts.stretches]
    since_ns = finding.since_ns if finding.kind in _OF_ONE_SEND and finding.since_ns else min(begun, default=0)
    age_ms = (removal.time_ns - since_ns) / 1_000_000
    return age_ms + _off_ms(run, manifest) + _SLACK_MS >= limit_ms


def _off_ms(run: RunFacts, manifest: Manifest) -> float:
    """By how much the timestamp of a record may be off the clock of a broker, both of which may have been moved."""
    moved = [
        abs(json.loads(one["parameters"] or "{}").get("offset_ms", 0)) for one in run.excusing if _is_of_clock(one)
    ]
    return 2 * max(moved, default=0) + 1_000 * max(_ages_s(manifest), default=0.0)


def _is_of_clock(fault: Mapping[str, Any]) -> bool:
    return bool(fault["kind"] == "clock" and fault["injected_ns"] is not None)


def _ages_s(manifest: Manifest) -> Iterator[float]:
    """How old the records of a schedule's steps are made."""
    for step in manifest.configuration.get("scenario", {}).get("schedule") or ():
        if step.get("send"):
            yield abs(float(step["send"].get("age_s") or 0))


def _may_be_large(run: RunFacts, manifest: Manifest, finding: Finding, removal: _Removal) -> bool:
    """Whether the limit can still have been in the log when its beginning had gone."""
    limit = int(manifest.configuration["settings"].get(_SIZE, -1))
    place = TopicPartition(finding.topic, finding.partition)
    told = [one for ours in run.told.get(place, {}).values() for one in ours if one.begin_ns <= removal.time_ns]
    end = max((one.log_end_offset or 0 for one in told), default=0)
    largest = int(manifest.configuration.get("workload", {}).get("size", 0)) + _OVERHEAD_BYTES
    return 0 <= limit <= (end - removal.log_start) * largest
