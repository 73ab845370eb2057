from __future__ import annotations

import dataclasses
import sys

import pytest

from harness import scenario
from harness.controls import Elections
from harness.errors import UsageError
from harness.replication.knobs import CURRENT_GENERATION
from harness.runner import Plan, plan
from harness.runner.expectation import expectations
from harness.runner.manifest import manifest, now
from harness.targets.builtin import KIND
from harness.targets.cluster_kind import AnyGeneration
from tests.harness.runner.mix_of import mix_of
from tests.shipped import ON_REAL_KAFKA_ALONE

HEAD = """\
id: small
title: A small scenario
source: a test
topics: [{name: ledger, partitions: 2}]
workload: {name: unique_sends}
"""
CHAOS = HEAD + "chaos: {faults: [{fault: kill, node: any}, {fault: pause, node: 1, weight: 3, for_s: [1, 2]}]}\n"
SCHEDULE = HEAD + "schedule: [{inject: {fault: kill, node: 0, as: dead}}, {heal: dead}]\n"


def planned(text: str = CHAOS, **overrides: str) -> Plan:
    return plan(scenario.parse(text), overrides={key.replace("__", "."): value for key, value in overrides.items()})


def refusal(text: str, **overrides: str) -> str:
    with pytest.raises(UsageError) as refused:
        planned(text, **overrides)
    return str(refused.value)


@pytest.mark.parametrize("name", sorted(ON_REAL_KAFKA_ALONE))
def test_a_scenario_that_only_real_kafka_can_play_is_refused_elsewhere_with_a_reason(name: str) -> None:
    for target in ("builtin", "simulated"):
        with pytest.raises(UsageError, match=f"{name}: workload share_groups needs .*, and target '{target}' has none"):
            plan(scenario.load(name), target)


def test_every_other_shipped_scenario_can_be_planned_on_every_generation() -> None:
    for one in (one for one in scenario.shipped() if one.id not in ON_REAL_KAFKA_ALONE):
        oldest = "0.11" if one.transacts else "0.10"
        for generation in expectations(one) or (oldest, "2.8", "3.7"):
            assert plan(one, generation=generation).generation == generation


def test_another_workload_takes_over_the_parameters_that_it_knows() -> None:
    text = CHAOS.replace("{name: unique_sends}", "{name: unique_sends, rate: 70, consumers: 3}")
    made = planned(text, workload__name="consumer_groups", workload__members="5")
    written = made.workload.model_dump()
    assert (made.scenario.workload.name, written["rate"], written["members"]) == ("consumer_groups", 70, 5)
    assert "workload: unknown key 'consumers'" in refusal(
        text, workload__name="consumer_groups", workload__consumers="4"
    )
    assert "unknown workload 'consumer_group'; did you mean" in refusal(text, workload__name="consumer_group")


def test_transactions_are_refused_where_there_are_none() -> None:
    for target in ("builtin", "simulated"):
        with pytest.raises(UsageError, match=r"runs transactions, which generation 0\.10 does not know"):
            plan(scenario.load("transactions-outlive-their-leader"), target, "0.10")
        with pytest.raises(UsageError, match=r"transactions of version 2, which generation 3\.7 does not know"):
            plan(scenario.load("late-batch-is-fenced"), target, "3.7")


