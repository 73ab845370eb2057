"""Plans for real Kafka; the releases in the cache are empty directories, for nothing is started."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness import scenario
from harness.errors import EnvironmentFault, UsageError
from harness.payload import Carried
from harness.replication.knobs import GENERATIONS
from harness.runner import plan
from harness.runner.manifest import manifest, now
from harness.scenario import Scenario
from harness.targets.kafka import shim
from harness.targets.kafka.layout import Control
from harness.targets.kafka.releases import TRIED

SCENARIO = """\
id: small
title: A small scenario
source: a test
topics: [{name: ledger, partitions: 2}]
workload: {name: unique_sends}
chaos: {faults: [{fault: disk_full, node: 0, free_bytes: 0}]}
"""


TARGETS = ("process:4.1.0", "process:4.1.0#quorum", "process:4.1.0#combined")


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with a directory for every release that is known to run; the shim is compiled into it once."""
    place = tmp_path_factory.mktemp("cache")
    for version in TRIED:
        (place / "seawall" / "kafka" / version).mkdir(parents=True)
    return place


@pytest.fixture(autouse=True)
def cache(releases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache is that one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(releases))


def small(more: str = "") -> Scenario:
    return scenario.parse(SCENARIO + more)


def refusal(one: Scenario, target: str = "process:0.10.2.2", generation: str | None = None, **overrides: str) -> str:
    with pytest.raises(UsageError) as refused:
        plan(one, target, generation, overrides={key.replace("__", "."): value for key, value in overrides.items()})
    return str(refused.value)


@pytest.mark.parametrize(
    "versions",
    [TRIED[::4], pytest.param(TRIED, marks=pytest.mark.nightly("plans for every release; by day for three"))],
)
def test_every_shipped_scenario_is_planned_on_every_release_or_refused_with_a_reason(versions: Sequence[str]) -> None:
    planned = 0
    for one in scenario.shipped():
        for version in versions:
            try:
                planned += plan(one, f"process:{version}").system.release is not None
            except UsageError as refused:
                is_without_client = "workload.client=java:" in str(refused)  # whose jars are not in this cache
                assert one.replication or version in str(refused) or is_without_client  # noqa: PT017
    assert planned > len(scenario.shipped()) * len(versions) / 2


def test_the_generation_is_that_of_the_release_with_the_bugs_that_it_has() -> None:
    assert plan(small('generation: "3.7"\n'), "process:0.10.2.2").generation == "0.10"
    assert plan(small(), "process:2.8.0").system.protocol.knobs.stale_truncation_applied
    assert not plan(small(), "process:2.8.1").system.protocol.knobs.stale_truncation_applied
    assert "speaks generation 0.10, not 4.1" in refusal(small(), generation="4.1")


def test_predictions_are_those_of_the_generation() -> None:
    one = small('predictions: {"0.10": [{kind: lost-write}]}\n')
    assert [prediction.kind for prediction in plan(one, "process:0.10.2.2").forecast.predictions] == ["lost-write"]
    assert not plan(one, "process:0.11.0.3").forecast.predictions


@pytest.mark.parametrize(("last", "known"), [("producer: q, idempotent: true", True), ("producer: q", False)])
def test_a_producer_of_transactions_is_idempotent_and_one_that_is_not_makes_not_all_of_them_so(
    last: str, known: bool
) -> None:
    committed = "{send: {records: [a], producer: p, transaction: commit}}"
    steps = f"schedule: [{committed}, {{send: {{records: [b], {last}}}}}]\n"
    idle = SCENARIO.partition("chaos:")[0].replace("{name: unique_sends}", "{name: unique_sends, rate: 0}")
    planned = plan(scenario.parse(idle + steps), "process:4.1.0")
    assert manifest(planned, "r", now()).guarantees["idempotent_producers"] is known


def test_what_only_the_built_in_cluster_can_do_is_refused() -> None:
    assert "which Kafka 0.10.2.2 cannot" in refusal(small("replication: {fetch_fencing: false}\n"))
    assert "has no such switch" in refusal(small(), replication__truncation="hw")
    assert plan(small("replication: {stale_truncation_applied: true}\n"), "process:2.8.0").system.release


def test_a_fault_that_this_machine_cannot_do_to_real_kafka_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shim, "is_available", lambda: False)
    assert "cannot do 'disk_full'" in refusal(small())


def test_a_release_that_was_not_fetched_and_a_target_that_is_none_are_told_apart() -> None:
    with pytest.raises(EnvironmentFault, match="seawall kafka fetch"):
        plan(small(), "process:3.8.0")
    assert "did you mean 'builtin'" in refusal(small(), "bulitin")
    assert "is no unpacked Kafka distribution" in refusal(small(), "process:/nowhere")
    assert f"{Path.home()}/nowhere is no unpacked" in refusal(small(), "process:~/nowhere")


def with_faults(*faults: str) -> Scenario:
    schedule = "".join(f"  - inject: {{{fault}, as: f{number}}}\n" for number, fault in enumerate(faults))
    return scenario.parse(SCENARIO.partition("chaos:")[0] + f"schedule:\n{schedule}")


