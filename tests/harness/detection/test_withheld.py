"""Evidence is withheld as a run of a lower tier lacks it: such a run is judged as of that tier, and sound ones pass."""

from __future__ import annotations

import json
from functools import cache

import pytest

from checkers.verdicts.memory import decided
from harness.checker import EvidenceTier, Outcome
from harness.detection.by_tier import TIERS, ByTier, measure_tiers, tiers_from_json, tiers_to_json
from harness.detection.matrix import Matrix, Score
from harness.detection.table import chosen
from harness.detection.trial import Cell, Left, Trial, left_behind
from harness.detection.withheld import withheld
from harness.model import CORE, STACK

SOUND = Trial("pass")
FOUND = Trial("violation", ("lost-write",))
OPEN = Trial("inconclusive")
CELLS = (Cell(CORE, "single", "kill"), Cell(STACK, "single", "none"))


@cache
def sound(cell: Cell) -> Left:
    return left_behind(cell, 501, "", {})


@pytest.mark.parametrize("cell", CELLS, ids=str)
@pytest.mark.parametrize("tier", EvidenceTier)
def test_a_sound_run_passes_by_the_evidence_of_each_tier(tier: EvidenceTier, cell: Cell) -> None:
    left = sound(cell)
    verdict = decided(*withheld(tier, left.manifest, left.tables), left.faults)
    assert (verdict.outcome, verdict.evidence) == (Outcome.PASS, tier)


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_what_a_client_is_told_a_leader_knew_at_that_time(cell: Cell) -> None:
    left = sound(cell)
    _, (history, told, logs) = withheld(EvidenceTier.METADATA, left.manifest, left.tables)
    knew = {
        (row["time_ns"], row["topic"], row["partition"], row["leader"], row["leader_epoch"], row["high_watermark"])
        for row in left.tables[1]
        if row["role"] == "leader"
    }
    columns = ("time_ns", "topic", "partition", "leader", "leader_epoch", "high_watermark")
    assert told
    assert {tuple(row[name] for name in columns) for row in told} <= knew
    assert {row["kind"] for row in told} == {"metadata"}
    assert (history, logs) == (left.tables[0], ())


def test_replica_logs_come_with_how_each_replica_ended_and_not_with_who_led() -> None:
    left = sound(CELLS[0])
    manifest, (_, seen, logs) = withheld(EvidenceTier.LOGS, left.manifest, left.tables)
    assert manifest.guarantees["timeline"] == "logs"
    assert {row["kind"] for row in seen} == {"metadata", "final"}
    ends = [row for row in seen if row["kind"] == "final"]
    assert {(row["topic"], row["partition"], row["node"]) for row in ends} == {
        (row["topic"], row["partition"], row["node"]) for row in logs
    }
    assert all((row["role"], row["leader"], row["isr"]) == ("offline", None, None) for row in ends)
    assert logs == left.tables[2]


def test_samples_leave_out_what_lay_between_two_looks_and_the_isr_of_brokers() -> None:
    left = sound(CELLS[0])
    _, (_, seen, logs) = withheld(EvidenceTier.SAMPLES, left.manifest, left.tables)
    whole = left.tables[1]
    assert 0 < sum(row["kind"] == "state" for row in seen) < sum(row["kind"] == "state" for row in whole)
    assert not [row for row in seen if row["kind"] == "state" and row["isr"] is not None and row["node"] != 100]
    for kind in ("election", "isr", "final"):
        assert [row["time_ns"] for row in seen if row["kind"] == kind] == [
            row["time_ns"] for row in whole if row["kind"] == kind
        ]
    assert logs == left.tables[2]


def test_a_seed_counts_whose_control_passes_by_all_evidence_and_accused_ones_are_counted() -> None:
    counted = ByTier(CELLS[0])
    clients, metadata, logs, samples, brokers = TIERS
    counted.add(dict.fromkeys(TIERS, FOUND), dict.fromkeys(TIERS, FOUND))
    assert counted == ByTier(CELLS[0])
    counted.add(
        {clients: OPEN, metadata: FOUND, logs: SOUND, samples: SOUND, brokers: SOUND},
        {clients: SOUND, metadata: OPEN, logs: OPEN, samples: FOUND, brokers: FOUND},
    )
    assert counted.tried == 1
    assert dict(+counted.found) == {"samples": 1, "brokers": 1}
    assert dict(+counted.doubted) == {"metadata": 1, "logs": 1}
    assert (dict(+counted.alarms), dict(+counted.unsound)) == ({"metadata": 1}, {"clients": 1})
    assert tiers_from_json(json.loads(json.dumps(tiers_to_json({"some": counted})))) == {"some": counted}


def test_a_bug_that_only_the_brokers_show_is_found_by_no_lower_tier_and_one_that_clients_show_by_all() -> None:
    (bug,) = chosen("ack_on_append")
    matrix = Matrix({bug.name: {CELLS[0]: Score(tried=4, found=2, first=0)}}, {})
    found = measure_tiers([bug], matrix, 6, 1, lambda done, of: None)[bug.name]
    assert found.tried == 6
    assert 0 < found.found["clients"] < found.found["brokers"]
    assert not found.alarms.total()


def test_what_the_matrix_has_not_found_is_not_tried_again() -> None:
    (bug,) = chosen("ack_on_append")
    assert not measure_tiers([bug], Matrix({bug.name: {CELLS[0]: Score(tried=4)}}, {}), 6, 1, lambda done, of: None)
