"""Anomalies in rows and ranges: none twice, none forgotten."""

from __future__ import annotations

from harness.checker import Anomaly, Verdict
from reports.losses import lost, sections, stretches


def anomaly(
    offset: int | None, kind: str = "lost-write", verdict: Verdict = Verdict.VIOLATION, partition: int = 0
) -> Anomaly:
    value = None if offset is None else 100 + offset
    return Anomaly(kind, verdict, "ledger", partition, offset, value, 0, "why.")


def test_consecutive_offsets_are_one_stretch_and_a_hole_ends_it() -> None:
    found = stretches([anomaly(o) for o in (3, 1, 2, 7)])
    assert [(s.offset, s.end_offset) for s in found] == [(1, 4), (7, 8)]


def test_stretches_do_not_mix_partitions_or_verdicts() -> None:
    weak = anomaly(2, verdict=Verdict.WEAK)
    assert len(stretches([anomaly(1), weak, anomaly(3), anomaly(2, partition=1)])) == 4


def test_anomalies_without_an_offset_stand_alone() -> None:
    assert len(stretches([anomaly(None), anomaly(None)])) == 2


def test_few_anomalies_are_single_rows_even_when_consecutive() -> None:
    (section,) = sections([anomaly(1), anomaly(2)], rows=2)
    assert [s.offset for s in section.stretches] == [1, 2]
    assert section.hidden == 0


def test_many_anomalies_are_ranges_and_those_not_shown_are_counted() -> None:
    (section,) = sections([*(anomaly(o) for o in range(50)), *(anomaly(o) for o in range(60, 80, 2))], rows=5)
    assert section.count == 60
    assert len(section.stretches) == 5
    assert section.hidden == 60 - sum(len(s.anomalies) for s in section.stretches) == 6


def test_the_gravest_verdict_comes_first_and_lost_records_before_the_rest() -> None:
    found = sections(
        [anomaly(1, "duplicate", Verdict.WEAK), anomaly(1, "duplicate-of-mine"), anomaly(1, "lost-write")], rows=5
    )
    assert [s.kind for s in found] == ["lost-write", "duplicate-of-mine", "duplicate"]


def test_a_record_both_lost_and_vanished_has_one_story() -> None:
    found = lost([anomaly(4), anomaly(4, "vanished-read"), anomaly(5, "vanished-read"), anomaly(9, "duplicate")])
    assert [(s.offset, s.end_offset, len(s.anomalies)) for s in found] == [(4, 6, 2)]
