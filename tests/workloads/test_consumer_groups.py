"""Groups of consumers: what their members leave in the history, in virtual time."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, ClassVar

import pytest

from checkers.verdicts.memory import decided
from harness.checker import Verdict
from harness.client_ports import ClientContext, Clients, Isolation
from harness.client_tasks.group_life import GroupLife
from harness.detection.mixes import stack_scenario
from harness.errors import UsageError
from harness.membership import Membership
from harness.model import TopicPartition
from harness.runner import plan
from harness.runner.rehearsal import Rehearsal, rehearse
from harness.scenario import load
from workloads import consumer_groups as module
from workloads.consumer_groups import ConsumerGroupsParameters, Slot

CONSUMER = {"workload.protocol": "[consumer]"}

EPOCHS = "stale_member_epochs_obeyed"
LATE = pytest.mark.nightly(
    "a run like another; by day one coordinator that lets a former owner commit, and a sound one"
)


def played(faults: str = "kill", bugs: str = "", workload: str = "groups", **settings: str) -> Rehearsal:
    """A run in virtual time; ``settings``: what the workload has besides."""
    scenario = stack_scenario(workload, faults)
    overrides = {f"workload.{name}": value for name, value in settings.items()}
    return rehearse(
        plan(scenario, "simulated", seed=2, overrides=overrides | ({"replication.bugs": bugs} if bugs else {}))
    )


def violations(rehearsal: Rehearsal) -> set[str]:
    """The kinds of what the checkers find that nothing excuses."""
    tables = rehearsal.archive.tables
    rows = (rehearsal.archive.history, tables["timeline"], tables["replica_logs"])
    verdict = decided(rehearsal.manifest, rows, tables.get("faults", ()))
    return {one.kind for one in verdict.anomalies if one.verdict is Verdict.VIOLATION}


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


@pytest.mark.parametrize(
    ("settings", "left_out"),
    [
        ({"protocol": "[classic, consumer]"}, "protocol lists 'consumer'"),
        ({"groups": "2", "commits": "[sync, async, auto]"}, "commits lists 'auto'"),
        ({"members": "1", "subscribe": "[names, pattern]"}, "subscribe lists 'pattern'"),
        ({"groups": "3", "assignor": "[range, cooperative-sticky]", "protocol": "[classic, consumer]"}, ""),
        (
            {"groups": "2", "assignor": "[range, roundrobin]", "protocol": "[classic, consumer]"},
            "assignor lists",
        ),
        ({"protocol": "[consumer]", "remote_assignor": "[uniform, range]"}, "remote_assignor lists 'range'"),
    ],
)
def test_a_list_of_which_something_would_not_be_tried_is_refused(settings: dict[str, str], left_out: str) -> None:
    overrides = {"workload.name": "consumer_groups", **{f"workload.{name}": one for name, one in settings.items()}}
    refused = pytest.raises(UsageError, match=left_out) if left_out else nullcontext()
    with refused:
        plan(load("random-chaos"), "builtin", overrides=overrides)


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
    found = violations(played("all", bug, "assigned"))
    given_away = {"two-owners"} if bug == "partitions_given_before_release" else set()
    assert found == ({"stale-commit"} | given_away if bug else set())


def test_the_checkers_find_a_coordinator_that_does_not_wait_for_members_to_join_again() -> None:
    assert violations(played("none", "rebalance_cut_short")) == {"two-owners"}


@pytest.mark.parametrize("workload", ["groups", "assigned"])
def test_asynchronous_commits_are_answered_late_or_never_and_a_sound_cluster_passes(workload: str) -> None:
    rehearsal = played("all", workload=workload, commits="[async]")
    commits = [row for row in rehearsal.archive.history if row["f"] == "commit"]
    begun = {row["op"]: row["index"] for row in commits if row["type"] == "invoke"}
    acknowledged = {row["op"]: row["index"] for row in commits if row["type"] == "ok"}
    overlapping = [op for op, at in acknowledged.items() if any(begun[op] < one < at for one in begun.values())]
    assert len(acknowledged) > 20
    assert overlapping, "commits follow each other before the first is answered"
    assert all(row["type"] in ("ok", "info") for row in commits if row["type"] != "invoke")
    assert violations(rehearsal) == set()


@pytest.mark.parametrize("workload", ["groups", "assigned"])
def test_clients_that_commit_by_themselves_leave_answers_alone_and_a_sound_cluster_passes(workload: str) -> None:
    rehearsal = played("all", workload=workload, commits="[auto]", subscribe="[pattern, names]")
    history = rehearsal.archive.history
    assert not [row for row in history if row["f"] == "commit"]
    assert len([row for row in history if row["f"] == "auto_commit" and row["type"] == "info"]) > 10
    told = [row["offset"] for row in history if row["f"] == "committed" and row["type"] == "ok"]
    assert len({offset for offset in told if offset}) > 5
    assert violations(rehearsal) == set()


@pytest.mark.parametrize(
    ("commits", "workload", "bug", "found"),
    [
        ("sync", "groups", "refused_commits_stored", {"lost-commit"}),
        ("async", "groups", "commit_forgotten", {"lost-commit"}),
        ("async", "assigned", "stale_member_epochs_obeyed", {"stale-commit"}),
        ("auto", "groups", "first_fetch_skips_a_batch", {"group-skip"}),
        ("auto", "assigned", "partitions_given_before_release", {"two-owners"}),
    ],
)
def test_the_checkers_find_a_bug_of_brokers_however_members_commit(
    commits: str, workload: str, bug: str, found: set[str]
) -> None:
    assert violations(played("none", bug, workload, commits=f"[{commits}]")) == found


def test_offsets_that_are_mixed_up_show_in_what_a_group_is_given_whose_client_commits_by_itself() -> None:
    rehearsal = played("none", "commits_swapped", commits="[auto]", members="1")
    assert violations(rehearsal) == {"commit-beyond-end"}


@pytest.mark.parametrize(
    ("workload", "bug", "found"),
    [
        ("groups", "", set()),
        ("assigned", "", set()),
        ("groups", "commits_unfenced", {"stale-commit"}),
        ("groups", "assignments_mixed_up", {"two-owners"}),
        ("assigned", "stale_member_epochs_obeyed", {"stale-commit"}),
    ],
)
def test_static_members_come_back_within_their_session_and_beyond_it(
    workload: str, bug: str, found: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GroupLife", TimedLife)
    TimedLife.left_ns, TimedLife.away_s = {}, []
    assert violations(played("none", bug, workload, static="true", away_s="0.5")) == found
    assert min(TimedLife.away_s) < SESSION_S / 2
    assert max(TimedLife.away_s) > SESSION_S * 6 / 5


SESSION_S = 0.5
"""That of members of the classic protocol in the mix ``groups``."""


class TimedLife(GroupLife):
    """A static member that notes for how long the one of its name before it has been away."""

    left_ns: ClassVar[dict[str | None, int]] = {}
    away_s: ClassVar[list[float]] = []

    def __init__(
        self, context: ClientContext, clients: Clients, membership: Membership, isolation: Isolation, **settings: Any
    ) -> None:
        super().__init__(context, clients, membership, isolation, **settings)
        self._instance, self._time = membership.instance, clients
        if self._instance in self.left_ns:
            self.away_s.append((clients.monotonic_ns() - self.left_ns[self._instance]) / 1e9)

    async def close(self) -> None:
        await super().close()
        self.left_ns[self._instance] = self._time.monotonic_ns()


@pytest.mark.parametrize(
    ("workload", "bug", "found"),
    [("groups", "", set()), ("assigned", "", set()), ("groups", "commit_forgotten", {"lost-commit"})],
)
def test_members_that_are_killed_leave_nothing_and_their_group_goes_on(
    workload: str, bug: str, found: set[str]
) -> None:
    rehearsal = played("none", bug, workload, killed="0.7", commits="[async]")
    history = rehearsal.archive.history
    killed = {row["process"]: row["index"] for row in history if row["f"] == "crash" and row["type"] == "invoke"}
    assert len(killed) > 5
    assert not [row for row in history if row["process"] in killed and row["index"] > killed[row["process"]] + 1]
    left = [row for row in history if row["f"] == "revoked" and row["generation"] == -1]
    assert not {row["process"] for row in left} & set(killed)
    assert violations(rehearsal) == found


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"workload.killed": "0.5"}, "kills a client's process, and librdkafka has none of its own"),
        ({"workload.killed": "0.5", "workload.client": "java:4.3.0", "workload.stays_s": "0"}, "and with .* none does"),
    ],
)
def test_members_that_cannot_be_killed_or_do_not_end_are_refused(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        plan(load("random-chaos"), "builtin", overrides={"workload.name": "consumer_groups", **settings})


def test_subscriptions_and_ways_to_commit_are_dealt_out_in_turn() -> None:
    written = {"groups": 3, "commits": ["sync", "auto"], "subscribe": ["names", "pattern"]}
    parameters = ConsumerGroupsParameters.model_validate(written)
    places = [TopicPartition("a.b", 0), TopicPartition("c-d", 0)]
    dealt = [[parameters.membership(Slot(group, number), places) for number in range(2)] for group in range(3)]
    assert [[one.commits.mode for one in ones] for ones in dealt] == [["sync"] * 2, ["auto"] * 2, ["sync"] * 2]
    assert [one.pattern for one in dealt[0]] == [None, "^(a[.]b|c-d)$"]


def test_a_java_client_without_patterns_that_brokers_resolve_is_refused() -> None:
    written = {**CONSUMER, "workload.client": "java:3.9.1", "workload.subscribe": "[pattern]"}
    with pytest.raises(UsageError, match=r"takes SubscriptionPattern, which workload.client=java:3.9.1 does not have"):
        plan(load("random-chaos"), "builtin", overrides={"workload.name": "consumer_groups", **written})


@pytest.mark.parametrize(("target", "generation"), [("simulated", "3.7"), ("builtin", "2.8"), ("process:3.9.1", None)])
def test_groups_of_the_consumer_protocol_are_refused_where_coordinators_do_not_offer_it(
    target: str, generation: str | None
) -> None:
    with pytest.raises(UsageError, match=r"groups of the consumer protocol \(KIP-848\), which .+ does not offer"):
        plan(load("random-chaos"), target, generation, overrides={"workload.name": "consumer_groups", **CONSUMER})
