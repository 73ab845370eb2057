from __future__ import annotations

from typing import Any

import pytest

from harness import scenario
from harness.errors import InvalidRun
from harness.model import NO_LEADER, NodeId, TopicPartition
from harness.orders import CommitOrder, Consumed, ConsumeOrder, DeleteOrder, SendOrder, SpoofedFetchOrder
from harness.runner import plan
from harness.runner.journal import NothingToUndo
from harness.runner.nemesis import Nemesis
from harness.runner.run_clients import RunClients
from harness.runner.schedule_executor import ExecutionContext, ScheduleExecutor
from harness.runner.schedule_log import ScheduleLog
from harness.target import PartitionView
from harness.testing.leaping_clock import LeapingClock
from harness.testing.scripted_clients import ScriptedClient, ScriptedLoad
from harness.testing.scripted_target import ScriptedTarget, cluster_view, partition_view

HEAD = """\
id: small
title: A small scenario
source: a test
topics: [{name: ledger, partitions: 2}]
workload: {name: unique_sends}
schedule:
"""
ZERO, ONE = TopicPartition("ledger", 0), TopicPartition("ledger", 1)
VIEW = cluster_view(3, {name: partition_view(1, [1, 0, 2]) for name in (ZERO, ONE)})


@pytest.fixture
def target() -> ScriptedTarget:
    return ScriptedTarget(shown=VIEW)


@pytest.fixture
def clock() -> LeapingClock:
    return LeapingClock()


class Performing:
    """Performs schedules on one target.

    Attributes:
        noted: how many records the schedule log knew, each time that the executor reported it.
    """

    def __init__(self, target: ScriptedTarget, clock: LeapingClock) -> None:
        self.target = target
        self.clock = clock
        self.client = ScriptedClient()
        self.noted: list[int] = []

    def __call__(self, *steps: str, generation: str | None = None) -> ScheduleLog:
        made = plan(scenario.parse(HEAD + "".join(f"  - {step}\n" for step in steps)), generation=generation)
        nemesis = Nemesis(self.target, NothingToUndo(), self.clock, 1, lambda line: None)
        schedule_log = ScheduleLog(made.partitions)
        clients = RunClients(ScriptedLoad(), self.client, self.client)
        context = ExecutionContext(self.target, made.partitions, clients, nemesis, self.clock)
        self.noted.clear()
        ScheduleExecutor(made.schedule, context, schedule_log, lambda line: None, noted=self._note).perform()
        return schedule_log

    def _note(self, schedule_log: ScheduleLog) -> None:
        self.noted.append(sum(map(len, schedule_log.values.values())))


@pytest.fixture
def perform(target: ScriptedTarget, clock: LeapingClock) -> Performing:
    return Performing(target, clock)


def test_steps_are_performed_in_order(perform: Performing, target: ScriptedTarget) -> None:
    perform(
        "send: {per_partition: 1}",
        "inject: {fault: partition, links: [[2, 1]], as: apart}",
        "inject: {fault: kill, node: leader, as: dead}",
        "until: {leader: 1, isr: [0, 1, 2]}",
        "heal: apart",
        "heal: dead",
        "sync: [0, 2]",
        "elect: {leader: 2, partition: 1, unclean: true}",
    )
    assert target.calls[4:] == [("sync_disk", "0"), ("sync_disk", "2"), ("elect", ONE, NodeId(2), True)]
    assert [call[0] for call in target.calls[:4]] == ["cut", "kill", "mend", "restart"]


def test_what_is_known_is_told_after_every_step(perform: Performing) -> None:
    perform("send: {per_partition: 2}", "wait_s: 1", "send: {per_partition: 1}")
    assert perform.noted == [4, 4, 6]


def test_a_hold_cuts_links_and_a_release_mends_them(perform: Performing, target: ScriptedTarget) -> None:
    perform("hold: {links: [[2, 1], [1, clients]], as: h}", "release: h")
    assert [(name, *map(str, links)) for name, *links in target.calls] == [
        ("cut", "2->1", "1->clients"),
        ("mend", "2->1", "1->clients"),
    ]


