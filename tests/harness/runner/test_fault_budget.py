"""Which faults may be in force together."""

from __future__ import annotations

import dataclasses
from typing import Any

import faults
from harness.broker.settings import Settings
from harness.fault import Fault
from harness.model import NodeId, TopicPartition
from harness.replication.knobs import generation
from harness.runner.fault_budget import BudgetName, FaultBudget, Promise
from harness.target import ClusterView, PartitionView
from harness.testing.scripted_target import ScriptedTarget, cluster_view

LEDGER = TopicPartition("ledger", 0)
NOTICED_S = 2.0


def fault(kind: str, **written: Any) -> Fault:
    return faults.parse({"fault": kind, **written}, "test").aimed(seen(0, 1, 2), 1)


def seen(*isr: int, leader: int = 0) -> ClusterView:
    replicas = tuple(map(NodeId, range(3)))
    return cluster_view(3, {LEDGER: PartitionView(NodeId(leader), 0, tuple(map(NodeId, isr)), replicas)})


class Accounts:
    """A budget, its cluster, and a clock."""

    def __init__(
        self, speaks: str = "2.8", name: BudgetName = "promised", *, real: bool = False, **settings: Any
    ) -> None:
        self.now_s = 100.0
        self.target = ScriptedTarget(shown=seen(0, 1, 2))
        configured = Settings(**{"min_insync_replicas": 2, **settings})
        promise = Promise.of(configured, generation(speaks), starts_cut_off=not real)
        assert promise.noticed_s == NOTICED_S
        self.budget = FaultBudget(name, promise, self.target, lambda: self.now_s)
        self.began = 0

    def show(self, *isr: int, leader: int = 0) -> None:
        self.target.shown = seen(*isr, leader=leader)
        self.budget.review(self.target.shown)

    def begin(self, one: Fault) -> str:
        self.began += 1
        name = f"f{self.began}"
        one.inject(self.target)
        self.budget.began(name, one, self.target.shown)
        return name

    def end(self, name: str, one: Fault, *, later: bool = True) -> None:
        one.heal(self.target)
        self.budget.ended(name)
        self.now_s += 2 * NOTICED_S if later else 0.0

    def allows(self, one: Fault) -> bool:
        return not self.budget.refusal(one, self.target.shown)


def test_any_number_of_brokers_may_be_down_that_lose_nothing() -> None:
    accounts = Accounts()
    for node in range(3):
        assert accounts.allows(fault("kill", node=node))
        accounts.begin(fault("kill", node=node))


def test_only_fewer_than_the_minimum_may_have_lost_something() -> None:
    accounts = Accounts()
    assert accounts.allows(fault("power_loss", node=0))
    accounts.begin(fault("power_loss", node=0))
    accounts.show(1, 2, leader=1)
    assert not accounts.allows(fault("power_loss", node=1))


def test_with_a_minimum_of_one_nothing_lossy_is_promised_unless_every_record_is_flushed() -> None:
    loss = fault("power_loss", node=0)
    settings = Settings(min_insync_replicas=1)
    assert Promise.of(settings, generation("4.1"), starts_cut_off=True).never_affords(loss)
    flushing = dataclasses.replace(settings, log_flush_interval_messages=1)
    assert not Promise.of(flushing, generation("4.1"), starts_cut_off=True).never_affords(loss)
    assert Promise.of(flushing, generation("4.1"), starts_cut_off=True).never_affords(fault("wipe_disk", node=0))


def test_the_last_member_of_an_isr_may_not_lose_anything() -> None:
    accounts = Accounts()
    accounts.show(0)
    assert not accounts.allows(fault("power_loss", node=0))
    accounts.show(0, 1)
    assert accounts.allows(fault("power_loss", node=0))


def test_a_member_that_a_fault_has_just_left_may_still_be_about_to_leave_the_isr() -> None:
    accounts = Accounts()
    accounts.show(0, 1)
    stopped = fault("stop", node=1)
    name = accounts.begin(stopped)
    assert not accounts.allows(fault("power_loss", node=0))
    accounts.end(name, stopped, later=False)
    assert not accounts.allows(fault("power_loss", node=0))
    accounts.now_s += 2 * NOTICED_S
    assert accounts.allows(fault("power_loss", node=0))


def test_until_a_broker_that_has_lost_something_is_dropped_one_sound_member_stays() -> None:
    accounts = Accounts()
    accounts.begin(fault("power_loss", node=0))
    assert accounts.allows(fault("kill", node=1))
    accounts.begin(fault("kill", node=1))
    assert not accounts.allows(fault("pause", node=2))
    assert not accounts.allows(fault("partition", isolate=2))
    accounts.show(2, leader=2)
    assert accounts.allows(fault("pause", node=2))


def test_a_broker_that_has_lost_something_starts_again_only_when_it_is_in_no_isr() -> None:
    loss = fault("power_loss", node=0)
    for speaks, at_once in (("2.8", False), ("3.7", False), ("4.1", True)):
        accounts = Accounts(speaks)
        accounts.begin(loss)
        assert accounts.budget.may_end(loss) is at_once, speaks
        accounts.show(1, 2, leader=1)
        assert accounts.budget.may_end(loss), speaks


def test_once_it_is_back_in_the_isr_another_may_lose_something() -> None:
    accounts = Accounts()
    loss = fault("power_loss", node=0)
    name = accounts.begin(loss)
    accounts.show(1, 2, leader=1)
    accounts.end(name, loss)
    accounts.show(1, 2, leader=1)
    assert not accounts.allows(fault("power_loss", node=1))
    accounts.show(1, 2, 0, leader=1)
    assert accounts.allows(fault("power_loss", node=1))


