from __future__ import annotations

from dataclasses import replace
from typing import Any, get_type_hints

import pytest

import faults
from harness.controls import CONTROLS
from harness.errors import EnvironmentFault, UsageError
from harness.fault import Fault
from harness.model import Link, TopicPartition
from harness.observations import OBSERVATIONS
from harness.selection import NothingToAimAt
from harness.target import Target, includes
from harness.targets.builtin import BuiltinTarget
from harness.targets.compose.inspected_stack import InspectedStack
from harness.targets.compose.target import ComposeTarget
from harness.targets.kafka import shim
from harness.targets.kafka.process import ProcessTarget, controls
from harness.targets.kafka.releases import release
from harness.targets.simulated import SimulatedTarget
from harness.testing.scripted_target import ScriptedTarget, cluster_view, partition_view
from tests.faults.cases import CASES, Case
from tests.harness.targets.compose.files import BITNAMI, read

VIEW = cluster_view(3, {TopicPartition("ledger", 0): partition_view(1, [1, 0, 2])})

EVERY_FAULT = [(case, {"fault": kind, **written}) for kind, case in CASES.items() for written in case.scripted]


def aimed(written: dict[str, Any]) -> Fault:
    return faults.parse(written, "faults[0]").aimed(VIEW, seed=3)


def test_every_kind_of_fault_has_a_case() -> None:
    assert set(CASES) == faults.KINDS.own.keys()
    assert all(case.scripted for case in CASES.values())
    assert {kind for kind, case in CASES.items() if not case.asked} == {"corrupt_log"}, "asked elsewhere: see Case"


def test_the_scripted_target_supports_every_control() -> None:
    target: Target = ScriptedTarget()
    assert target.nodes() == ["0", "1", "2", "controller"]
    assert all(isinstance(target, control) for control in CONTROLS)


@pytest.mark.parametrize("direction", ["both", "in", "out"])
def test_a_node_without_others_cannot_be_isolated(direction: str) -> None:
    alone = replace(cluster_view(1, {TopicPartition("ledger", 0): partition_view(0, [0])}), controllers=())
    written = {"fault": "partition", "isolate": "any", "direction": direction}
    with pytest.raises(NothingToAimAt, match="there is no link to aim at"):
        faults.parse(written, "faults[0]").aimed(alone, seed=3)


@pytest.mark.parametrize("kind", CASES)
def test_the_target_of_a_case_supports_what_its_fault_needs(kind: str) -> None:
    target, needs = CASES[kind].target(), faults.KINDS[kind].needs
    assert isinstance(target, needs)
    assert includes(target.controls, needs)


@pytest.mark.parametrize("kind", sorted(faults.KINDS.own))
@pytest.mark.parametrize("method", ["inject", "probe", "heal", "probe_healed"])
def test_a_fault_calls_only_what_it_needs(kind: str, method: str) -> None:
    fault = faults.KINDS[kind]
    assert get_type_hints(getattr(fault, method))["target"] in fault.needs.__mro__


def protocols() -> frozenset[type[Target]]:
    """Those of every target, and those that faults bring themselves."""
    return OBSERVATIONS | CONTROLS.union(fault.needs for fault in faults.KINDS.own.values())


def has(target: type[Target], control: type[Target]) -> bool:
    """Whether a class has all methods of a protocol."""
    return all(hasattr(target, name) for name in vars(control) if not name.startswith("_"))


@pytest.mark.parametrize("target", [BuiltinTarget, SimulatedTarget], ids=lambda target: target.name)
def test_a_target_has_the_methods_of_what_it_supports_and_of_nothing_else(
    target: type[BuiltinTarget | SimulatedTarget],
) -> None:
    assert {control for control in protocols() if has(target, control)} == {
        control for control in protocols() if includes(target.controls, control)
    }


@pytest.mark.parametrize("target", [ProcessTarget, ComposeTarget], ids=lambda target: target.name)
def test_a_target_of_real_kafka_has_the_methods_of_what_a_machine_may_support(
    target: type[ProcessTarget | ComposeTarget], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shim, "is_available", lambda: True)
    kraft = InspectedStack(read(BITNAMI), {}, (), release("4.1.0"), takes_shim=True)
    supported = controls() if target is ProcessTarget else kraft.controls
    assert {control for control in protocols() if has(target, control)} == {
        control for control in protocols() if includes(supported, control)
    }