def test_a_step_of_other_generations_is_not_performed(perform: Performing, target: ScriptedTarget) -> None:
    steps = (
        "{sync: [0], generations: ['0.10-2.0.0']}",
        "{sync: [1], generations: ['4.1', '2.0.1-2.1']}",
        "sync: [2]",
    )
    perform(*steps, generation="2.0.0")
    perform(*steps, generation="2.0.1")
    assert [node for _, node in target.calls] == ["0", "2", "1", "2"]


def test_a_condition_that_does_not_come_true_ends_the_run_and_says_what_was_seen(perform: Performing) -> None:
    with pytest.raises(InvalidRun) as ended:
        perform("wait_s: 0.01", "until: {leader: 2, partition: 1, within_s: 0.05}")
    assert str(ended.value) == ("schedule[1].until: did not come true within 0.05 s: ledger-1: the leader is 1, not 2.")


def test_an_unproven_fault_ends_a_schedule(perform: Performing, target: ScriptedTarget) -> None:
    target.refused.add("kill")
    with pytest.raises(InvalidRun, match=r"schedule\[0\]\.inject: fault dead was not proven"):
        perform("inject: {fault: kill, node: 0, as: dead}")


def test_a_fault_that_stays_ends_a_schedule(perform: Performing, target: ScriptedTarget) -> None:
    target.ignored.add("resume")
    with pytest.raises(InvalidRun, match=r"schedule\[1\]\.heal: fault frozen was not proven healed"):
        perform("inject: {fault: pause, node: 0, as: frozen}", "heal: frozen")


def test_a_fault_that_somebody_else_ended_ends_a_schedule(
    perform: Performing, target: ScriptedTarget, clock: LeapingClock
) -> None:
    clock.on_sleep = lambda: target.resume("0")
    with pytest.raises(
        InvalidRun, match=r"schedule\[2\]\.heal: fault frozen was not proven: .*not until it was healed"
    ):
        perform("inject: {fault: pause, node: 0, as: frozen}", "wait_s: 1", "heal: frozen")


def test_records_that_were_not_acknowledged_end_a_schedule_unless_it_expects_that(perform: Performing) -> None:
    perform.client.refuses = 1
    with pytest.raises(
        InvalidRun, match=r"schedule\[0\]\.send: 1 of 2 records were acknowledged \(NOT_ENOUGH_REPLICAS"
    ):
        perform("send: {per_partition: 1}")
    perform("send: {per_partition: 1, expect: any}")


def test_a_record_that_is_acknowledged_where_none_may_be_ends_a_schedule(perform: Performing) -> None:
    perform.client.refuses = 2
    perform("send: {per_partition: 1, expect: refused}")
    perform.client.refuses = 1
    with pytest.raises(InvalidRun, match="1 of 0 records were acknowledged"):
        perform("send: {per_partition: 1, expect: refused}")


def test_a_send_is_ordered_as_it_is_written(perform: Performing) -> None:
    perform(
        "send: {records: [a, b, c], partition: 1, acks: 1, batch: 2, age_s: 60, retries: 3, retry_after_s: 0.5,"
        " producer: p, idempotent: true, within_s: 7}"
    )
    assert perform.client.orders == [SendOrder((ONE,), 3, 1, 7, 2, 60_000, 3, 0.5, "p", True)]


def test_records_are_known_by_the_names_that_the_schedule_gives(perform: Performing) -> None:
    schedule_log = perform(
        "send: {per_partition: 2}",
        "send: {records: [x], partition: 1, producer: p}",
        "send: {per_partition: 1, producer: p}",
    )
    assert schedule_log.values == {ZERO: {"m0": 1, "m1": 2, "m2": 6}, ONE: {"m0": 3, "m1": 4, "x": 5, "m3": 7}}
    assert schedule_log.orders == {("p", ZERO): [("m2", 2)], ("p", ONE): [("x", 2), ("m3", 3)]}


