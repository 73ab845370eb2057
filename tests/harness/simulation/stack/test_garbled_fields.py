"""A broker that garbles any field of a record is detected, whichever generation of the protocol it speaks.

The built-in brokers store record batches of format v2 in every generation, so every field is there. Of the newest
generation the matrix of bugs shows it.
"""

from __future__ import annotations

import pytest

from checkers.verdicts.memory import decided
from harness.checker import Outcome, Verdict
from harness.runner import plan
from harness.runner.rehearsal import rehearse
from harness.scenario import load
from tests.bench.healthy_runs import QUICK

GENERATIONS = ("0.10", "0.11", "2.1")

IN_LOGS = ("corrupt-read", "damaged-record")
GARBLED = {
    "garbled_before_crc": IN_LOGS,
    "key_garbled_before_crc": IN_LOGS,
    "header_garbled_before_crc": IN_LOGS,
    "timestamp_garbled_before_crc": IN_LOGS,
    "follower_drops_headers": ("damaged-record",),
    "fetch_garbles_a_key": ("corrupt-read",),
    "fetch_drops_headers": ("corrupt-read",),
}
"""Every bug that garbles a part of a record, and the kinds of anomaly by which it must be detected."""

LOAD = QUICK | {"chaos.faults": "[{fault: pause, node: follower}]", "workload.acks": "[all]"}


def kinds(generation: str, bugs: str) -> tuple[Outcome, set[str]]:
    """What a short run comes to, and the kinds of its violations."""
    overrides = LOAD | {"settings.min.insync.replicas": "2", "replication.bugs": bugs}
    played = rehearse(
        plan(load("random-chaos"), "simulated", generation, 1, duration_s=1.0, overrides=overrides)
    )  # fmt: skip
    tables = played.archive.tables
    rows = (played.archive.history, tables["timeline"], tables["replica_logs"])
    verdict = decided(played.manifest, rows, tables["faults"])
    return verdict.outcome, {one.kind for one in verdict.anomalies if one.verdict is Verdict.VIOLATION}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_brokers_that_garble_nothing_pass(generation: str) -> None:
    assert kinds(generation, "") == (Outcome.PASS, set())


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("bug", GARBLED)
def test_a_garbled_field_is_detected_on_every_generation(bug: str, generation: str) -> None:
    outcome, found = kinds(generation, bug)
    assert outcome is Outcome.VIOLATION
    assert set(GARBLED[bug]) <= found
