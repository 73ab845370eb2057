from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import yaml

from checkers.memory import decided
from harness import runner, scenario
from harness.checker import Outcome, RunVerdict, Verdict
from harness.errors import UsageError
from harness.runner.rehearsal import Rehearsal, rehearse
from tests.workloads.test_every_workload import SCENARIO

LOAD = {"rate": 40, "producers": 2, "processors": 3, "timeout_s": 3, "session_timeout_s": 1, "poll_timeout_s": 1,
        "stays_s": 3, "late": 0.05, "aborted": 0.3}  # fmt: skip

SHOWN = {
    "committed_marked_aborted": "unprocessed",
    "aborted_marked_committed": "aborted-read",
    "transaction_end_unstored": "lost-write",
    "commit_forgotten": "lost-commit",
    "first_fetch_skips_a_batch": "unprocessed",
}


def played(load: dict[str, Any], bugs: str = "", generation: str = "4.1") -> Rehearsal:
    """Ten seconds of processors that come and go, in which the leader of partition 0 dies."""
    document = {**SCENARIO, "workload": {"name": "consume_transform_produce", **LOAD, **load}}
    document["schedule"] = [*SCENARIO["schedule"], {"wait_s": 6}]
    overrides = {"replication.bugs": bugs} if bugs else {}
    parsed = scenario.parse(yaml.safe_dump(document))
    return rehearse(runner.plan(parsed, "simulated", generation, seed=1, overrides=overrides))


def judged(run: Rehearsal) -> RunVerdict:
    tables = run.archive.tables
    return decided(run.manifest, (run.archive.history, tables["timeline"], tables["replica_logs"]), tables["faults"])


@pytest.mark.parametrize("bug", SHOWN)
def test_a_broken_cluster_is_found(bug: str) -> None:
    verdict = judged(played({}, bug))
    assert verdict.outcome is Outcome.VIOLATION
    assert SHOWN[bug] in {one.kind for one in verdict.anomalies if one.verdict is Verdict.VIOLATION}


@pytest.mark.parametrize(
    ("generation", "ids"),
    [("0.11", "partition"), ("2.1", "partition"), ("2.8", "member"), ("4.1", "partition"), ("4.1", "member")],
)
def test_every_record_of_the_input_has_one_result(generation: str, ids: str) -> None:
    run = played({"transactional_ids": ids}, generation=generation)
    assert (judged(run).outcome, judged(run).reasons) == (Outcome.PASS, [])
    history = run.archive.history
    given = {row["value"] for row in history if row["f"] == "send" and row["topic"] == "ledger" and not row["txn"]}
    final = Counter(row["value"] for row in history if row["f"] == "output" and row["final"] and row["value"])
    assert set(final.values()) == {1}
    assert len(final) > 200
    assert set(final) <= given
    ends = Counter((row["type"], row["error"]) for row in history if row["txn"] and row["type"] != "invoke")
    assert min(ends["ok", None], ends["fail", "ABORTED"], ends["fail", "LEFT_OPEN"]) > 0


def test_the_output_is_one_of_the_topics_of_the_run() -> None:
    run = played({})
    assert {"ledger", "output"} == {topic["name"] for topic in run.manifest.configuration["scenario"]["topics"]}
    final = {row["topic"] for row in run.archive.history if row["f"] == "poll" and row["final"] and row["topic"]}
    assert final == {"ledger", "output"}


def test_a_scenario_may_have_the_output_and_needs_an_input() -> None:
    topics = [{"name": "output", "partitions": 3}]
    document = {**SCENARIO, "schedule": [{"wait_s": 1}], "workload": {"name": "consume_transform_produce"}}
    both = scenario.parse(yaml.safe_dump({**document, "topics": [*SCENARIO["topics"], *topics]}))
    assert len(runner.plan(both, "simulated").partitions) == 5
    alone = scenario.parse(yaml.safe_dump({**document, "topics": topics}))
    with pytest.raises(UsageError, match="puts its output into 'output', the only topic"):
        runner.plan(alone, "simulated")


def test_a_generation_without_transactions_is_refused() -> None:
    with pytest.raises(UsageError, match=r"runs transactions, which generation 0\.10 does not know"):
        runner.plan(
            scenario.load("random-chaos"), "simulated", "0.10",
            overrides={"workload.name": "consume_transform_produce"},
        )  # fmt: skip


def test_members_that_coordinators_do_not_fence_off_are_refused() -> None:
    with pytest.raises(UsageError, match=r"transactional_ids=member needs coordinators that fence members off"):
        played({"transactional_ids": "member"}, generation="2.1")