def test_who_controls_is_part_of_the_target_s_name() -> None:
    controls = {target: plan(small(), target).system.control for target in TARGETS}
    assert list(controls.values()) == [Control.ONE, Control.QUORUM, Control.COMBINED]
    made = plan(small(), "process:4.1.0#quorum", seed=5)
    assert "--target 'process:4.1.0#quorum'" in manifest(made, "small/1", now()).configuration["reproduce"]


def test_controllers_that_a_release_does_not_have_are_refused() -> None:
    assert "Kafka 2.8.1 keeps its state in ZooKeeper, and has no quorum" in refusal(small(), "process:2.8.1#combined")
    assert "controllers cannot be 'quorrum'; did you mean 'quorum'?" in refusal(small(), "process:4.1.0#quorrum")


def test_too_few_brokers_to_be_a_quorum_are_refused() -> None:
    two = scenario.parse(
        SCENARIO.replace("partitions: 2", "partitions: 2, replication_factor: 2") + "cluster: {brokers: 2}\n"
    )
    assert "cluster.brokers: 2, and 3 nodes at least" in refusal(two, "process:4.1.0#combined")
    assert plan(two, "process:4.1.0#quorum").system.release


def test_a_controller_that_the_target_does_not_have_is_refused() -> None:
    second = with_faults("fault: kill, node: controller-2")
    assert plan(second, "process:4.1.0#quorum").system.release
    for target in ("process:4.1.0", "process:4.1.0#combined", "builtin"):
        assert f"there is no node 'controller-2' in target '{target}'" in refusal(second, target)


def test_combined_nodes_are_not_cut_off_from_the_controller_alone() -> None:
    for fault in ("links: [[0, controller]]", "between: [controller, 1]"):
        cut = with_faults(f"fault: partition, {fault}")
        assert "brokers are the controllers" in refusal(cut, "process:4.1.0#combined")
        assert plan(cut, "process:4.1.0#quorum").system.release
    for fault in ("fault: kill, node: controller", "fault: partition, isolate: controller"):
        assert plan(with_faults(fault), "process:4.1.0#combined").system.release


def test_two_of_a_quorum_may_be_killed_one_after_the_other() -> None:
    twice = with_faults("fault: kill, node: controller", "fault: kill, node: controller")
    assert plan(twice, "process:4.1.0#quorum").system.release
    assert "both need the process of node controller" in refusal(twice, "process:4.1.0")


def test_without_java_nothing_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(EnvironmentFault, match=r"Kafka needs Java 17 or newer.* none in JAVA_HOME \(/nowhere\)\."):
        plan(small(), "process:4.1.0")


def test_a_setting_that_is_not_known_is_answered_with_a_few_that_are() -> None:
    said = refusal(small("cluster: {settings: {min.insync: 2}}\n"))
    assert "'min.insync.replicas'" in said
    assert said.count("'") <= 8


def test_the_manifest_says_which_kafka_it_was_how_it_was_configured_and_how_it_was_looked_at() -> None:
    made = plan(small(), "process:0.10.2.2", seed=5, overrides={"settings.min.insync.replicas": "2"})
    written = manifest(made, "small/1", now())
    assert written.versions["kafka"] == "0.10.2.2"
    assert " version " in written.versions["java"]
    assert written.guarantees["timeline"] == "sampled"
    assert written.guarantees["min_insync_replicas"] == 2
    assert written.configuration["settings"]["zookeeper.session.timeout.ms"] == "3000"
    assert "--target process:0.10.2.2" in written.configuration["reproduce"]
    assert "--generation" not in written.configuration["reproduce"]


@pytest.mark.parametrize(
    ("version", "settings", "carried"),
    [
        ("4.1.0", "", Carried()),
        ("0.11.0.3", "", Carried()),
        ("0.10.2.2", "", Carried(headers=False)),
        ("2.1.1", "log.message.format.version: 0.10.2-IV0", Carried(headers=False)),
        ("2.1.1", 'log.message.format.version: "0.11.0"', Carried()),
        ("2.1.1", "log.message.format.version: 0.9.0", Carried(headers=False, timestamp=False)),
        ("4.1.0", "log.message.timestamp.type: LogAppendTime", Carried(timestamp=False)),
        ("4.1.0", "log.message.timestamp.type: CreateTime", Carried()),
    ],
)
def test_clients_know_which_parts_of_a_record_a_release_keeps(version: str, settings: str, carried: Carried) -> None:
    one = small(f"cluster: {{settings: {{{settings}}}}}\n")
    assert plan(one, f"process:{version}").system.carried == carried


def test_the_built_in_cluster_keeps_every_part_of_a_record_on_every_generation() -> None:
    assert {plan(small(), "builtin", name).system.carried for name in GENERATIONS} == {Carried()}


def test_a_scenario_that_leaves_combined_controllers_without_a_majority_is_refused() -> None:
    kip_101 = scenario.load("kip-101-double-failover")
    assert "no more than 1 of 3 hear each other" in refusal(kip_101, "process:4.1.0#combined")
    assert plan(kip_101, "process:4.1.0#quorum").system.release