def test_an_election_is_refused_where_the_target_cannot_be_asked_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    without = dataclasses.replace(KIND, controls=KIND.controls - {Elections})
    monkeypatch.setattr(sys.modules["harness.runner.plan"], "source_of", lambda target: AnyGeneration(without))
    elections = [one for one in scenario.shipped() if any(step.elect for step in one.schedule or ())]
    with pytest.raises(UsageError, match=r"schedule\[\d+\]\.elect: target 'builtin' cannot be asked for an election"):
        plan(elections[0])


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("replicas: [{node: 1, role: leader}]", "what a broker holds"),
        ("exited: [1]", "whether a broker has exited"),
        ("committed: {group: audit, offsets: {ledger-0: 1}}", "what a group has committed"),
    ],
)
def test_a_step_that_waits_for_what_the_target_cannot_observe_is_refused(
    condition: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{HEAD}schedule: [{{until: {{{condition}}}}}]\n"
    assert plan(scenario.parse(text))
    by_address = dataclasses.replace(KIND, controls=frozenset({Elections}))
    monkeypatch.setattr(sys.modules["harness.runner.plan"], "source_of", lambda target: AnyGeneration(by_address))
    with pytest.raises(UsageError, match=rf"schedule\[\d+\]\.until: target 'builtin' cannot tell {told}\."):
        plan(scenario.parse(text))


def test_the_generation_is_the_one_asked_for_else_the_scenarios_else_the_current() -> None:
    assert planned().generation == CURRENT_GENERATION
    assert planned(CHAOS + 'generation: "0.10"\n').generation == "0.10"
    assert plan(scenario.parse(CHAOS + 'generation: "0.10"\n'), generation="2.8").generation == "2.8"


def test_predictions_are_those_of_the_generation_unless_a_knob_of_it_was_changed() -> None:
    text = CHAOS + 'predictions: {"0.10": [{kind: lost-write}]}\n'
    assert not plan(scenario.parse(text), generation="3.7").forecast.predictions
    assert [one.kind for one in plan(scenario.parse(text), generation="0.10").forecast.predictions] == ["lost-write"]
    mutant = plan(scenario.parse(text), generation="0.10", overrides={"replication.fetch_fencing": "true"})
    assert mutant.system.protocol.knobs.fetch_fencing
    assert not mutant.forecast.predictions


def test_weights_and_spans_of_a_mix_are_its_faults_own() -> None:
    kill, pause = mix_of(planned()).faults.values()
    assert (kill.weight, kill.for_s) == (1, (1.0, 2.5))
    assert (pause.weight, pause.for_s) == (3, (1.0, 2.0))


def test_a_schedule_has_no_duration() -> None:
    assert planned(SCHEDULE).chaos is None
    with pytest.raises(UsageError, match="is a schedule"):
        plan(scenario.parse(SCHEDULE), duration_s=5)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (CHAOS.replace("fault: kill", "fault: kil"), "chaos.faults[0]: unknown fault 'kil'; did you mean 'kill'?"),
        (CHAOS.replace("node: 1", "nod: 1"), "chaos.faults[1]: unknown key 'nod'; did you mean 'node'?"),
        (CHAOS.replace("node: 1", "node: 3"), "chaos.faults[1]: there is no broker 3; the brokers are 0 to 2."),
        (
            CHAOS.replace("fault: kill", "fault: log_dir_failure, log_dir: 1"),
            "chaos.faults[0]: there is no log directory 1: each broker has 1. Set log.dirs.count to have more.",
        ),
        (
            SCHEDULE.replace("kill, node: 0", "disk_full, node: 0, log_dir: 5")
            + "cluster: {settings: {log.dirs.count: 2}}\n",
            "schedule[0].inject: there is no log directory 5: each broker has 2.",
        ),
        (CHAOS.replace("weight: 3", "weight: 0"), "chaos.faults[1].weight: 0 is not a whole number from 1 to 100."),
        (CHAOS.replace("[1, 2]", "[2, 1]"), "chaos.faults[1].for_s: [2, 1] is not [shortest, longest] in seconds."),
        (CHAOS.replace("node: any", "node: leader, topic: ledgr"), "unknown topic 'ledgr'; did you mean 'ledger'?"),
        (
            CHAOS.replace("node: any", "node: leader, partition: 2"),
            "there is no partition 2; the partitions are 0 to 1",
        ),
        (CHAOS.replace("unique_sends", "unique_send"), "unknown workload 'unique_send'; did you mean 'unique_sends'?"),
        (CHAOS.replace("{name: unique_sends}", "{name: unique_sends, rat: 1}"), "workload: unknown key 'rat'"),
        (CHAOS.replace("unique_sends", "unique_sends, delivery_timeout_s: .inf"), "delivery_timeout_s: inf is refused"),
        (CHAOS + "predictions: {'0.12': []}\n", "generation '0.12' is not known; did you mean"),
        (CHAOS + "cluster: {settings: {min.isr: 2}}\n", "cluster.settings: broker setting 'min.isr' is not known."),
        (
            HEAD + "schedule: [{inject: {fault: kill, node: 0}}]\n",
            "is missing: a later step heals the fault by that name",
        ),
        (SCHEDULE.replace("{heal: dead}", "{until: {topic: x, leader: 1}}"), "schedule[1].until: unknown topic 'x'"),
        (
            SCHEDULE.replace("{heal: dead}", "{inject: {fault: disk_full, node: 0, as: full}}"),
            "schedule[1].inject: 'full' and 'dead', which is in force, both need the process of node 0 to themselves.",
        ),
        (
            SCHEDULE.replace("kill, node: 0", "partition, links: [[1, 0]]").replace(
                "{heal: dead}", "{inject: {fault: partition, isolate: 1, as: cut}}"
            ),
            "schedule[1].inject: 'cut' and 'dead', which is in force, both need link 1->0 to themselves.",
        ),
    ],
    ids=range(18),
)
def test_what_cannot_be_run_is_refused_before_anything_starts(text: str, sentence: str) -> None:
    assert sentence in refusal(text)