@pytest.mark.parametrize(("case", "written"), EVERY_FAULT, ids=str)
class TestEveryFault:
    def test_is_in_effect_exactly_between_injection_and_healing(self, case: Case, written: dict[str, Any]) -> None:
        target, fault = case.target(), aimed(written)
        assert not fault.probe(target).holds
        fault.inject(target)
        assert fault.probe(target).holds
        assert not fault.probe_healed(target).holds
        fault.heal(target)
        assert not fault.probe(target).holds
        assert fault.probe_healed(target).holds

    def test_that_silently_does_nothing_is_not_proven(self, case: Case, written: dict[str, Any]) -> None:
        target, fault = case.target(ignored={case.does_it}), aimed(written)
        fault.inject(target)
        assert not fault.probe(target).holds

    def test_may_be_healed_without_having_been_injected(self, case: Case, written: dict[str, Any]) -> None:
        target, fault = case.target(), aimed(written)
        fault.heal(target)
        assert fault.probe_healed(target).holds

    def test_aims_the_same_again_and_says_in_plain_data_what_it_is(self, case: Case, written: dict[str, Any]) -> None:
        once, again = aimed(written), aimed(written)
        assert once == again
        assert faults.parse({"fault": once.kind, **once.parameters()}, "journal") == once
        assert once.nodes()


def test_a_clock_step_of_nothing_is_not_proven() -> None:
    target, fault = ScriptedTarget(), aimed({"fault": "clock", "node": 0, "offset_ms": 0})
    fault.inject(target)
    assert not fault.probe(target).holds


def test_healing_a_full_disk_starts_the_broker_that_halted_for_it() -> None:
    target, fault = ScriptedTarget(), aimed({"fault": "disk_full", "node": 1})
    fault.inject(target)
    target.kill("1")
    fault.heal(target)
    assert ("restart", "1") in target.calls


def test_a_node_that_does_not_answer_is_not_dead_until_it_is_killed() -> None:
    target, fault = ScriptedTarget(), aimed({"fault": "kill", "node": 1})
    target.pause("1")
    assert not fault.probe(target).holds
    fault.inject(target)
    assert fault.probe(target).holds


@pytest.mark.parametrize(
    ("written", "calls"),
    [
        ({"fault": "wipe_disk", "node": 1}, ["kill", "wipe_disk"]),
        ({"fault": "wipe_disk", "node": 1, "clean": True}, ["shut_down", "wipe_disk"]),
        ({"fault": "corrupt_log", "node": 1, "topic": "ledger", "offset": 0}, ["kill", "damage_log"]),
        (
            {"fault": "corrupt_log", "node": 1, "topic": "ledger", "offset": 0, "clean": True},
            ["shut_down", "damage_log"],
        ),
    ],
)
def test_a_disk_is_touched_when_its_node_is_down_and_the_way_down_is_part_of_the_proof(
    written: dict[str, Any], calls: list[str]
) -> None:
    target, fault = ScriptedTarget(), aimed(written)
    fault.inject(target)
    assert [call[0] for call in target.calls] == calls
    reckless = ScriptedTarget(ignored={calls[0]})
    fault.inject(reckless)
    assert not fault.probe(reckless).holds


@pytest.mark.parametrize("kind", ["kill", "stop", "power_loss", "wipe_disk"])
def test_a_broker_that_was_started_again_and_then_ended_itself_is_healed_of_the_fault(kind: str) -> None:
    target, fault = ScriptedTarget(), aimed({"fault": kind, "node": 1})
    fault.inject(target)
    fault.heal(target)
    target.exited.add("1")
    fault.heal(target)
    assert fault.probe_healed(target) == target.has_exited("1")
    assert [call[0] for call in target.calls].count("restart") == 1


def test_links_of_a_broker_that_has_ended_itself_are_healed() -> None:
    target, fault = ScriptedTarget(), aimed({"fault": "partition", "links": [[2, 1]]})
    fault.inject(target)
    assert not fault.probe_healed(target).holds
    target.exited.add("1")
    assert fault.probe_healed(target).holds


def test_a_mended_link_is_not_healed_while_what_is_sent_over_it_gets_lost_for_no_known_reason() -> None:
    target, fault = ScriptedTarget(lossy={Link("2", "1")}), aimed({"fault": "partition", "links": [[2, 1]]})
    fault.inject(target)
    fault.heal(target)
    assert fault.probe_healed(target) == target.carries(Link("2", "1"))
    assert not fault.probe_healed(target).holds
    target.lossy.clear()
    assert fault.probe_healed(target).holds


