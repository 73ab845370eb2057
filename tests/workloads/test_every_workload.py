"""What every workload has to do, whichever it is: the tests of a new one are here, and its page writes itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

import workloads
from checkers.verdicts.memory import decided
from harness import runner, scenario
from harness.checker import Outcome, RunVerdict, Verdict
from harness.runner.rehearsal import rehearse
from tests.workloads import page

SCENARIO: dict[str, Any] = {
    "id": "loaded",
    "title": "A leader dies under load",
    "source": "a test",
    "topics": [{"name": "ledger", "partitions": 2, "replication_factor": 3}],
    "cluster": {"settings": {"min.insync.replicas": 2}},
    "settle_s": 10,
    "schedule": [
        {"wait_s": 1},
        {"inject": {"fault": "kill", "node": "leader", "topic": "ledger", "partition": 0, "as": "gone"}},
        {"wait_s": 2},
        {"heal": "gone"},
        {"wait_s": 1},
    ],
}


class Loaded(NamedTuple):
    """A run under one workload, and what the checkers make of it."""

    history: Sequence[dict[str, Any]]
    verdict: RunVerdict


def loaded(name: str, target: str = "simulated", bugs: str = "") -> Loaded:
    """Run the workload's example while a leader dies."""
    text = yaml.safe_dump(SCENARIO | {"workload": {"name": name, **workloads.KINDS[name].example}})
    plan = runner.plan(scenario.parse(text), target, seed=1, overrides={"replication.bugs": bugs} if bugs else {})
    rehearsal = rehearse(plan)
    archive = rehearsal.archive
    tables = (archive.history, archive.tables["timeline"], archive.tables["replica_logs"])
    return Loaded(archive.history, decided(rehearsal.manifest, tables, archive.tables["faults"]))


@cache
def sound(name: str) -> Loaded:
    """The run on a sound cluster, which several tests look at."""
    return loaded(name)


IN_VIRTUAL_TIME = sorted(set(workloads.KINDS.own) - {"command", "share_groups"})
"""Those that the simulator runs; a user's program and share groups have tests of their own, on real processes."""


@pytest.fixture(params=IN_VIRTUAL_TIME)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_sound_cluster_passes(name: str) -> None:
    run = sound(name)
    assert (run.verdict.outcome, run.verdict.reasons) == (Outcome.PASS, [])
    assert run.verdict.counts["sends"] > 50


def test_a_cluster_that_acknowledges_too_early_is_detected(name: str) -> None:
    verdict = loaded(name, bugs="ack_on_append").verdict
    assert verdict.outcome is Outcome.VIOLATION
    assert "unjustified-ack" in {one.kind for one in verdict.anomalies if one.verdict is Verdict.VIOLATION}


def test_every_operation_is_invoked_once_and_completed_once(name: str) -> None:
    history = sound(name).history
    rows = [row for row in history if row["type"] == "invoke" and row["mop"] == 0]
    invoked = [(row["op"], row["topic"], row["partition"]) for row in rows]
    completed = {row["op"] for row in history if row["type"] != "invoke" and row["f"] != "close"}
    assert len(set(invoked)) == len(invoked)
    assert completed == {op for op, _, _ in invoked}


def test_a_process_has_one_operation_under_way(name: str) -> None:
    under_way: dict[int, int] = {}
    for row in sound(name).history:
        if row["type"] == "invoke":
            assert under_way.setdefault(row["process"], row["op"]) == row["op"]
        elif under_way.get(row["process"]) == row["op"]:
            del under_way[row["process"]]


def test_one_seed_leaves_one_history(name: str) -> None:
    assert loaded(name).history == sound(name).history


@pytest.mark.parametrize("workload", workloads.KINDS.own)
def test_its_parameters_are_those_that_are_written(workload: str) -> None:
    kind = workloads.KINDS[workload]
    parameters = workloads.parse(workload, kind.example)
    assert parameters.has_background_load
    assert parameters.model_dump(include=set(kind.example), mode="json") == dict(kind.example)


def test_the_page_is_what_the_parameters_say(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--rewrite"):
        page.DOCUMENT.write_text(page.document())
    assert page.document() == Path(page.DOCUMENT).read_text()