@pytest.mark.parametrize(
    "step",
    [
        "until: {leader: 3}",
        "until: {isr: [0, 3]}",
        "until: {elr: [3]}",
        "until: {live: [3, 1]}",
        "until: {exited: [3]}",
        "until: {replicas: [{node: 3, role: leader}]}",
        "until: {replicas: [{node: 0, leader: 3}]}",
        "sync: [1, 3]",
        "elect: {leader: 3}",
        "spoof_fetch: {to: 3, replica: 1, offset: 2}",
        "spoof_fetch: {to: 0, replica: 3, offset: 2}",
    ],
)
def test_a_broker_that_is_not_there_is_refused_wherever_it_is_named(step: str) -> None:
    kind = step.partition(":")[0]
    told = refusal(HEAD + f"schedule: [{{wait_s: 1}}, {{{step}}}]\n")
    assert told == f"small: schedule[1].{kind}: there is no broker 3; the brokers are 0 to 2."


def test_no_leader_is_no_broker() -> None:
    planned(HEAD + "schedule: [{until: {leader: -1, replicas: [{node: 0, leader: -1}]}}]\n")


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        ("{send: {records: [a]}}, {send: {records: [b, a]}}", "schedule[1].send: ledger-0 has been sent"),
        ("{send: {records: [a, a]}}", "schedule[0].send: ledger-0 has been sent a record named 'a' already"),
        ("{send: {per_partition: 2}}, {send: {records: [m1]}}", "schedule[1].send: ledger-0 has been sent"),
        ("{send: {records: [m1]}}, {send: {per_partition: 1}}", "a record named 'm1' already"),
        (
            "{send: {records: [a], partition: 1}}, {send: {records: [b]}}, {send: {records: [a]}}",
            "schedule[2].send: ledger-1 has been sent a record named 'a' already",
        ),
    ],
)
def test_a_record_name_is_given_once_on_each_partition(steps: str, sentence: str) -> None:
    assert sentence in refusal(HEAD + f"schedule: [{steps}]\n")


@pytest.mark.parametrize(
    "steps",
    [
        "{send: {records: [a], partition: 0}}, {send: {records: [a], partition: 1}}",
        "{send: {per_partition: 2}}, {send: {records: [m2, x]}}, {send: {per_partition: 2}}",
        "{send: {records: [m7, m01]}}, {send: {per_partition: 2}}",
        "{send: {records: [a]}, generations: ['0.10']}, {send: {records: [a]}, generations: ['0.11']}",
    ],
)
def test_a_record_name_may_be_given_again_where_nobody_could_mistake_it(steps: str) -> None:
    planned(HEAD + f"schedule: [{steps}]\n")


def test_a_fault_of_a_mix_does_not_last_for_ever() -> None:
    assert "[1, inf] is not [shortest, longest] in seconds" in refusal(CHAOS.replace("[1, 2]", "[1, .inf]"))
    with pytest.raises(UsageError, match="duration inf s is out of range"):
        plan(scenario.parse(CHAOS), duration_s=float("inf"))


@pytest.mark.parametrize("wrong", [CHAOS.replace("node: 1", "node: 9"), CHAOS.replace("node: 1", "nod: 1")])
def test_a_fault_that_cannot_be_is_refused_with_the_file_it_is_written_in(wrong: str) -> None:
    with pytest.raises(UsageError, match=r"^some/file\.yaml: chaos\.faults\[1\]: "):
        plan(scenario.parse(wrong, "some/file.yaml"))
    assert refusal(wrong).startswith("small: chaos.faults[1]: ")


@pytest.mark.parametrize(
    "steps",
    [
        "{inject: {fault: kill, node: 0, as: a}}, {heal: a}, {inject: {fault: pause, node: 0, as: b}}",
        "{inject: {fault: kill, node: 0, as: a}}, {inject: {fault: pause, node: 1, as: b}}",
        "{inject: {fault: clock, node: 0, offset_ms: 9000, as: a}}, {inject: {fault: pause, node: 0, as: b}}",
        "{inject: {fault: partition, links: [[1, 0]], as: a}}, {inject: {fault: partition, links: [[0, 1]], as: b}}",
        "{inject: {fault: kill, node: leader, as: a}}, {inject: {fault: kill, node: follower, as: b}}",
    ],
)
def test_faults_that_leave_each_other_alone_may_overlap(steps: str) -> None:
    assert len(planned(HEAD + f"schedule: [{steps}]\n").schedule.faults) == 2


