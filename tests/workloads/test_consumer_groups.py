"""Groups of consumers: what their members leave in the history, in virtual time."""

from __future__ import annotations

import pytest

from checkers.verdicts.memory import decided
from harness.checker import Verdict
from harness.detection.mixes import stack_scenario
from harness.errors import UsageError
from harness.model import TopicPartition
from harness.runner import plan
from harness.runner.rehearsal import Rehearsal, rehearse
from harness.scenario import load
from workloads.consumer_groups import ConsumerGroupsParameters, Slot

CONSUMER = {"workload.protocol": "[consumer]"}

EPOCHS = "stale_member_epochs_obeyed"
LATE = pytest.mark.nightly(
    "a run like another; by day one coordinator that lets a former owner commit, and a sound one"
)


def played(faults: str = "kill", bugs: str = "", workload: str = "groups") -> Rehearsal:
    scenario = stack_scenario(workload, faults)
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


def test_protocols_and_assignors_are_dealt_out_to_the_groups_in_turn() -> None:
    written = {"groups": 4, "protocol": ["classic", "consumer"], "assignor": ["range", "roundrobin"]}
    parameters = ConsumerGroupsParameters.model_validate(written)
    dealt = [parameters.membership(Slot(group, 0), [TopicPartition("t", 0)]) for group in range(4)]
    assert [(one.protocol, one.assignor, one.remote_assignor) for one in dealt] == [
        ("classic", "range", "uniform"),
        ("consumer", "range", "uniform"),
        ("classic", "roundrobin", "range"),
        ("consumer", "roundrobin", "range"),
    ]


def test_a_member_of_the_consumer_protocol_that_has_hung_commits_in_an_epoch_that_is_over_and_is_refused() -> None:
    history = played("none", workload="assigned").archive.history
    given = [row for row in history if row["f"] == "assigned"]
    assert {row["group_protocol"] for row in given} == {"consumer"}
    assert len({row["generation"] for row in given}) > 3
    assert "UNKNOWN_MEMBER_ID" in {row["error"] for row in history if row["f"] == "commit"}
    assert {row["f"] for row in history} >= {"revoked", "lost"}
    given_up = [row for row in history if row["f"] == "revoked"]
    assert min(row["generation"] for row in given_up) > 0
    polls = {row["generation"] for row in history if row["f"] == "poll" and row["group"] and row["type"] == "invoke"}
    assert polls >= {row["generation"] for row in given_up}


@pytest.mark.parametrize("bug", ["", "partitions_given_before_release", pytest.param(EPOCHS, marks=LATE)])
def test_the_checkers_find_a_commit_of_a_former_owner_and_nothing_where_there_is_no_bug(bug: str) -> None:
    rehearsal = played("all", bug, "assigned")
    tables = rehearsal.archive.tables
    verdict = decided(
        rehearsal.manifest,
        (rehearsal.archive.history, tables["timeline"], tables["replica_logs"]),
        tables.get("faults", ()),
    )
    found = {one.kind for one in verdict.anomalies if one.verdict is Verdict.VIOLATION}
    given_away = {"two-owners"} if bug == "partitions_given_before_release" else set()
    assert found == ({"stale-commit"} | given_away if bug else set())


def test_the_checkers_find_a_coordinator_that_does_not_wait_for_members_to_join_again() -> None:
    rehearsal = played("none", "rebalance_cut_short")
    tables = rehearsal.archive.tables
    verdict = decided(rehearsal.manifest, (rehearsal.archive.history, tables["timeline"], tables["replica_logs"]), ())
    assert {one.kind for one in verdict.anomalies if one.verdict is Verdict.VIOLATION} == {"two-owners"}


@pytest.mark.parametrize(("target", "generation"), [("simulated", "3.7"), ("builtin", "2.8"), ("process:3.9.1", None)])
def test_groups_of_the_consumer_protocol_are_refused_where_coordinators_do_not_offer_it(
    target: str, generation: str | None
) -> None:
    with pytest.raises(UsageError, match=r"groups of the consumer protocol \(KIP-848\), which .+ does not offer"):
        plan(load("random-chaos"), target, generation, overrides={"workload.name": "consumer_groups", **CONSUMER})
