"""What every target must do, asked of the simulated one: the same faults, probes and evidence in virtual time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import faults
from harness.broker.settings import Settings
from harness.errors import EnvironmentFault
from harness.fault import Fault
from harness.model import Link, NodeId, TopicPartition
from harness.replication.knobs import CURRENT_GENERATION, generation
from harness.runner.conditions import unsettled
from harness.simulation.stack.cluster import Request
from harness.target import LogDamage, TopicSpec
from harness.targets.simulated import SimulatedTarget
from harness.wire.batches import build
from harness.wire.keys import ApiKey
from harness.wire.messages import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

LEDGER = TopicPartition("ledger", 0)


@pytest.fixture
def target(tmp_path: Path) -> SimulatedTarget:
    """Three brokers that hold ``ledger-0``, preferably led by broker 0."""
    settings = Settings(min_insync_replicas=2, default_replication_factor=3)
    target = SimulatedTarget(tmp_path, 3, generation(CURRENT_GENERATION), settings, seed=1)
    target.start()
    target.create_topic(TopicSpec(LEDGER.topic, 1, 3, (tuple(map(NodeId, (0, 1, 2))),)))
    return target


def produce(target: SimulatedTarget, node: str = "0", acks: int = -1) -> tuple[int, int]:
    data = TopicProduceData(LEDGER.topic, [PartitionProduceData(0, build([b"value"]))])
    request = Request(ApiKey.PRODUCE, 9, ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[data]))
    answer = target.cluster.ask(node, request)
    assert isinstance(answer, ProduceResponse)
    told = answer.responses[0].partition_responses[0]
    return told.error_code, told.base_offset


def end_offset(target: SimulatedTarget, node: str) -> int:
    replica = target.replica(node, LEDGER)
    assert replica is not None
    return replica.log_end_offset


def settled(target: SimulatedTarget) -> bool:
    return target.clock.sleep_until(lambda: not unsettled(target, [LEDGER]), 20.0, 0.05)


@contextmanager
def in_effect(target: SimulatedTarget, **written: object) -> Iterator[Fault]:
    """Inject a fault, and leave the cluster whole again."""
    fault = faults.parse(written, "test").aimed(target.view(), seed=1)
    fault.inject(target)
    try:
        yield fault
    finally:
        fault.heal(target)
        assert fault.probe_healed(target).holds
        assert settled(target)


@pytest.mark.parametrize(
    "written",
    [
        {"fault": "kill", "node": 2},
        {"fault": "kill", "node": "controller"},
        {"fault": "stop", "node": 2},
        {"fault": "power_loss", "node": 2},
        {"fault": "pause", "node": 2},
        {"fault": "pause", "node": "controller"},
        {"fault": "partition", "links": [[2, 1]]},
        {"fault": "partition", "isolate": 2},
        {"fault": "partition", "links": [["clients", 2]]},
        {"fault": "partition", "links": [[2, "clients"]]},
        {"fault": "partition", "links": [["clients", 2], [2, "clients"]]},
        {"fault": "disk_full", "node": 2, "free_bytes": 0},
        {"fault": "clock", "node": 2, "offset_ms": -60000},
        {"fault": "clock", "node": "controller", "offset_ms": 60000},
    ],
    ids=str,
)
def test_a_fault_is_seen_exactly_while_it_is_in_effect(target: SimulatedTarget, written: dict[str, object]) -> None:
    fault = faults.parse(written, "test").aimed(target.view(), seed=1)
    assert not fault.probe(target).holds
    with in_effect(target, **written) as injected:
        assert target.clock.sleep_until(lambda: injected.probe(target).holds, 10.0, 0.05)
    assert not fault.probe(target).holds


def test_a_directed_cut_holds_one_direction_and_not_the_other(target: SimulatedTarget) -> None:
    with in_effect(target, fault="partition", links=[[2, 1]]):
        assert target.is_cut(Link("2", "1")).holds
        reverse = target.is_cut(Link("1", "2"))
        assert not reverse.holds
        assert "nothing is withheld" in reverse.seen


def test_a_cut_survives_the_restart_of_either_end(target: SimulatedTarget) -> None:
    with in_effect(target, fault="partition", links=[[2, 1]]):
        target.kill("1")
        target.restart("1")
        assert target.is_cut(Link("2", "1")).holds


def test_a_cut_made_while_its_end_was_paused_is_in_force_when_it_goes_on(target: SimulatedTarget) -> None:
    with in_effect(target, fault="pause", node=1) as paused:
        target.cut([Link("2", "1")])
        paused.heal(target)
        assert target.is_cut(Link("2", "1")).holds
        target.mend([Link("2", "1")])


def test_a_node_that_was_killed_was_not_shut_down_and_has_not_exited(target: SimulatedTarget) -> None:
    probes = (target.is_dead, target.is_shut_down, target.has_exited, target.has_lost_power, target.is_running)
    seen = []
    target.kill("1")
    seen.append([probe("1").holds for probe in probes])
    target.restart("1")
    target.shut_down("1")
    seen.append([probe("1").holds for probe in probes])
    target.restart("1")
    target.lose_power("1")
    seen.append([probe("1").holds for probe in probes])
    target.restart("1")
    target.limit_disk("1", 0)
    assert target.clock.sleep_until(lambda: target.has_exited("1").holds, 10.0)
    seen.append([probe("1").holds for probe in probes])
    assert seen == [
        [True, False, False, False, False],
        [False, True, False, False, False],
        [True, False, False, True, False],
        [False, False, True, False, False],
    ]


def test_a_power_loss_takes_what_was_not_flushed_and_a_sync_saves_it(target: SimulatedTarget) -> None:
    assert [produce(target), produce(target)] == [(0, 0), (0, 1)]
    target.sync_disk("1")
    assert produce(target) == (0, 2)
    target.clock.sleep(1)
    ends = []
    for node in ("1", "2"):
        target.lose_power(node)
        assert "dropped from the page cache: ledger-0" in target.has_lost_power(node).seen
        target.cut([Link("0", node)])
        target.restart(node)
        ends.append(end_offset(target, node))
        target.mend([Link("0", node)])
        assert settled(target)
    assert ends[0] == 2
    assert ends[1] < 2


def test_a_wiped_disk_is_empty_until_the_node_comes_back_and_replicates(target: SimulatedTarget) -> None:
    assert produce(target) == (0, 0)
    with pytest.raises(EnvironmentFault, match="is not at rest: it is running"):
        target.wipe_disk("2")
    target.kill("2")
    assert not target.is_disk_empty("2").holds
    target.wipe_disk("2")
    assert target.is_disk_empty("2").holds
    target.restart("2")
    assert settled(target)
    assert not target.is_disk_empty("2").holds
    assert end_offset(target, "2") == 1


@pytest.mark.parametrize("how", ["flip", "cut"])
def test_a_damaged_batch_is_seen_to_be_damaged(target: SimulatedTarget, how: str) -> None:
    assert [produce(target), produce(target)] == [(0, 0), (0, 1)]
    damage = LogDamage(LEDGER, 1, "flip" if how == "flip" else "cut")
    target.clock.sleep(1)
    target.kill("2")
    assert not target.is_log_damaged("2", damage).holds
    target.damage_log("2", damage)
    assert target.is_log_damaged("2", damage).holds
    assert not target.is_log_damaged("2", LogDamage(LEDGER, 0, damage.how)).holds


def test_a_refused_write_of_the_node_s_own_is_told_with_what_it_was(target: SimulatedTarget) -> None:
    assert produce(target) == (0, 0)
    target.limit_disk("0", 10)
    assert target.is_disk_full("0").holds
    assert not target.has_refused_write("0").holds
    produce(target, acks=1)
    receipt = target.has_refused_write("0")
    assert receipt.holds
    assert "append ledger-0" in receipt.seen
    target.clock.sleep(0.1)
    assert target.has_exited("0").holds
    target.limit_disk("0", None)
    target.restart("0")
    assert not target.has_refused_write("0").holds


def test_a_restarted_node_has_its_whole_budget_again(target: SimulatedTarget) -> None:
    disk = target.cluster.nodes["2"].disk
    target.limit_disk("2", 100_000)
    for _ in range(30):
        produce(target)
    target.kill("2")
    assert disk.free_bytes is not None
    assert disk.free_bytes < 98_500
    target.restart("2")
    assert disk.free_bytes > 99_000


def test_a_node_that_was_restarted_after_a_power_loss_and_killed_has_lost_no_power(target: SimulatedTarget) -> None:
    target.lose_power("2")
    assert target.has_lost_power("2").holds
    target.restart("2")
    target.kill("2")
    assert target.is_dead("2").holds
    assert not target.has_lost_power("2").holds


def test_a_clock_stays_wrong_across_a_restart_and_two_nodes_are_wrong_by_themselves(target: SimulatedTarget) -> None:
    with in_effect(target, fault="clock", node=2, offset_ms=3_600_000):
        target.kill("2")
        target.restart("2")
        assert target.clock_offset_ms("2") == 3_600_000
        assert target.clock_offset_ms("1") == 0


def test_an_operator_elects_whom_he_names_unless_the_controller_refuses(target: SimulatedTarget) -> None:
    target.elect(LEDGER, NodeId(1), unclean=False)
    target.clock.sleep(0.1)
    assert target.view().partitions[LEDGER].leader == 1
    with pytest.raises(EnvironmentFault, match="election of ledger-0 was refused"):
        target.elect(LEDGER, NodeId(7), unclean=False)
    with pytest.raises(EnvironmentFault, match="was refused"):
        target.elect(TopicPartition("nothing", 0), None, unclean=False)


def test_faults_of_a_node_that_does_not_exist_are_refused(target: SimulatedTarget) -> None:
    acts: list[Callable[[], object]] = [
        lambda: target.kill("7"),
        lambda: target.pause("7"),
        lambda: target.cut([Link("0", "7")]),
        lambda: target.limit_disk("7", 0),
        lambda: target.offset_clock("7", 5),
        lambda: target.lose_power("7"),
    ]
    for act in acts:
        with pytest.raises(EnvironmentFault, match="no node '7'"):
            act()


def test_a_dead_or_frozen_node_answers_nothing(target: SimulatedTarget) -> None:
    target.kill("1")
    target.pause("2")
    for node in ("1", "2"):
        assert target.replica(node, LEDGER) is None
        assert not target.is_running(node).holds
        for ask in (target.clock_offset_ms, target.is_disk_full, target.sync_disk, target.shut_down):
            with pytest.raises(EnvironmentFault, match=f"node {node} does not answer"):
                ask(node)
    with pytest.raises(EnvironmentFault, match="cannot be signalled"):
        target.pause("1")
    target.pause("controller")
    assert target.view().partitions == {}


def test_a_running_node_is_not_started_twice(target: SimulatedTarget) -> None:
    with pytest.raises(EnvironmentFault, match="it is running"):
        target.restart("0")


def test_the_view_and_the_replicas_agree_on_who_leads(target: SimulatedTarget) -> None:
    view = target.view()
    assert view.live == (0, 1, 2)
    leader = view.partitions[LEDGER].leader
    seen = [target.replica(node, LEDGER) for node in ("0", "1", "2")]
    assert [replica.leader for replica in seen if replica] == [leader] * 3
    assert target.replica("0", TopicPartition("nothing", 0)) is None


def test_a_topic_that_cannot_be_is_refused_in_words(target: SimulatedTarget) -> None:
    with pytest.raises(EnvironmentFault, match="topic 'ledger' was not created"):
        target.create_topic(TopicSpec("ledger", 1, 3))


def test_evidence_tells_of_every_node_and_every_record_dead_nodes_included(
    target: SimulatedTarget, tmp_path: Path
) -> None:
    assert produce(target) == (0, 0)
    target.clock.sleep(1)
    target.pause("0")
    target.kill("1")
    target.stop()
    target.stop()
    rows = target.timeline("r")
    finals = {row["node"]: json.loads(row["detail"])["source"] for row in rows if row["kind"] == "final"}
    assert finals == {0: "live", 1: "disk", 2: "live", 100: "live"}
    assert {row["run"] for row in rows} == {"r"}
    assert [(row["node"], row["offset"]) for row in target.replica_logs("r")] == [(0, 0), (1, 0), (2, 0)]
    logs = tmp_path / "logs"
    logs.mkdir()
    target.copy_logs(logs)
    assert "Registered with the controller" in (logs / "broker-0.log").read_text()
    assert "Started controller epoch 1" in (logs / "controller.log").read_text()