def test_the_order_of_a_producer_is_that_of_sending_however_late_an_answer_is_looked_at(perform: Performing) -> None:
    schedule_log = perform(
        "send: {records: [a], partition: 0, producer: p, as: first}",
        "send: {records: [b], partition: 0, producer: p, as: second}",
        "send: {records: [c], partition: 0, producer: p}",
        "until: {sent: second}",
        "until: {sent: first}",
    )
    assert schedule_log.orders == {("p", ZERO): [("a", 0), ("b", 1), ("c", 2)]}


def test_a_record_without_an_answer_keeps_its_place(perform: Performing) -> None:
    perform.client.refuses = 2
    schedule_log = perform(
        "send: {records: [a, b], partition: 0, producer: p, expect: any, as: first}",
        "send: {records: [c], partition: 1, producer: p, expect: any}",
    )
    assert schedule_log.orders == {("p", ZERO): [("a", None), ("b", None)], ("p", ONE): [("c", None)]}


def test_a_named_send_goes_on_in_the_background_until_it_is_awaited(
    perform: Performing, target: ScriptedTarget
) -> None:
    perform.client.answers = lambda: any(call[0] == "kill" for call in target.calls)
    perform("send: {per_partition: 1, as: last}", "inject: {fault: kill, node: 0, as: dead}", "until: {sent: last}")


def test_a_named_send_is_awaited_at_the_end_at_the_latest(perform: Performing) -> None:
    perform.client.refuses = 1
    with pytest.raises(InvalidRun, match="1 of 2 records were acknowledged"):
        perform("send: {per_partition: 1, as: last}")


def test_a_send_without_an_answer_ends_a_schedule(perform: Performing) -> None:
    perform.client.answers = lambda: False
    with pytest.raises(InvalidRun, match="not every answer has come"):
        perform("send: {per_partition: 1, within_s: 1}")


def test_what_other_clients_do_is_ordered_as_it_is_written(perform: Performing) -> None:
    perform(
        "commit: {group: g, offsets: {ledger-0: 3}, leader_epoch: 2}",
        "consume: {group: g, partition: 0, start: beginning, reset: latest, checks_epochs: true, commit: true}",
        "delete_records: {before: high_watermark, partition: 1}",
        "delete_records: {before: 4, within_s: 1}",
        "spoof_fetch: {to: 0, replica: 1, offset: 2, leader_epoch: 5, last_fetched_epoch: 4, partition: 0}",
    )
    assert perform.client.orders == [
        CommitOrder("g", {ZERO: 3}, 2),
        ConsumeOrder("g", (ZERO,), "beginning", "latest", True, True),
        DeleteOrder((ONE,), None),
        DeleteOrder((ZERO, ONE), 4, 1),
        SpoofedFetchOrder(NodeId(0), NodeId(1), (ZERO,), 2, 5, 4),
    ]


@pytest.mark.parametrize(
    "step",
    [
        "commit: {group: g, offsets: {ledger-0: 3}}",
        "delete_records: {before: 1}",
        "spoof_fetch: {to: 0, replica: 1, offset: 2}",
    ],
)
def test_an_error_where_success_is_needed_ends_a_schedule(perform: Performing, step: str) -> None:
    perform.client.error = "OFFSET_OUT_OF_RANGE"
    with pytest.raises(InvalidRun, match="the answer is OFFSET_OUT_OF_RANGE, not ok"):
        perform(step)


@pytest.mark.parametrize("error", ["REQUEST_TIMED_OUT", "_TIMED_OUT", "_TRANSPORT"])
def test_a_deletion_that_is_not_answered_in_time_has_not_been_refused(perform: Performing, error: str) -> None:
    perform.client.error = error
    with pytest.raises(InvalidRun, match=f"the answer is {error}, which does not say"):
        perform("delete_records: {before: 1, expect: refused}")


