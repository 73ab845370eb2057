"""What every target must do: the same faults, probes and evidence; see :mod:`contract` for who is asked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal
from unittest.mock import ANY

import pytest

import faults
from harness.controls import DiskContents, DiskSpace, Elections, Links, LogDirectories, Power, Processes, WallClocks
from harness.errors import EnvironmentFault
from harness.model import Link, NodeId, TopicPartition, is_broker
from harness.target import LogDamage, Target, TopicSpec
from harness.targets.builtin import BuiltinTarget
from harness.targets.simulated import SimulatedTarget
from harness.wire.messages.quorum import METADATA_TOPIC
from tests.faults.cases import CASES
from tests.harness.targets.contract import IN_VIRTUAL_TIME_BY_DAY, LEDGER, NAMES, Trial, on_trial
from tests.replica_rows import held

LIKE_OTHERS: list[dict[str, object]] = [
    {"fault": "stop", "node": 2},
    {"fault": "stop", "node": "controller"},
    {"fault": "power_loss", "node": "controller"},
    {"fault": "wipe_disk", "node": 2},
    {"fault": "log_dir_failure", "node": 2, "log_dir": 0, "replaced": True},
]
"""Faults whose code another of the cases, or another test, runs on real processes by day."""

ASKED: list[dict[str, object]] = [{"fault": kind, **one} for kind, case in CASES.items() for one in case.asked]


@pytest.fixture(scope="module", params=NAMES)
def trial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    """A running cluster; each test leaves it whole."""
    with on_trial(request.param, tmp_path_factory.mktemp("cluster")) as one:
        yield one


@pytest.mark.parametrize("written", [one for one in ASKED if one not in LIKE_OTHERS], ids=str)
def test_a_fault_is_seen_exactly_while_it_is_in_effect(trial: Trial, written: dict[str, object]) -> None:
    trial.needs(faults.KINDS[str(written["fault"])].needs)
    fault = faults.parse(written, "test").aimed(trial.target.view(), seed=1)
    assert not trial.asked(fault.probe).holds
    with trial.in_effect(**written) as injected:
        assert trial.holds(injected.probe)
    assert not trial.asked(fault.probe).holds


@IN_VIRTUAL_TIME_BY_DAY
@pytest.mark.parametrize("written", [one for one in ASKED if one in LIKE_OTHERS], ids=str)
def test_a_fault_like_another_is_seen_exactly_while_it_is_in_effect(trial: Trial, written: dict[str, object]) -> None:
    test_a_fault_is_seen_exactly_while_it_is_in_effect(trial, written)


def test_a_directed_cut_holds_one_direction_and_not_the_other(trial: Trial) -> None:
    with trial.in_effect(fault="partition", links=[[2, 1]]):
        assert trial.holds(lambda target: target.is_cut(Link("2", "1")))
        reverse = trial.asked(lambda target: target.is_cut(Link("1", "2")))
        assert not reverse.holds
        assert "nothing is withheld" in reverse.seen or "arrived" in reverse.seen
        assert not trial.asked(lambda target: target.carries(Link("2", "1"))).holds
    assert trial.holds(lambda target: target.carries(Link("2", "1")))


@IN_VIRTUAL_TIME_BY_DAY
def test_a_cut_survives_the_restart_of_either_end(trial: Trial) -> None:
    trial.needs(Processes, Links)
    with trial.in_effect(fault="partition", links=[[2, 1]]):
        trial.target.kill("1")
        trial.target.restart("1")
        assert trial.holds(lambda target: target.is_cut(Link("2", "1")))


def test_a_cut_made_while_its_end_was_paused_is_in_force_when_it_goes_on(trial: Trial) -> None:
    trial.needs(Links)
    with trial.in_effect(fault="pause", node=1) as paused:
        trial.target.cut([Link("2", "1")])
        paused.heal(trial.target)
        assert trial.holds(lambda target: target.is_cut(Link("2", "1")))
        trial.target.mend([Link("2", "1")])


@IN_VIRTUAL_TIME_BY_DAY
def test_a_paused_node_can_be_killed_and_is_dead_only_then(trial: Trial) -> None:
    trial.needs(Processes)
    trial.target.pause("1")
    with trial.in_effect(fault="kill", node=1) as killed:
        receipt = killed.probe(trial.target)
        assert receipt.holds
        assert receipt.seen.endswith("is gone, by SIGKILL")
    trial.target.pause("1")
    assert not killed.probe(trial.target).holds
    trial.target.resume("1")
    assert trial.settles()


def test_how_a_node_ended_is_one_of_four_ways(trial: Trial) -> None:
    trial.needs(DiskSpace)
    target, seen = trial.target, []
    before = len(target.endings())
    probes = (target.is_dead, target.is_shut_down, target.has_exited, target.has_lost_power, target.is_running)
    loses_power = Power in target.controls
    for end in (target.kill, target.shut_down, *([target.lose_power] if loses_power else [])):
        end("1")
        seen.append([probe("1").holds for probe in probes])
        target.restart("1")
        assert trial.settles()
    target.limit_disk("1", 0)
    trial.send()
    assert trial.holds(lambda _: target.has_exited("1"))
    seen.append([probe("1").holds for probe in probes])
    target.limit_disk("1", None)
    target.restart("1")
    assert not target.has_exited("1").holds
    assert trial.settles()
    [ending] = target.endings()[before:]
    assert (ending.node, ending.blames, bool(ending.said)) == (NodeId(1), "", True)
    assert ending.status > 0
    halted = re.fullmatch(r"[\d:.]+ \[1\] FATAL: Halting: the log directory failed with errno 28\.", ending.said)
    assert halted or not isinstance(target, BuiltinTarget | SimulatedTarget), ending.said
    assert seen == [
        [True, False, False, False, False],
        [False, True, False, False, False],
        *([[True, False, False, True, False]] if loses_power else []),
        [False, False, True, False, False],
    ]


def test_a_power_loss_takes_what_was_not_flushed_and_a_sync_saves_it(trial: Trial) -> None:
    trial.needs(Power, Links)
    trial.needs_to_start_cut_off()
    target, ends = trial.target, []
    kept = [trial.send().offset for _ in range(2)][-1]
    assert kept is not None
    assert trial.eventually(lambda: trial.end_offset("1") == kept + 1)
    target.sync_disk("1")
    assert trial.send().offset == kept + 1
    assert trial.eventually(lambda: trial.end_offset("1") == trial.end_offset("2") == kept + 2)
    for node in ("1", "2"):
        target.lose_power(node)
        _, dropped = target.has_lost_power(node).seen.split("dropped from the page cache: ")
        assert "ledger-0" in dropped
        target.cut([Link("0", node)])
        target.restart(node)
        ends.append(trial.end_offset(node))
        target.mend([Link("0", node)])
        assert trial.settles()
    assert ends[0] == kept + 1
    assert ends[1] < kept + 1


@IN_VIRTUAL_TIME_BY_DAY
def test_a_node_that_was_restarted_after_a_power_loss_and_killed_has_lost_no_power(trial: Trial) -> None:
    trial.needs(Power)
    with trial.in_effect(fault="power_loss", node=2) as loss:
        assert loss.probe(trial.target).holds
    with trial.in_effect(fault="kill", node=2):
        assert trial.target.is_dead("2").holds
        assert not trial.target.has_lost_power("2").holds


@IN_VIRTUAL_TIME_BY_DAY
def test_a_wiped_disk_is_empty_until_the_node_comes_back_and_replicates(trial: Trial) -> None:
    trial.needs(DiskContents)
    offset = trial.send().offset
    assert offset is not None
    with pytest.raises(EnvironmentFault, match=r"node 2 is not at rest: "):
        trial.target.wipe_disk("2")
    with trial.in_effect(fault="kill", node=2):
        assert not trial.target.is_disk_empty("2").holds
        trial.target.wipe_disk("2")
        assert trial.target.is_disk_empty("2").holds
    assert not trial.target.is_disk_empty("2").holds
    assert trial.end_offset("2") == offset + 1


def test_a_disk_is_replaced_before_the_broker_has_noticed_that_it_failed(trial: Trial) -> None:
    trial.needs(LogDirectories, Links)
    target, offset = trial.target, trial.send().offset
    assert offset is not None
    with trial.in_effect(fault="log_dir_failure", node=2, log_dir=0, replaced=True) as failure:
        assert trial.holds(lambda _: target.is_running("2"))
        assert not trial.asked(lambda _: target.offline_log_dirs("2"))
        with pytest.raises(EnvironmentFault, match=r"node 2 is not at rest: "):
            target.mend_log_dir("2", 0, empty=True)
        assert not target.is_log_dir_new("2", 0).holds
    assert " had ended, and held nothing; incarnation " in failure.probe_healed(target).seen
    assert trial.send().offset == offset + 1
    assert trial.eventually(lambda: trial.end_offset("2") == offset + 2)
    trial.needs_to_start_cut_off()
    with trial.in_effect(fault="kill", node=2):
        target.cut([Link("0", "2"), Link("1", "2")])
        target.restart("2")
        assert trial.end_offset("2") == offset + 2
        target.mend([Link("0", "2"), Link("1", "2")])


def test_which_directories_a_broker_has_given_up_is_not_known_while_it_does_not_answer(trial: Trial) -> None:
    trial.needs(Processes)
    assert not trial.asked(lambda target: target.offline_log_dirs("2"))
    for fault in ("pause", "kill"):
        with trial.in_effect(fault=fault, node=2), pytest.raises(EnvironmentFault, match="node 2 does not answer"):
            trial.target.offline_log_dirs("2")


@IN_VIRTUAL_TIME_BY_DAY
def test_a_disk_that_was_replaced_is_empty(trial: Trial) -> None:
    trial.needs(LogDirectories)
    with trial.in_effect(fault="kill", node=2):
        trial.target.fail_log_dir("2", 0)
        trial.target.mend_log_dir("2", 0, empty=True)
        assert trial.target.is_disk_empty("2").holds


def test_a_foreign_batch_is_seen_to_be_damaged(trial: Trial) -> None:
    damage_is_seen(trial, "foreign")


@IN_VIRTUAL_TIME_BY_DAY
@pytest.mark.parametrize("how", ["flip", "cut"])
def test_a_damaged_batch_is_seen_to_be_damaged(trial: Trial, how: Literal["flip", "cut"]) -> None:
    damage_is_seen(trial, how)


def damage_is_seen(trial: Trial, how: Literal["flip", "cut", "foreign"]) -> None:
    trial.needs(DiskContents)
    before, offset = (trial.send().offset for _ in range(2))
    assert before is not None
    assert offset is not None
    damage = LogDamage(LEDGER, offset, how)
    assert trial.eventually(lambda: trial.end_offset("2") == offset + 1)
    with trial.in_effect(fault="kill", node=2):
        assert not trial.target.is_log_damaged("2", damage).holds
        trial.target.damage_log("2", damage)
        assert trial.target.is_log_damaged("2", damage).holds
        assert not trial.target.is_log_damaged("2", LogDamage(LEDGER, before, damage.how)).holds


def test_a_refused_write_of_the_node_s_own_is_told_with_what_it_was(trial: Trial) -> None:
    trial.needs(DiskSpace, Elections)
    target = trial.target
    target.elect(LEDGER, NodeId(0), unclean=False)
    assert trial.eventually(lambda: trial.is_led_by(0))
    assert trial.send().kind == "ok"
    assert not target.has_refused_write("0").holds
    target.limit_disk("0", 10)
    assert trial.holds(lambda _: target.is_disk_full("0"))
    trial.send(acks=1)
    assert trial.holds(lambda _: target.has_exited("0"))
    receipt = target.has_refused_write("0")
    assert receipt.holds
    writes = ("append ledger-0", "checkpoint the high watermarks")  # whichever comes first
    assert any(write in receipt.seen for write in writes) or not trial.counts_bytes
    target.limit_disk("0", None)
    target.restart("0")
    assert not target.has_refused_write("0").holds
    assert trial.settles()


def test_a_clock_stays_wrong_across_a_restart_and_two_nodes_are_wrong_by_themselves(trial: Trial) -> None:
    def is_off_by(node: str, offset_ms: int) -> bool:
        seen: int = trial.asked(lambda target: target.clock_offset_ms(node))
        return abs(seen - offset_ms) < 1000

    trial.needs(WallClocks, Processes)
    with trial.in_effect(fault="clock", node=2, offset_ms=3_600_000):
        trial.target.kill("2")
        trial.target.restart("2")
        assert trial.eventually(lambda: is_off_by("2", 3_600_000))
        assert trial.eventually(lambda: is_off_by("1", 0))


def test_an_operator_elects_whom_he_names_unless_the_controller_refuses(trial: Trial) -> None:
    trial.needs(Elections)
    trial.target.elect(LEDGER, NodeId(1), unclean=False)
    assert trial.eventually(lambda: trial.is_led_by(1))
    trial.target.elect(LEDGER, None, unclean=False)
    assert trial.eventually(lambda: trial.is_led_by(0))
    trial.target.elect(LEDGER, NodeId(0), unclean=False)  # who leads already
    with pytest.raises(EnvironmentFault, match="refuses to elect a leader of ledger-0"):
        trial.target.elect(LEDGER, NodeId(7), unclean=False)
    with pytest.raises(EnvironmentFault, match="refuses to elect a leader of nothing-0"):
        trial.target.elect(TopicPartition("nothing", 0), None, unclean=False)
    assert trial.settles()


def test_faults_of_a_node_that_does_not_exist_are_refused(trial: Trial) -> None:
    acts: list[tuple[type[Target], Callable[[], object]]] = [
        (Processes, lambda: trial.target.kill("7")),
        (Processes, lambda: trial.target.pause("7")),
        (Links, lambda: trial.target.cut([Link("0", "7")])),
        (DiskSpace, lambda: trial.target.limit_disk("7", 0)),
        (WallClocks, lambda: trial.target.offset_clock("7", 5)),
        (Power, lambda: trial.target.lose_power("7")),
    ]
    for control, act in acts:
        if control in trial.target.controls:
            with pytest.raises(EnvironmentFault, match="no node '7'"):
                act()


def test_a_running_node_is_not_started_twice(trial: Trial) -> None:
    trial.needs(Processes)
    with pytest.raises(EnvironmentFault, match=r"node 0 (is not at rest|cannot be restarted)"):
        trial.target.restart("0")


def test_the_view_and_the_replicas_agree_on_who_leads(trial: Trial) -> None:
    def agree() -> bool:
        view = trial.target.view()
        seen = [trial.target.replica(node, LEDGER) for node in ("0", "1", "2")]
        led = [replica.leader for replica in seen if replica]
        return view.live == (0, 1, 2) and led == [view.partitions[LEDGER].leader] * 3

    assert trial.eventually(agree)
    assert trial.target.replica("0", TopicPartition("nothing", 0)) is None


def test_a_topic_that_cannot_be_is_refused_in_words(trial: Trial) -> None:
    with pytest.raises(EnvironmentFault, match="topic 'ledger' was not created"):
        trial.target.create_topic(TopicSpec("ledger", 1, 3))


@pytest.mark.parametrize("name", NAMES)
def test_evidence_tells_of_every_node_and_every_record_dead_nodes_included(name: str, tmp_path: Path) -> None:
    with on_trial(name, tmp_path / "cluster") as trial:
        trial.needs(Processes)
        target = trial.target
        assert trial.send().offset == 0
        assert trial.eventually(lambda: all(trial.end_offset(node) == 1 for node in ("0", "1", "2")))
        target.pause("0")
        target.kill("1")
        target.stop()
        target.stop()
        rows = list(target.timeline("r"))
        about_replicas = [row for row in rows if row["kind"] == "final" and row["topic"] is not None]
        finals = {row["node"]: json.loads(row["detail"])["source"] for row in about_replicas}
        decided = ANY if name.endswith("#combined") else "live"  # one of three is dead and one was just frozen
        assert {node: finals[node] for node in (0, 1, 2, 100)} == {0: "live", 1: "disk", 2: "live", 100: decided}
        assert {row["run"] for row in rows} == {"r"}
        records = [row for row in held(target) if row["topic"] != METADATA_TOPIC]
        assert [(row["node"], row["offset"]) for row in records] == [(0, 0), (1, 0), (2, 0)]
        logs = tmp_path / "logs"
        logs.mkdir()
        target.copy_logs(logs)
        for node in target.nodes():
            assert (logs / f"{f'broker-{node}' if is_broker(node) else node}.log").read_text()
