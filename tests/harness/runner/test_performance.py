from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from harness import scenario
from harness.clock import SystemClock
from harness.errors import InvalidRun
from harness.model import Offset, TopicPartition
from harness.runner import performance, plan
from harness.runner.journal import Journal
from harness.runner.nemesis import Nemesis
from harness.testing.scripted_target import ScriptedTarget, cluster_view, partition_view

HEAD = """\
id: small
title: A small scenario
source: a test
topics: [{name: ledger, partitions: 2}]
workload: {name: unique_sends}
schedule:
"""
VIEW = cluster_view(3, {TopicPartition("ledger", number): partition_view(1, [1, 0, 2]) for number in range(2)})


class ScriptedWorkload:
    """Acknowledges what it is told to, when it is allowed to."""

    name: ClassVar[str] = "scripted"

    def __init__(self, acknowledged: int) -> None:
        self.acknowledged = acknowledged
        self.may_answer = threading.Event()
        self.may_answer.set()

    def start(self) -> None: ...

    def send(self, per_partition: int, acks: int, timeout_s: float) -> int:
        self.may_answer.wait(10)
        return self.acknowledged

    def polled(self) -> Mapping[TopicPartition, Offset]:
        return {}

    def stop(self) -> None: ...

    def final_read(self, timeout_s: float) -> bool:
        return True


@pytest.fixture
def target() -> ScriptedTarget:
    return ScriptedTarget(shown=VIEW)


def perform(target: ScriptedTarget, tmp_path: Path, *steps: str, workload: ScriptedWorkload | None = None) -> None:
    made = plan(scenario.parse(HEAD + "".join(f"  - {step}\n" for step in steps)))
    with Journal(tmp_path / "run") as journal:
        nemesis = Nemesis(target, journal, SystemClock(), 1, lambda line: None)
        load = workload or ScriptedWorkload(2)
        performance.Performance(made, target, load, nemesis, lambda line: None).perform()


def test_steps_are_performed_in_order(target: ScriptedTarget, tmp_path: Path) -> None:
    perform(
        target,
        tmp_path,
        "send: {per_partition: 1}",
        "inject: {fault: partition, links: [[2, 1]], as: apart}",
        "inject: {fault: kill, node: leader, as: dead}",
        "until: {leader: 1, isr: [0, 1, 2]}",
        "heal: apart",
        "heal: dead",
    )
    assert [call[0] for call in target.calls] == ["cut", "kill", "mend", "restart"]


def test_a_condition_that_does_not_come_true_ends_the_run_and_says_what_was_seen(
    target: ScriptedTarget, tmp_path: Path
) -> None:
    with pytest.raises(InvalidRun) as ended:
        perform(target, tmp_path, "wait_s: 0.01", "until: {leader: 2, partition: 1, within_s: 0.05}")
    assert str(ended.value) == ("schedule[1].until: did not come true within 0.05 s: ledger-1: the leader is 1, not 2.")


def test_an_unproven_fault_ends_a_schedule(target: ScriptedTarget, tmp_path: Path) -> None:
    target.refused.add("kill")
    with pytest.raises(InvalidRun, match=r"schedule\[0\]: fault dead was not proven"):
        perform(target, tmp_path, "inject: {fault: kill, node: 0, as: dead}")


def test_a_fault_that_stays_ends_a_schedule(
    target: ScriptedTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.runner.nemesis.HEAL_TIMEOUT_S", 0.05)
    target.ignored.add("resume")
    with pytest.raises(InvalidRun, match=r"schedule\[1\]: fault frozen was not proven healed"):
        perform(target, tmp_path, "inject: {fault: pause, node: 0, as: frozen}", "heal: frozen")


def test_a_fault_that_somebody_else_ended_ends_a_schedule(
    target: ScriptedTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.runner.nemesis.LAST_LOOK_TIMEOUT_S", 0.05)

    class Meddler(ScriptedWorkload):
        def send(self, per_partition: int, acks: int, timeout_s: float) -> int:
            target.resume("0")
            return super().send(per_partition, acks, timeout_s)

    with pytest.raises(InvalidRun, match=r"schedule\[2\]: fault frozen was not proven: .*not until it was healed"):
        perform(
            target,
            tmp_path,
            "inject: {fault: pause, node: 0, as: frozen}",
            "send: {per_partition: 1}",
            "heal: frozen",
            workload=Meddler(2),
        )


def test_records_that_were_not_acknowledged_end_a_schedule_unless_it_expects_that(
    target: ScriptedTarget, tmp_path: Path
) -> None:
    with pytest.raises(InvalidRun, match=r"schedule\[0\]\.send: 1 of 2 records were acknowledged"):
        perform(target, tmp_path, "send: {per_partition: 1}", workload=ScriptedWorkload(1))
    perform(target, tmp_path, "send: {per_partition: 1, expect: any}", workload=ScriptedWorkload(1))


def test_a_named_send_goes_on_in_the_background_until_it_is_awaited(target: ScriptedTarget, tmp_path: Path) -> None:
    workload = ScriptedWorkload(2)
    workload.may_answer.clear()

    class AnswersAfterTheKill(ScriptedTarget):
        def kill(self, node: str) -> None:
            super().kill(node)
            workload.may_answer.set()

    perform(
        AnswersAfterTheKill(shown=target.shown),
        tmp_path,
        "send: {per_partition: 1, as: last}",
        "inject: {fault: kill, node: 0, as: dead}",
        "until: {sent: last}",
        workload=workload,
    )


def test_a_named_send_is_awaited_at_the_end_at_the_latest(target: ScriptedTarget, tmp_path: Path) -> None:
    with pytest.raises(InvalidRun, match="1 of 2 records were acknowledged"):
        perform(target, tmp_path, "send: {per_partition: 1, as: last}", workload=ScriptedWorkload(1))


def test_a_load_that_breaks_is_not_a_load(target: ScriptedTarget, tmp_path: Path) -> None:
    workload = ScriptedWorkload(2)
    workload.send = lambda *_: 1 // 0  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError):
        perform(target, tmp_path, "send: {per_partition: 1}", workload=workload)
