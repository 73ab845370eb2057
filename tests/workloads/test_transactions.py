from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import yaml

from checkers.verdicts.memory import decided
from harness import runner, scenario
from harness.checker import Outcome, RunVerdict, Verdict
from harness.errors import UsageError
from harness.replication.bugs import TRANSACTIONS
from harness.runner.rehearsal import Rehearsal, rehearse
from tests.by_night import some
from tests.workloads.test_every_workload import SCENARIO

SHOWN = {
    "stable_offset_too_high": "aborted-read",
    "aborted_unlisted": "aborted-read",
    "aborted_marked_committed": "aborted-read",
    "committed_marked_aborted": "lost-write",
    "marker_lost": "wrong-marker",
    "zombies_obeyed": "lost-write",
    "transaction_end_unstored": "lost-write",
    "transactions_share_an_epoch": "lost-write",
}


BY_DAY = ("aborted_marked_committed",)
LATE = pytest.mark.nightly("eight seconds of transactions; by day one bug")


def played(load: dict[str, Any], bugs: str = "", lasts_s: int = 8) -> Rehearsal:
    """Some seconds of transactions, in which nothing goes wrong by itself."""
    document = {**SCENARIO, "schedule": [{"wait_s": lasts_s}], "workload": {"name": "transactions", **load}}
    overrides = {"replication.bugs": bugs} if bugs else {}
    return rehearse(runner.plan(scenario.parse(yaml.safe_dump(document)), "simulated", seed=1, overrides=overrides))


def judged(run: Rehearsal) -> RunVerdict:
    tables = run.archive.tables
    return decided(run.manifest, (run.archive.history, tables["timeline"], tables["replica_logs"]), tables["faults"])


@pytest.mark.parametrize("bug", some([bug.name for bug in TRANSACTIONS], BY_DAY, LATE))
def test_a_broken_transaction_is_found(bug: str) -> None:
    run = played({"rate": 40, "producers": 4, "timeout_s": 2, "left_open": 0.05, "replaced": 0.1}, bug)
    verdict = judged(run)
    assert verdict.outcome is Outcome.VIOLATION
    assert SHOWN[bug] in {one.kind for one in verdict.anomalies if one.verdict is Verdict.VIOLATION}


@LATE
def test_transactions_that_read_each_other_are_found() -> None:
    verdict = judged(played({"rate": 40, "producers": 4, "timeout_s": 2}, "stable_offset_too_high"))
    kinds = {one.kind for one in verdict.anomalies if one.verdict is Verdict.VIOLATION}
    assert {"G1c", "precommitted-read"} <= kinds


def test_some_transactions_are_given_what_others_have_committed() -> None:
    run = played({"rate": 40, "producers": 4, "timeout_s": 2})
    steps = [row for row in run.archive.history if row["txn"] and (row["f"], row["type"]) == ("poll", "ok")]
    wrote = {row["value"]: row["op"] for row in run.archive.history if row["txn"] and row["f"] == "send"}
    assert sum(wrote.get(row["value"], row["op"]) != row["op"] for row in steps) > 100
    assert judged(run).outcome is Outcome.PASS


def ends(**shares: float) -> Counter[tuple[str, str | None]]:
    """How the transactions of a calm run ended, by what their producers were answered."""
    load = {"rate": 10, "producers": 2, "timeout_s": 1, "aborted": 0, "left_open": 0, "replaced": 0, **shares}
    rows = (
        row
        for row in played(load, lasts_s=4).archive.history
        if row["txn"] and row["type"] != "invoke" and row["mop"] == 0
    )
    return Counter({row["op"]: (row["type"], row["error"]) for row in rows}.values())


def test_transactions_end_as_the_parameters_say() -> None:
    assert ends()["ok", None] > 20
    aborted = ends(aborted=1)
    assert aborted["fail", "ABORTED"] > 20
    assert aborted["ok", None] == 2, "those that take the transactional ids over in the end"
    left = ends(left_open=1)
    assert left["info", "PRODUCER_FENCED"] > 1
    assert left["ok", None] == 2
    replaced = ends(replaced=1)
    assert replaced["info", "PRODUCER_FENCED"] > 10
    assert replaced["ok", None] > 10


def test_a_generation_without_transactions_is_refused() -> None:
    with pytest.raises(UsageError, match=r"runs transactions, which generation 0\.10 does not know"):
        runner.plan(scenario.load("random-chaos"), "simulated", "0.10", overrides={"workload.name": "transactions"})