@pytest.mark.parametrize(
    "other",
    [
        {"fault": "partition", "links": [[1, 2]]},
        *({"fault": kind, "node": 1} for kind in ("kill", "stop", "power_loss", "pause")),
    ],
    ids=str,
)
def test_the_receipt_of_a_mended_link_names_the_other_fault_that_keeps_its_answers(other: dict[str, Any]) -> None:
    target, fault, reason = ScriptedTarget(), aimed({"fault": "partition", "links": [[2, 1]]}), aimed(other)
    fault.inject(target)
    reason.inject(target)
    assert not fault.probe_healed(target).holds
    fault.heal(target)
    receipt = fault.probe_healed(target)
    assert receipt.holds
    assert reason.probe(target).seen in receipt.seen


def test_the_proof_of_a_full_disk_says_whether_a_write_of_the_brokers_own_was_refused() -> None:
    target, fault = ScriptedTarget(written_to={"2"}), aimed({"fault": "disk_full", "node": 1})
    fault.inject(target)
    assert fault.probe(target).seen == "the disk of node 1 is full; node 1 has refused no write of its own"
    busy = aimed({"fault": "disk_full", "node": 2})
    busy.inject(target)
    assert busy.probe(target).seen == "node 2 has refused a write of its own"


def test_a_full_disk_that_must_refuse_a_write_is_not_proven_by_a_scratch_file() -> None:
    target, fault = ScriptedTarget(), aimed({"fault": "disk_full", "node": 1, "must_refuse": True})
    fault.inject(target)
    assert not fault.probe(target).holds
    target.written_to.add("1")
    assert fault.probe(target).holds


def test_a_broker_that_is_about_to_halt_for_its_full_disk_is_not_healed() -> None:
    target, fault = ScriptedTarget(written_to={"1"}), aimed({"fault": "disk_full", "node": 1})
    fault.inject(target)
    target.ignored.add("limit_disk")
    fault.heal(target)
    assert fault.probe_healed(target).seen == "node 1 answers; node 1 has refused a write of its own"


def test_a_failed_log_directory_is_proven_once_the_broker_has_taken_it_offline_or_has_halted() -> None:
    target, fault = ScriptedTarget(), aimed({"fault": "log_dir_failure", "node": 1, "log_dir": 0})
    fault.inject(target)
    assert not fault.probe(target).holds
    assert fault.probe(target).seen == "log directory 0 of node 1 has failed; the broker has not noticed yet"
    target.offline["1"] = {1}
    assert not fault.probe(target).holds
    target.offline["1"] = {0}
    assert fault.probe(target).seen == "log directory 0 of node 1 has failed; the broker has taken it offline"
    assert fault.probe(target).holds
    target.offline.clear()
    target.exited.add("1")
    assert fault.probe(target).holds


def test_a_broker_that_does_not_say_which_directories_it_has_is_neither_broken_nor_healed() -> None:
    target, fault = ScriptedTarget(), aimed({"fault": "log_dir_failure", "node": 1, "log_dir": 0})
    fault.inject(target)
    target.silent.add("1")
    for look in (fault.probe, fault.heal, fault.probe_healed):
        with pytest.raises(EnvironmentFault, match="node 1 does not answer"):
            look(target)


def test_a_failed_log_directory_need_not_be_noticed_where_the_scenario_says_so() -> None:
    written = {"fault": "log_dir_failure", "node": 1, "log_dir": 0, "must_notice": False}
    target, fault = ScriptedTarget(), aimed(written)
    fault.inject(target)
    assert fault.probe(target).holds
    target.offline["1"] = {0}
    target.ignored.add("fail_log_dir")
    assert not aimed(written | {"log_dir": 1}).probe(target).holds


@pytest.mark.parametrize(
    "written", [{"fault": "disk_full", "node": 1}, {"fault": "log_dir_failure", "node": 1, "log_dir": 0}], ids=str
)
def test_a_disk_that_refuses_writes_for_another_reason_is_not_healed(written: dict[str, Any]) -> None:
    target, fault = ScriptedTarget(broken={"1"}), aimed(written)
    fault.inject(target)
    fault.heal(target)
    assert not fault.probe_healed(target).holds
    target.broken.clear()
    assert fault.probe_healed(target).holds


@pytest.mark.parametrize(
    ("written", "links"),
    [
        ({"isolate": 1, "direction": "out"}, {"1->0", "1->2", "1->controller"}),
        ({"isolate": 1, "direction": "in"}, {"0->1", "2->1", "controller->1"}),
        ({"isolate": "controller"}, {f"controller->{n}" for n in range(3)} | {f"{n}->controller" for n in range(3)}),
        ({"between": [0, 2]}, {"0->2", "2->0"}),
        ({"between": ["leader", 2], "direction": "out"}, {"1->2"}),
        ({"links": [["clients", 0], [0, "clients"]]}, {"clients->0", "0->clients"}),
    ],
)
def test_a_partition_cuts_the_links_it_names_and_no_others(written: dict[str, Any], links: set[str]) -> None:
    target = ScriptedTarget()
    aimed({"fault": "partition", **written}).inject(target)
    [(method, *cut)] = target.calls
    assert method == "cut"
    assert {str(link) for link in cut} == links
    assert all(isinstance(link, Link) for link in cut)


