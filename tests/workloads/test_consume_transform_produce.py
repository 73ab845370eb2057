from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import count, pairwise
from typing import Any

import pytest
import yaml

from checkers.verdicts.memory import decided
from harness import runner, scenario
from harness.checker import Outcome, RunVerdict, Verdict
from harness.client_ports import CommittedOffset, Transacted, TransactionalProducer
from harness.client_tasks.processor import Processor
from harness.detection.mixes import NONE, stack_scenario
from harness.errors import UsageError
from harness.history.recorder import PolledRecord
from harness.model import NO_GENERATION, TopicPartition
from harness.runner.rehearsal import Rehearsal, rehearse
from harness.simulation.core.drawn_loads import PROCESSORS
from harness.simulation.stack.group_offsets import GroupMetadata
from harness.simulation.stack.member import Member
from tests.by_night import some
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

LATE = pytest.mark.nightly("whole runs; by day one broken cluster, one broken coordinator, and the newest generation")
BY_DAY = {"committed_marked_aborted"}

ONLY_KILLS = {"stays_s": 0.5, "killed": 1, "late": 0, "aborted": 0}
"""A processor ends by being killed alone, and nothing disturbs it before that."""


def played(load: dict[str, Any], bugs: str = "", generation: str = "4.1", seed: int = 1) -> Rehearsal:
    """Ten seconds of processors that come and go, in which the leader of partition 0 dies."""
    return run_of(load, [*SCENARIO["schedule"], {"wait_s": 6}], bugs, generation, seed)


def undisturbed(load: dict[str, Any]) -> Rehearsal:
    """Five seconds in which nothing goes wrong by itself."""
    return run_of(load, [{"wait_s": 5}])


def run_of(
    load: dict[str, Any], schedule: list[Any], bugs: str = "", generation: str = "4.1", seed: int = 1
) -> Rehearsal:
    document = {**SCENARIO, "workload": {"name": "consume_transform_produce", **LOAD, **load}, "schedule": schedule}
    overrides = {"replication.bugs": bugs} if bugs else {}
    parsed = scenario.parse(yaml.safe_dump(document))
    return rehearse(runner.plan(parsed, "simulated", generation, seed=seed, overrides=overrides))


def judged(run: Rehearsal) -> RunVerdict:
    tables = run.archive.tables
    return decided(run.manifest, (run.archive.history, tables["timeline"], tables["replica_logs"]), tables["faults"])


def violations(verdict: RunVerdict) -> set[str]:
    return {one.kind for one in verdict.anomalies if one.verdict is Verdict.VIOLATION}


@pytest.mark.parametrize("bug", some(SHOWN, BY_DAY, LATE))
def test_a_broken_cluster_is_found(bug: str) -> None:
    verdict = judged(played({}, bug))
    assert verdict.outcome is Outcome.VIOLATION
    assert SHOWN[bug] in violations(verdict)


def fenced_by_members(**overrides: str) -> Rehearsal:
    """A calm run in which processors stand still for longer than they are members of their group."""
    return rehearse(runner.plan(stack_scenario(PROCESSORS, NONE), "simulated", seed=2, overrides=overrides))


@pytest.mark.parametrize(
    ("bug", "kinds"),
    [
        pytest.param("", set(), marks=LATE),
        pytest.param("unstable_offsets_served", {"processed-twice"}, marks=LATE),
        ("txn_commits_unfenced", {"stale-commit", "processed-twice"}),
    ],
)
def test_a_coordinator_that_lets_two_members_process_the_same_is_found(bug: str, kinds: set[str]) -> None:
    assert violations(judged(fenced_by_members(**{"replication.bugs": bug}))) == kinds


@pytest.mark.parametrize("ids", ["partition", "member"])
def test_processors_that_are_killed_are_counted_and_their_transactions_end_unknown(ids: str) -> None:
    run = undisturbed({**ONLY_KILLS, "transactional_ids": ids})
    verdict, history = judged(run), run.archive.history
    assert (verdict.outcome, verdict.reasons) == (Outcome.PASS, [])
    dead = [row["process"] for row in history if (row["f"], row["type"]) == ("crash", "info")]
    assert verdict.counts["crashes"] == len({*dead}) == len(dead) >= 3
    for process in dead:
        own = [row["f"] for row in history if row["process"] == process]
        assert {"subscribe", "assigned"} <= {*own}
        assert own[-1] == "crash", "nothing is heard of it any more, and it gives nothing up"
    ends = {row["op"]: (row["type"], row["error"]) for row in history if row["txn"] and row["type"] != "invoke"}
    numbers = Counter(ends.values())
    assert numbers["ok", None] > 20
    killed = numbers["info", "KILLED"] + numbers["fail", "KILLED"]
    assert 0 < numbers["fail", "KILLED"] <= killed <= len(dead)
    commits = Counter(row["op"] for row in history if (row["f"], row["error"]) == ("commit", "KILLED"))
    assert 0 < len(commits) < killed, "some were killed before they committed their offsets"


