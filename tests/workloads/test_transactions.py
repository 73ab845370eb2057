from __future__ import annotations

import pytest

from harness import runner, scenario
from harness.checker import Outcome, Verdict
from harness.errors import UsageError
from harness.replication.bugs import TRANSACTIONS
from tests.workloads.test_every_workload import loaded

SHOWN = {
    "stable_offset_too_high": "aborted-read",
    "aborted_unlisted": "aborted-read",
    "aborted_marked_committed": "aborted-read",
    "committed_marked_aborted": "lost-write",
    "marker_lost": "open-transaction",
    "zombies_obeyed": "lost-write",
    "transaction_end_unstored": "lost-write",
}


@pytest.mark.parametrize("bug", [bug.name for bug in TRANSACTIONS])
def test_a_broken_transaction_is_found(bug: str) -> None:
    verdict = loaded("transactions", bugs=bug).verdict
    assert verdict.outcome is Outcome.VIOLATION
    assert SHOWN[bug] in {one.kind for one in verdict.anomalies if one.verdict is Verdict.VIOLATION}


def test_transactions_end_in_every_way() -> None:
    history = loaded("transactions").history
    ends = {(row["type"], row["error"]) for row in history if row["txn"] and row["type"] != "invoke"}
    assert {("ok", None), ("fail", "ABORTED")} < ends
    assert {error for kind, error in ends if kind == "info"}, "none was replaced, and none took too long"


def test_a_generation_without_transactions_is_refused() -> None:
    with pytest.raises(UsageError, match=r"runs transactions, which generation 0\.10 does not know"):
        runner.plan(scenario.load("random-chaos"), "simulated", "0.10", overrides={"workload.name": "transactions"})