@pytest.mark.parametrize(
    "step",
    [
        "commit: {group: g, offsets: {ledger-0: 3}, expect: refused}",
        "delete_records: {before: 1, expect: refused}",
        "elect: {leader: 2, expect: refused}",
    ],
)
def test_a_success_where_a_refusal_is_needed_ends_a_schedule(
    perform: Performing, target: ScriptedTarget, step: str
) -> None:
    with pytest.raises(InvalidRun, match="the answer is success, not refused"):
        perform(step)
    perform.client.error = "INVALID_REQUEST"
    target.refused.add("elect")
    perform(step)


def test_an_election_that_is_refused_ends_a_schedule(perform: Performing, target: ScriptedTarget) -> None:
    target.refused.add("elect")
    with pytest.raises(InvalidRun, match=r"schedule\[0\]\.elect: ledger-0: the answer is elect .* is refused"):
        perform("elect: {leader: 2}")


def test_what_a_group_was_given_and_where_it_stands_is_remembered(perform: Performing) -> None:
    perform.client.consumed = Consumed(None, {ZERO: [1, None]}, {ZERO: 2})
    schedule_log = perform("consume: {group: g}", "commit: {group: g, offsets: {ledger-1: 9}}")
    assert schedule_log.groups["g"].given == {ZERO: {1}}
    assert schedule_log.groups["g"].position == {ZERO: 2, ONE: 9}


@pytest.mark.parametrize(
    ("consumed", "step", "sentence"),
    [
        (Consumed("reset", {}, {}), "consume: {group: g}", "what happened to the consumer is 'reset', not 'ok'"),
        (Consumed(None, {}, {}), "consume: {group: g, expect: reset}", "is 'ok', not 'reset'"),
        (
            Consumed(None, {ZERO: [2, 1, 8]}, {}),
            "consume: {group: g, expect: any, delivers: {ledger-0: [m0, m1]}}",
            "of ledger-0 it was given m1, m0, ?, not m0, m1",
        ),
        (Consumed(None, {}, {}), "consume: {group: g, delivers: {ledger-1: [m0]}}", "was given nothing, not m0"),
    ],
)
def test_a_consumer_that_fares_otherwise_ends_a_schedule(
    perform: Performing, consumed: Consumed, step: str, sentence: str
) -> None:
    perform.client.consumed = consumed
    with pytest.raises(InvalidRun) as ended:
        perform("send: {per_partition: 2}", step)
    assert sentence in str(ended.value)


def led_by(leader: int) -> dict[str, Any]:
    return {
        "shown": cluster_view(
            3, {ZERO: PartitionView(NodeId(leader), 1, (NodeId(1),), (NodeId(1),)), ONE: VIEW.partitions[ONE]}
        )
    }


def test_a_partition_that_stays_without_a_leader_is_unavailable(clock: LeapingClock) -> None:
    perform = Performing(ScriptedTarget(**led_by(NO_LEADER)), clock)
    assert perform("unavailable: {partition: 0, for_s: 2}").unavailable == ["ledger-0 had no leader for 2 s"]
    assert clock.now_ns >= 2_000_000_000


def test_a_partition_that_gets_a_leader_meanwhile_is_not_unavailable(clock: LeapingClock) -> None:
    target = ScriptedTarget(**led_by(NO_LEADER))

    def elect() -> None:
        if clock.now_ns > 1_000_000_000:
            target.shown = VIEW

    clock.on_sleep = elect
    with pytest.raises(InvalidRun, match="did not stay so for 2 s: ledger-0: the leader is 1"):
        Performing(target, clock)("unavailable: {partition: 0, for_s: 2}")


def test_a_partition_with_a_leader_is_not_unavailable(perform: Performing) -> None:
    with pytest.raises(InvalidRun, match="ledger-0: the leader is 1"):
        perform("unavailable: {partition: 0, within_s: 0.5}")


def test_a_load_that_breaks_is_not_a_load(perform: Performing) -> None:
    perform.client.answers = lambda: bool(1 // 0)
    with pytest.raises(ZeroDivisionError):
        perform("send: {per_partition: 1}")
