"""Anomalies in rows and ranges: none twice, none forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.checker import Anomaly, Outcome, RunVerdict, Verdict
from reports.losses import lost, lost_unlisted, merged, sections
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


def test_few_anomalies_are_single_rows_even_when_consecutive() -> None:
    (section,) = sections(verdict_on([anomaly(1), anomaly(2)]), rows=2)
    assert [s.offset for s in section.stretches] == [1, 2]
    assert section.hidden == 0


def test_many_anomalies_are_ranges_and_those_not_shown_are_counted() -> None:
    found = [*(anomaly(o) for o in range(50)), *(anomaly(o) for o in range(60, 80, 2))]
    (section,) = sections(verdict_on(found), rows=5)
    assert section.count == 60
    assert len(section.stretches) == 5
    assert (section.hidden, section.hidden_ranges) == (60 - sum(s.count for s in section.stretches), 6)
    assert section.hidden == 6


def test_ranges_are_of_all_anomalies_and_not_only_of_the_examples() -> None:
    told = verdict_on([anomaly(1)], [(1, 300), (500, 501)])
    told = replace(told, counts={"lost-write": 300})
    (section,) = sections(told, rows=5)
    assert (section.count, section.examples, section.hidden) == (300, 1, 0)
    assert [(s.offset, s.end_offset, s.count) for s in section.stretches] == [(1, 300, 299), (500, 501, 1)]
    assert [s.example is None for s in section.stretches] == [False, True]


def test_anomalies_without_an_offset_are_counted_together() -> None:
    (section,) = sections(verdict_on([anomaly(None), anomaly(None), anomaly(4)]), rows=2)
    assert [(s.offset, s.count) for s in section.stretches] == [(4, 1), (None, 2)]


def test_the_gravest_verdict_comes_first_and_lost_records_before_the_rest() -> None:
    weak = anomaly(1, "duplicate", Verdict.WEAK)
    found = sections(verdict_on([weak, anomaly(1, "duplicate-of-mine"), anomaly(1, "lost-write")]), rows=5)
    assert [s.kind for s in found] == ["lost-write", "duplicate-of-mine", "duplicate"]


def test_a_record_both_lost_and_vanished_has_one_story() -> None:
    found = lost(
        verdict_on([anomaly(4), anomaly(4, "vanished-read"), anomaly(5, "vanished-read"), anomaly(9, "duplicate")])
    )
    assert [(s.offset, s.end_offset) for s in found] == [(4, 6)]


def test_ranges_that_are_gone_and_that_the_verdict_does_not_list_are_counted() -> None:
    told = verdict_on([anomaly(4)])
    told = replace(told, extents=[replace(told.extents[0], more_ranges=7, in_more_ranges=9)])
    assert lost_unlisted(told) == 7