def test_a_parked_fetch_that_would_always_time_out_is_refused() -> None:
    waits = {"settings.replica.fetch.wait.max.ms": "5000", "settings.replica.socket.timeout.ms": "4000"}
    with pytest.raises(UsageError, match=r"every parked fetch would time out"):
        plan(scenario.parse(CHAOS), overrides=waits)


@pytest.mark.parametrize(("generation", "known"), [("0.10", False), ("0.11", True), (CURRENT_GENERATION, True)])
def test_chaos_is_survived_without_duplicates_where_producers_can_number_their_records(
    generation: str, known: bool
) -> None:
    chaos = plan(scenario.load("random-chaos"), generation=generation)
    assert chaos.workload.numbers_records is known
    assert manifest(chaos, "r", now()).guarantees["idempotent_producers"] is known


def test_unknown_targets_generations_knobs_and_seeds_are_refused() -> None:
    small = scenario.parse(CHAOS)
    with pytest.raises(UsageError, match="target 'compos' is not known"):
        plan(small, "compos")
    with pytest.raises(UsageError, match=r"generation '0\.9' is not known"):
        plan(small, generation="0.9")
    with pytest.raises(UsageError, match="knob 'truncaton' is not known"):
        plan(small, overrides={"replication.truncaton": "hw"})
    with pytest.raises(UsageError, match="seed -1 is out of range"):
        plan(small, seed=-1)
    with pytest.raises(UsageError, match="duration -1 s is out of range"):
        plan(small, duration_s=-1)


def test_the_resolved_configuration_holds_every_default() -> None:
    resolved = planned().resolved()
    assert resolved["settings"]["broker.session.timeout.ms"] == 1500
    assert resolved["knobs"]["truncation"] == "diverging_fetch"
    assert resolved["workload"]["producers"] == 4


@pytest.mark.parametrize(
    ("steps", "settings", "permitted"),
    [
        ("[{send: {per_partition: 1}}]", "{}", False),
        ("[{inject: {fault: clock, node: 0, offset_ms: 3600000, as: away}}, {heal: away}]", "{}", False),
        ("[{inject: {fault: clock, node: 0, offset_ms: 691200000, as: away}}, {heal: away}]", "{}", True),
        ("[{inject: {fault: clock, node: 0, offset_ms: -691200000, as: away}}, {heal: away}]", "{}", True),
        ("[{send: {per_partition: 1, age_s: 691200}}]", "{}", True),
        ("[{send: {per_partition: 1, age_s: -691200}}]", "{}", False),
        (
            "[{send: {records: [m0], age_s: -691200}}, {inject: {fault: clock, node: 0, offset_ms: 691200000, as: c}}]",
            "{}",
            True,
        ),
        ("[{send: {per_partition: 1}}]", "{log.retention.ms: 604800000}", True),
        ("[{delete_records: {before: 4}}]", "{}", True),
    ],
)
def test_records_may_be_deleted_where_a_limit_or_a_step_asks_for_it_and_where_time_is_off_by_kafkas_own_limit(
    steps: str, settings: str, permitted: bool
) -> None:
    made = planned(f"{HEAD}cluster: {{settings: {settings}}}\nschedule: {steps}\n")
    assert manifest(made, "r", now()).guarantees["retention"] is permitted


def test_a_random_mix_whose_clocks_are_off_by_kafkas_own_limit_may_delete_records() -> None:
    mix = "chaos: {faults: [{fault: clock, node: any, offset_ms: 691200000}]}\n"
    assert manifest(planned(HEAD + mix), "r", now()).guarantees["retention"] is True


@pytest.mark.parametrize(("offset_ms", "permitted"), [(3_600_000, False), (50_000_000, True)])
def test_a_given_topic_may_delete_records_where_a_clock_is_off_by_half_a_day(
    offset_ms: int, permitted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = planned(f"{HEAD}chaos: {{faults: [{{fault: clock, node: any, offset_ms: {offset_ms}}}]}}\n")
    assert manifest(made, "r", now()).guarantees["retention"] is False
    monkeypatch.setattr(type(made.system), "given_topics", ("orders",))
    assert manifest(made, "r", now()).guarantees["retention"] is permitted