def test_one_that_was_never_seen_to_be_dropped_has_caught_up_when_the_cluster_must_have_noticed() -> None:
    accounts = Accounts("4.1")
    loss = fault("power_loss", node=0)
    name = accounts.begin(loss)
    accounts.end(name, loss, later=False)
    accounts.show(0, 1, 2)
    assert accounts.budget.has_lossy
    accounts.now_s += 2 * NOTICED_S
    accounts.show(0, 1, 2)
    assert not accounts.budget.has_lossy


def test_whatever_is_allowed_where_nothing_is_promised() -> None:
    accounts = Accounts(name="any")
    for node in range(3):
        loss = fault("power_loss", node=node)
        assert accounts.allows(loss)
        accounts.begin(loss)
        assert accounts.budget.may_end(loss)


def test_links_are_cut_only_between_nodes_that_run_and_mended_when_they_do_again() -> None:
    accounts = Accounts(name="any")
    cut = fault("partition", between=[0, 1])
    accounts.begin(cut)
    kill = fault("kill", node=1)
    assert accounts.allows(kill)
    name = accounts.begin(kill)
    assert not accounts.budget.may_end(cut)
    assert not accounts.allows(fault("partition", between=[1, 2]))
    assert accounts.allows(fault("partition", between=[0, 2]))
    accounts.end(name, kill)
    assert accounts.budget.may_end(cut)


def test_a_real_broker_is_not_killed_while_links_are_cut_that_it_needs_to_start() -> None:
    for real in (True, False):
        accounts = Accounts(name="any", real=real)
        accounts.begin(fault("partition", between=[0, "controller"]))
        assert accounts.allows(fault("kill", node=0)) is not real
        assert accounts.allows(fault("kill", node=1))


def test_a_fault_waits_for_what_has_its_node_to_itself() -> None:
    accounts = Accounts(name="any")
    accounts.begin(fault("pause", node=0))
    assert not accounts.allows(fault("kill", node=0))
    assert not accounts.allows(fault("clock", node=0, offset_ms=60_000))


def test_no_process_is_taken_from_a_fault_that_waits_to_be_healed() -> None:
    accounts = Accounts(name="any")
    cut = fault("partition", between=[0, 1])
    accounts.begin(cut)
    view = accounts.target.shown
    assert accounts.budget.refusal(fault("kill", node=1), view, [cut])
    assert not accounts.budget.refusal(fault("kill", node=2), view, [cut])


def test_a_disk_is_full_only_where_the_broker_is_written_to() -> None:
    accounts = Accounts(name="any")
    full = fault("disk_full", node=0, must_refuse=True)
    assert accounts.allows(full)
    accounts.show(1, 2, leader=1)
    assert not accounts.allows(full)
    accounts.show(0)
    assert not accounts.allows(full)
    accounts.show(0, 1)
    accounts.begin(fault("pause", node=1))
    assert not accounts.allows(full)


def test_a_disk_that_a_file_of_the_probes_proves_full_waits_for_no_writes() -> None:
    accounts = Accounts()
    accounts.begin(fault("pause", node=1))
    accounts.show(1, 2, leader=1)
    assert accounts.allows(fault("disk_full", node=0))
    assert not accounts.allows(fault("disk_full", node=0, must_refuse=True))


def test_a_step_of_a_clock_puts_off_what_is_lossy() -> None:
    accounts = Accounts()
    step = fault("clock", node=2, offset_ms=60_000)
    accounts.begin(step)
    assert not accounts.allows(fault("power_loss", node=0))
    accounts.now_s += 2 * NOTICED_S
    assert accounts.allows(fault("power_loss", node=0))


def test_no_clock_steps_until_a_broker_that_has_lost_something_is_dropped() -> None:
    accounts = Accounts()
    step, other = fault("clock", node=2, offset_ms=60_000), fault("clock", node=1, offset_ms=60_000)
    accounts.begin(step)
    accounts.now_s += 2 * NOTICED_S
    accounts.begin(fault("power_loss", node=0))
    assert not accounts.allows(other)
    assert not accounts.budget.may_end(step)
    accounts.show(1, 2, leader=1)
    assert accounts.allows(other)
    assert accounts.budget.may_end(step)


def test_while_a_controller_notices_nothing_no_broker_may_lose_anything() -> None:
    accounts = Accounts()
    kill = fault("kill", node="controller")
    name = accounts.begin(kill)
    assert not accounts.allows(fault("power_loss", node=0))
    accounts.end(name, kill, later=False)
    assert not accounts.allows(fault("power_loss", node=0))
    accounts.now_s += 2 * NOTICED_S
    assert accounts.allows(fault("power_loss", node=0))


def test_a_real_broker_starts_again_only_when_its_controller_is_there() -> None:
    for real in (True, False):
        accounts = Accounts(name="any", real=real)
        dead, headless = fault("kill", node=2), fault("kill", node="controller")
        accounts.begin(dead)
        name = accounts.begin(headless)
        assert accounts.budget.may_end(dead) is not real
        assert accounts.budget.may_end(headless)
        accounts.end(name, headless)
        assert accounts.budget.may_end(dead)


def test_no_controller_is_taken_from_a_real_broker_that_is_due_to_start() -> None:
    for real, refusal in ((True, "a broker waits for the controller to start"), (False, "")):
        accounts = Accounts(name="any", real=real)
        dead, headless = fault("kill", node=2), fault("kill", node="controller")
        accounts.begin(dead)
        assert accounts.budget.refusal(headless, accounts.target.shown, [dead]) == refusal
        assert accounts.allows(headless)
