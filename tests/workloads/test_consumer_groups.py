"""Groups of consumers: what their members leave in the history, in virtual time."""

from __future__ import annotations

from harness.detection.mixes import stack_scenario
from harness.runner import plan
from harness.runner.rehearsal import Rehearsal, rehearse


def played(faults: str = "kill", bugs: str = "") -> Rehearsal:
    scenario = stack_scenario("groups", faults)
    return rehearse(plan(scenario, "simulated", seed=2, overrides={"replication.bugs": bugs} if bugs else {}))


def test_a_member_that_has_hung_commits_in_a_generation_that_is_over_and_is_refused() -> None:
    latest, refused, begun = -1, set(), dict[int, bool]()
    for row in played("none").archive.history:
        if row["f"] == "assigned":
            latest = max(latest, row["generation"])
        elif row["f"] == "commit" and row["type"] == "invoke":
            begun[row["op"]] = 0 <= row["generation"] < latest
        elif row["f"] == "commit" and begun[row["op"]]:
            assert row["type"] == "info"
            refused.add(row["error"])
    assert "UNKNOWN_MEMBER_ID" in refused


def test_in_the_end_a_new_member_is_given_every_partition() -> None:
    history = played().archive.history
    last = max(row["process"] for row in history if row["f"] == "assigned")
    given = {(row["topic"], row["partition"]) for row in history if (row["f"], row["process"]) == ("assigned", last)}
    assert given == {("ledger", 0), ("ledger", 1)}


def test_a_coordinator_that_lets_no_new_member_in_is_seen_to_stand_still() -> None:
    unrest = played(bugs="joins_unanswered_after_a_failover").manifest.unrest
    assert (unrest["of"], sorted(unrest["missing"])) == ("takeovers", ["ledger-0", "ledger-1"])