def test_what_a_killed_processor_has_is_taken_from_it_by_time_alone() -> None:
    run = undisturbed({**ONLY_KILLS, "processors": 1, "session_timeout_s": 2})
    rows = [row for row in run.archive.history if row["f"] in ("crash", "assigned") and row["type"] == "info"]
    pairs = [(one, next_one) for one, next_one in pairwise(rows) if (one["f"], next_one["f"]) == ("crash", "assigned")]
    assert pairs
    assert min(next_one["time_ns"] - one["time_ns"] for one, next_one in pairs) > 1_500_000_000


def commits_offsets_apart(*, first: bool) -> Any:
    """What a processor does that commits its offsets apart from its results: ``first``, or after them."""

    async def commit(
        ours: Processor, producer: TransactionalProducer, records: Sequence[PolledRecord], fate: Any, _: Any
    ) -> Transacted:
        offsets = {TopicPartition(one.topic, one.partition): CommittedOffset.after(one) for one in records}
        if first:
            await ours._life._commits.commit_and_wait(offsets)
        ended = await ours._end(producer, fate)
        if not first and ended.kind == "ok":
            await ours._life._commits.commit_and_wait(offsets)
        return ended

    return commit


@LATE
@pytest.mark.parametrize(("first", "kind"), [(True, "unprocessed"), (False, "processed-twice")])
def test_kills_show_a_processor_that_commits_its_offsets_apart_from_its_results(
    first: bool, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Processor, "_commit", commits_offsets_apart(first=first))
    assert kind in violations(judged(undisturbed(ONLY_KILLS)))
    assert not violations(judged(undisturbed({**ONLY_KILLS, "killed": 0, "stays_s": 0})))


@LATE
def test_processors_that_fence_no_predecessor_off_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each life has transactional ids of its own, and a commit does not say whose it is, as before KIP-447."""
    lives = count()

    def lane(ours: Processor, name: TopicPartition) -> str:
        return f"{name}-{ours.__dict__.setdefault('life', next(lives))}"

    def no_member(member: Member) -> GroupMetadata:
        return GroupMetadata(member._membership.group, NO_GENERATION, "", None)

    monkeypatch.setattr(Processor, "_lane", lane)
    monkeypatch.setattr(Member, "metadata", property(no_member))
    run = fenced_by_members(**{"workload.transactional_ids": "partition"})
    assert {"processed-twice", "stale-commit"} <= violations(judged(run))


@pytest.mark.nightly("forty whole runs; by day each way to fence is tried with one seed")
@pytest.mark.parametrize("ids", ["partition", "member"])
@pytest.mark.parametrize("seed", range(1, 21))
def test_healthy_clusters_are_not_blamed_for_what_kills_leave_behind(seed: int, ids: str) -> None:
    verdict = judged(played({"transactional_ids": ids, "stays_s": 1.5, "killed": 0.5}, seed=seed))
    assert (verdict.outcome, verdict.reasons) == (Outcome.PASS, [])
    assert verdict.counts["crashes"]


def test_clients_that_cannot_be_killed_are_refused() -> None:
    load: dict[str, Any] = {"name": "consume_transform_produce", "killed": 0.5}
    document = {**SCENARIO, "schedule": [{"wait_s": 1}], "workload": load}
    with pytest.raises(UsageError, match=r"killed=0\.5 kills a client's process, and librdkafka has none"):
        runner.plan(scenario.parse(yaml.safe_dump(document)), "builtin")
    load["stays_s"] = 0
    with pytest.raises(UsageError, match=r"with workload\.stays_s=0 none does"):
        runner.plan(scenario.parse(yaml.safe_dump(document)), "simulated")


@pytest.mark.parametrize(
    ("generation", "ids"),
    [
        pytest.param("0.11", "partition", marks=LATE),
        pytest.param("2.1", "partition", marks=LATE),
        pytest.param("2.8", "member", marks=LATE),
        pytest.param("4.1", "partition", marks=LATE),
        ("4.1", "member"),
    ],
)
def test_every_record_of_the_input_has_one_result_in_the_output(generation: str, ids: str) -> None:
    run = played({"transactional_ids": ids, "stays_s": 1}, generation=generation)
    topics = {topic["name"] for topic in run.manifest.configuration["scenario"]["topics"]}
    assert topics == {"ledger", "output"}
    assert topics == {row["topic"] for row in run.archive.history if row["f"] == "poll" and row["final"]} - {None}
    verdict = judged(run)
    assert (verdict.outcome, verdict.reasons) == (Outcome.PASS, [])
    history = run.archive.history
    given = {row["value"] for row in history if row["f"] == "send" and row["topic"] == "ledger" and not row["txn"]}
    final = Counter(row["value"] for row in history if row["f"] == "output" and row["final"] and row["value"])
    assert set(final.values()) == {1}
    assert len(final) > 200
    assert set(final) <= given
    ends = Counter((row["type"], row["error"]) for row in history if row["txn"] and row["type"] != "invoke")
    assert min(ends["ok", None], ends["fail", "ABORTED"], ends["fail", "LEFT_OPEN"]) > 0


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