@pytest.mark.parametrize(
    ("written", "links"),
    [
        ({"isolate": 1, "direction": "out"}, {"1->0", "1->2", "1->controller-1", "1->controller-2", "1->controller-3"}),
        ({"isolate": "controller", "direction": "in"},
         {"0->controller-2", "1->controller-2", "2->controller-2",
          "controller-1->controller-2", "controller-3->controller-2"}),
        ({"between": [0, "controller"], "direction": "out"}, {f"0->controller-{n}" for n in (1, 2, 3)}),
        ({"links": [["controller", 0]]}, {f"controller-{n}->0" for n in (1, 2, 3)}),
        ({"links": [["controller", "controller-1"]]}, {f"controller-{n}->controller-1" for n in (2, 3)}),
        ({"links": [["controller-1", "controller-3"], ["controller", 0], ["controller-1", 0]]},
         {"controller-1->controller-3", *(f"controller-{n}->0" for n in (1, 2, 3))}),
    ],
)  # fmt: skip
def test_a_link_to_the_controller_is_one_to_each_of_a_quorum(written: dict[str, Any], links: set[str]) -> None:
    controllers = ("controller-1", "controller-2", "controller-3")
    view = replace(VIEW, controller="controller-2", controllers=controllers)
    fault = faults.parse({"fault": "partition", **written}, "faults[0]").aimed(view, seed=1)
    target = ScriptedTarget()
    fault.inject(target)
    [(_, *cut)] = target.calls
    assert sorted(str(link) for link in cut) == sorted(links)


def test_between_any_and_any_means_two_different_brokers() -> None:
    for seed in range(30):
        fault = faults.parse({"fault": "partition", "between": ["any", "any"]}, "faults[0]").aimed(VIEW, seed)
        assert len(fault.nodes()) == 2


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        (
            {"fault": "disk_full", "node": 0, "free_byte": 3},
            "faults[1]: unknown key 'free_byte'; did you mean 'free_bytes'?",
        ),
        ({"fault": "disc_full", "node": 0}, "faults[1]: unknown fault 'disc_full'; did you mean 'disk_full'?"),
        ({"node": 0}, "faults[1]: 'fault' is missing."),
        ({"fault": "kill"}, "faults[1]: 'node' is missing."),
        ({"fault": "kill", "node": "leadr"}, "did you mean 'leader'?"),
        ({"fault": "kill", "node": -1}, "neither a broker's id nor a selector"),
        ({"fault": "kill", "node": True}, "neither a broker's id nor a selector"),
        ({"fault": "kill", "node": "clients"}, "neither a broker's id nor a selector"),
        ({"fault": "disk_full", "node": 0, "free_bytes": -1}, "faults[1].free_bytes: -1 is refused"),
        ({"fault": "clock", "node": 0, "offset_ms": "3"}, "faults[1].offset_ms: '3' is refused"),
        ({"fault": "clock", "node": 0, "offset_ms": 10**30}, "faults[1].offset_ms: 1"),
        ({"fault": "corrupt_log", "node": 0, "offset": 0}, "faults[1]: 'topic' is missing."),
        ({"fault": "corrupt_log", "node": 0, "topic": "t", "offset": -1}, "faults[1].offset: -1 is refused"),
        ({"fault": "corrupt_log", "node": 0, "topic": "t", "offset": 0, "how": "bend"}, "faults[1].how: 'bend'"),
        ({"fault": "partition"}, "exactly one of links, isolate and between, not none"),
        ({"fault": "partition", "isolate": 0, "links": [[0, 1]]}, "not links and isolate"),
        ({"fault": "partition", "links": []}, "nothing would be cut"),
        ({"fault": "partition", "links": [[1, 1]]}, "two different ends"),
        ({"fault": "partition", "links": [[1, 2, 3]]}, "faults[1].links[0]"),
        ({"fault": "partition", "isolate": 0, "direction": "up"}, "faults[1].direction: 'up' is refused"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused_with_its_place(written: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        faults.parse(written, "faults[1]")
    assert sentence in str(refused.value)
