"""Incidents: one root cause each, with what follows folded under it, and nothing counted twice or forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from checkers.registry import KINDS
from checkers.verdicts.judge import _because
from harness.checker import Anomaly, LossStory, Outcome, RunVerdict, Verdict
from harness.findings import Finding
from reports import glossary
from reports.incidents import _FOLLOWS, incidents, pieces
from tests.reports.conftest import extents_of, lost_write


def verdict_on(
    anomalies: Sequence[Anomaly], spans: Sequence[tuple[int, int]] = (), losses: Sequence[LossStory] = ()
) -> RunVerdict:
    extents = extents_of(anomalies, spans)
    counts = {kind: sum(x.count for x in extents if x.kind == kind) for kind in {a.kind for a in anomalies}}
    return RunVerdict("", Outcome.VIOLATION, "python", anomalies, extents=extents, losses=losses, counts=counts)


def follows(kind: str, offset: int, partition: int = 0) -> Anomaly:
    why = f"something. It follows from the lost-write of value 1 at offset {offset}."
    return Anomaly(kind, Verdict.VIOLATION, "ledger", partition, offset, 1, 0, why)


def loss(offset: int, end: int, fault: str | None, partition: int = 0) -> LossStory:
    times = (0, 1, None, None)
    return LossStory("ledger", partition, offset, end, 0, -1, 0, *times, (), (), None, fault, None, "it went.")


def test_a_loss_in_three_partitions_after_one_fault_is_one_incident_and_what_follows_is_folded_under_it() -> None:
    lost = [lost_write(4, partition=p) for p in range(3)]
    sides = [follows(kind, 4, p) for kind in ("vanished-read", "hw-regression", "lineage-break") for p in range(3)]
    stories = [loss(4, 5, "frozen", p) for p in range(3)]
    [one] = incidents(verdict_on([*lost, *sides], losses=stories))
    assert (one.kind, one.count, [p.partition for p in one.partitions]) == ("lost-write", 3, [0, 1, 2])
    assert {kind: len(found) for kind, found in one.by_kind().items()} == {
        "vanished-read": 3,
        "hw-regression": 3,
        "lineage-break": 3,
    }


def test_losses_after_different_faults_are_different_incidents_the_larger_first() -> None:
    told = verdict_on([lost_write(4)], [(10, 15)], [loss(4, 5, "cut"), loss(10, 15, "crash")])
    first, second = incidents(told)
    assert [(one.count, one.number) for one in (first, second)] == [(5, 1), (1, 2)]
    assert first.stories[0].fault == "crash"


def test_what_is_only_counted_follows_where_its_kind_may_and_its_offsets_are_the_same() -> None:
    lost = verdict_on([lost_write(0)], [(1, 300)])
    side = verdict_on([follows("vanished-read", 0)], [(1, 300)])
    told = replace(lost, anomalies=[*lost.anomalies, *side.anomalies], extents=[*lost.extents, *side.extents])
    [one] = incidents(told)
    assert (one.count, sum(piece.count for piece in one.by_kind()["vanished-read"])) == (300, 300)


def test_an_anomaly_that_follows_from_nothing_is_an_incident_of_its_own() -> None:
    alone = Anomaly("duplicate", Verdict.VIOLATION, "ledger", 0, 9, 1, 0, "twice.")
    assert [one.kind for one in incidents(verdict_on([lost_write(4), alone]))] == ["lost-write", "duplicate"]


def test_the_gravest_come_first_and_the_excused_are_known_to_be() -> None:
    found = incidents(verdict_on([lost_write(1, Verdict.WEAK), lost_write(2, partition=1)]))
    assert [(one.verdict, one.is_excused) for one in found] == [(Verdict.VIOLATION, False), (Verdict.WEAK, True)]


def test_ranges_that_the_verdict_only_counts_are_those_of_its_stories() -> None:
    told = verdict_on([lost_write(4)])
    extent = replace(told.extents[0], count=11, more_ranges=2, in_more_ranges=10)
    stories = [loss(4, 5, "cut"), loss(20, 24, "cut"), loss(30, 36, "cut")]
    found = list(pieces(replace(told, extents=[extent], losses=stories)))
    assert [(p.offset, p.end_offset, p.count) for p in found] == [(4, 5, 1), (20, 24, 4), (30, 36, 6)]


def test_ranges_that_the_verdict_only_counts_and_no_story_tells_of_are_one_piece_without_an_end() -> None:
    told = verdict_on([lost_write(4)])
    extent = replace(told.extents[0], count=11, more_ranges=2, in_more_ranges=10)
    first, rest = pieces(replace(told, extents=[extent]))
    assert first.is_listed
    assert (rest.is_listed, rest.offset, rest.ranges, rest.count) == (False, 5, 2, 10)


def test_every_anomaly_is_in_one_incident() -> None:
    lost = [lost_write(offset, partition=offset % 3) for offset in range(0, 90, 2)]
    told = verdict_on([*lost, *(follows("vanished-read", a.offset or 0, a.partition or 0) for a in lost)])
    found = incidents(told)
    assert sum(p.count for one in found for p in (*one.roots, *one.consequences)) == 90


def test_the_sentence_about_a_cause_is_the_checkers() -> None:
    cause = Finding("r", "lost-write", "ledger", 0, offset=41, value=7)
    found = _FOLLOWS.search(f"Why.{_because([(cause, lost_write(41))])}")
    assert found
    assert found.groups() == ("lost-write", "41")


def test_every_kind_has_a_promise() -> None:
    assert all(glossary.promise(kind).endswith(".") for kind in KINDS)
    assert glossary.promise("incomplete-leader").endswith("not only as many.")
