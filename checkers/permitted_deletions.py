"""Whether what a configuration permits can have deleted a record by the time at which it was gone.

A limit permits what is beyond it, and no more: an hour's ``log.retention.ms`` deletes nothing in a run of seconds. So a
deletion is permitted when

* a DeleteRecords of the schedule, or of a random fault, covers the record's offset; or
* the record can have been as old as ``log.retention.ms`` (``.minutes``, ``.hours``; 7 days where nothing is written):
  the time from when its send began to when a log began behind it, and by how much clocks and timestamps were off; or
* the log can have been as large as ``log.retention.bytes``, if every record was as large as the workload makes them.

Where the configuration does not say which settings were in force, any deletion is permitted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from checkers.conclusion import RunFacts
from harness.history import Manifest
from harness.model import TopicPartition
from spark_analysis.answer import Finding

_WEEK_MS: Final = 7 * 24 * 3_600_000
_UNITS_MS: Final[Mapping[str, int]] = {
    "log.retention.ms": 1,
    "log.retention.minutes": 60_000,
    "log.retention.hours": 3_600_000,
}
"""The settings that limit a record's age, the one that wins first, and their units."""
_SIZE: Final = "log.retention.bytes"
_SLACK_MS: Final = 1_000
"""How far clocks of one machine, read one after the other, may be apart."""
_OVERHEAD_BYTES: Final = 1_024
"""More than a record takes in a log beside what the workload asks for, alone in its batch."""
_OF_ONE_SEND: Final = frozenset({"lost-write", "vanished-read"})
"""The kinds whose ``since_ns`` is when the send of the record began that is gone."""


def may_be_deleted(run: RunFacts, manifest: Manifest, finding: Finding) -> bool:
    """Whether something that the configuration permits can have deleted what a finding misses."""
    settings = manifest.configuration.get("settings")
    if settings is None or any(fault["kind"] in ("retention", "delete_records") for fault in run.faults):
        return True
    place = TopicPartition(finding.topic, finding.partition)
    orders = () if run.wanted is None else run.wanted.orders.get(place, ())
    if any(one.before is None or finding.offset is None or finding.offset < one.before for one in orders):
        return True
    return _may_be_old(run, manifest, settings, finding) or _may_be_large(run, manifest, settings, place)


def _may_be_old(run: RunFacts, manifest: Manifest, settings: Mapping[str, Any], finding: Finding) -> bool:
    limit_ms = next(
        (int(settings[name]) * unit for name, unit in _UNITS_MS.items() if name in settings), _WEEK_MS
    )  # fmt: skip
    if limit_ms < 0:
        return False
    begun = [one.begin_ns for one in run.facts.stretches]
    since_ns = finding.since_ns if finding.kind in _OF_ONE_SEND and finding.since_ns else min(begun, default=0)
    age_ms = (_gone_ns(run, finding) - since_ns) / 1_000_000
    return age_ms + _off_ms(run, manifest) + _SLACK_MS >= limit_ms


def _gone_ns(run: RunFacts, finding: Finding) -> int:
    """When a log began behind the record; the end of the run where no row says so, or the offset is not known."""
    place = TopicPartition(finding.topic, finding.partition)
    known = run.deletions.get(place, ()) if finding.offset is not None else ()
    gone = [one.time_ns for one in known if one.log_start > (finding.offset or 0)]
    return min(gone, default=max((one.end_ns for one in run.facts.stretches), default=0))


def _off_ms(run: RunFacts, manifest: Manifest) -> float:
    """By how much the timestamp of a record may be off the clock of a broker, both of which may have been moved."""
    moved = [abs(json.loads(one["parameters"] or "{}").get("offset_ms", 0)) for one in run.faults if _is_of_clock(one)]
    return 2 * max(moved, default=0) + 1_000 * max(_ages_s(manifest), default=0.0)


def _is_of_clock(fault: Mapping[str, Any]) -> bool:
    return bool(fault["kind"] == "clock" and fault["injected_ns"] is not None)


def _ages_s(manifest: Manifest) -> Iterator[float]:
    """How old the records of a schedule's steps are made."""
    for step in manifest.configuration.get("scenario", {}).get("schedule") or ():
        if step.get("send"):
            yield abs(float(step["send"].get("age_s") or 0))


def _may_be_large(run: RunFacts, manifest: Manifest, settings: Mapping[str, Any], place: TopicPartition) -> bool:
    limit = int(settings.get(_SIZE, -1))
    ends = [one.log_end_offset or 0 for ours in run.told.get(place, {}).values() for one in ours]
    largest = int(manifest.configuration.get("workload", {}).get("size", 0)) + _OVERHEAD_BYTES
    return 0 <= limit <= max(ends, default=0) * largest
