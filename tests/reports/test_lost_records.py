"""Ranges of lost records: none twice, none forgotten."""

from __future__ import annotations

from collections.abc import Sequence

from harness.checker import Anomaly, Outcome, RunVerdict, Verdict
from reports.incidents import incidents
from reports.lost_records import lost, merged
from tests.reports.conftest import extents_of


def anomaly(
    offset: int | None, kind: str = "lost-write", verdict: Verdict = Verdict.VIOLATION, partition: int = 0
) -> Anomaly:
    value = None if offset is None else 100 + offset
    return Anomaly(kind, verdict, "ledger", partition, offset, value, 0, "why.")


def verdict_on(anomalies: Sequence[Anomaly], spans: Sequence[tuple[int, int]] = ()) -> RunVerdict:
    return RunVerdict("", Outcome.VIOLATION, "python", anomalies, extents=extents_of(anomalies, spans))


def test_overlapping_and_adjacent_ranges_are_one_and_a_hole_ends_it() -> None:
    assert list(merged([(7, 8), (1, 2), (2, 4), (3, 4)])) == [(1, 4), (7, 8)]


def test_a_record_both_lost_and_vanished_has_one_story() -> None:
    [incident] = incidents(verdict_on([anomaly(4), anomaly(4, "vanished-read"), anomaly(5, "vanished-read")]))
    found = lost(incident)
    assert [(s.offset, s.end_offset) for s in found] == [(4, 6)]
