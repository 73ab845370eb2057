"""Stories in which an excuse, or what is said not to be there, may have been lost: nothing is a violation.

Importing this module adds them to ``CASES``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.checker import Outcome
from tests.checkers.cases import Expected, case, lose_tail, lost, regression, write
from tests.checkers.client_cases import two_partitions
from tests.checkers.clients import Sent, commit, move, transact
from tests.checkers.story import CONTROLLER, NODES, Row, Story

UNCLEAN: dict[str, Any] = {"guarantees": {"min_insync_replicas": 2, "unclean_election": True}}


def lose(story: Story, *rows: Row) -> None:
    """These rows were recorded, and are not there."""
    gone = {id(row) for row in rows}
    story.history = [row for row in story.history if id(row) not in gone]
    story.timeline = [row for row in story.timeline if id(row) not in gone]


# ---------------------------------------------------------------------------------------------------- what is not there


@case(Outcome.INVALID, ("lost-commit", "INDETERMINATE", 3), reason="rows 15 to 16 are missing")
def a_commit_that_may_be_in_a_gap_of_the_history_is_not_called_lost(story: Story) -> None:
    write(story, 4)
    story.poll(5, range(4))
    commit(story, 1)
    known = len(story.history)
    commit(story, 3)
    second = story.history[known:]
    commit(story, 3, "committed")
    story.finish()
    lose(story, *second)


@case(Outcome.INVALID, ("nonmonotonic-poll", "INDETERMINATE", 0), reason="rows 13 to 14 are missing")
def a_consumer_whose_assignment_may_be_in_a_gap_of_the_history_was_not_taken_back(story: Story) -> None:
    write(story, 4)
    story.poll(5, range(4))
    known = len(story.history)
    move(story, 5, "assign", 0)
    moved = story.history[known:]
    story.poll(5, range(4))
    story.finish()
    lose(story, *moved)


@case(Outcome.INVALID, ("torn-transaction", "INDETERMINATE", None), reason="rows .* are missing")
def a_transaction_of_which_one_record_may_be_in_a_gap_is_not_torn(story: Story) -> None:
    two_partitions(story)
    write(story, 1)
    story.send(p=1)
    transact(story, Sent(0), Sent(1), result="info")
    story.send(p=1)
    story.finish()
    lose(story, *[row for row in story.final_rows(1) if row["offset"] == 1])


# ------------------------------------------------------------------------------------------------------ absent excuses


@case(
    Outcome.INVALID,
    lost(2, "INDETERMINATE"),
    regression(2, "INDETERMINATE"),
    reason=r"node 100 \(incarnation 0\) has 5 rows where its last one says 6",
    **UNCLEAN,
)
def a_permitted_unclean_election_may_be_in_a_gap_of_the_timeline(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2, clean=False)
    story.elect(2)
    story.finish()
    lose(story, next(row for row in story.timeline if row["kind"] == "election"))


@case(Outcome.VIOLATION, lost(2), regression(2), reason=r"node 100 \(incarnation 0\) has 5 rows")
def an_unclean_election_that_is_forbidden_may_be_in_a_gap_as_it_likes(story: Story) -> None:
    a_permitted_unclean_election_may_be_in_a_gap_of_the_timeline(story)


def dark(story: Story) -> None:
    """All nodes lose their power at one time, and the last of three records is gone."""
    write(story, 3)
    for node in NODES:
        times = {"injected_ns": story.now + 1, "healed_ns": story.now + 500_000, "heal_proven_ns": story.now + 500_001}
        story.fault(f"dark-{node}", kind="power_loss", nodes=[str(node)], **times)
    story.now += 1_000_000
    for node in NODES:
        story.restart(node)
    lose_tail(story, 2)
    story.finish()
    names = [{"inject": {"fault": "power_loss", "as": f"dark-{node}"}} for node in NODES]
    story.scenario["schedule"] = names


@case(Outcome.PASS, lost(2, "DOCUMENTED"), regression(2, "DOCUMENTED"))
def a_power_loss_of_all_excuses_a_loss(story: Story) -> None:
    dark(story)


@case(
    Outcome.INVALID,
    lost(2, "INDETERMINATE"),
    regression(2, "INDETERMINATE"),
    reason="Fault 'dark-1' is not among the 2 faults",
)
def a_power_loss_that_is_missing_among_the_faults_may_have_excused_a_loss(story: Story) -> None:
    dark(story)
    del story.faults[1]


@case(
    Outcome.INVALID,
    lost(2, "INDETERMINATE"),
    regression(2, "INDETERMINATE"),
    reason=r"Fault 'dark-1' \(power_loss of 1\) was never proven",
)
def a_power_loss_that_nobody_proved_may_have_excused_a_loss(story: Story) -> None:
    dark(story)
    story.faults[1]["proven_ns"] = None


@case(Outcome.VIOLATION, lost(2), regression(2), reason="Fault 'cut' .* was never proven")
def another_fault_that_nobody_proved_excuses_nothing(story: Story) -> None:
    write(story, 3)
    story.fault(proven_ns=None)
    lose_tail(story, 2)
    story.finish()


# ----------------------------------------------------------------------------------------------------- lossy failures


def shrink(story: Story, *isr: int) -> None:
    """The controller decides on this ISR, and the leader hears of it."""
    decide(story, *isr)
    story.state(story.partitions[0].leader)


def decide(story: Story, *isr: int) -> None:
    """The controller decides on this ISR."""
    part = story.partitions[0]
    part.isr = set(isr)
    version = 1 + sum(row["kind"] == "isr" for row in story.timeline)
    story.say(CONTROLLER, "isr", 0, {"controller_epoch": 1}, leader=part.leader, leader_epoch=part.epoch,
              partition_epoch=version, isr=sorted(isr))  # fmt: skip


def lose_power(story: Story, *nodes: int) -> None:
    """These nodes lose their power at one time, and with it what they have from offset 2 on; node 0 leads again."""
    darken(story, *nodes)
    story.finish()


def darken(story: Story, *nodes: int) -> None:
    part = story.partitions[0]
    times = {"injected_ns": story.now + 1, "healed_ns": story.now + 2, "heal_proven_ns": story.now + 3}
    story.fault("dark", kind="power_loss", nodes=[str(node) for node in nodes], **times)
    story.now += 1_000_000
    for node in nodes:
        del part.logs[node][2:]
        part.marks[node] = min(part.marks[node], 2)
        story.restart(node)
    story.elect(0)


def in_sync_alone(story: Story, *isr: int, dark: tuple[int, ...]) -> None:
    """The third record is acknowledged by this ISR, and then these nodes lose their power."""
    write(story, 2)
    shrink(story, *isr)
    write(story, 1)
    lose_power(story, *dark)


LEAST_1: dict[str, Any] = {"generation": "3.7", "guarantees": {"min_insync_replicas": 1, "unclean_election": False}}
LEAST_2: dict[str, Any] = {"generation": "3.7", "guarantees": {"min_insync_replicas": 2, "unclean_election": False}}


@case(Outcome.PASS, lost(2, "DOCUMENTED"), regression(2, "DOCUMENTED"), **LEAST_1)
def a_leader_that_is_enough_alone_and_loses_its_power_loses_records(story: Story) -> None:
    in_sync_alone(story, 0, dark=(0,))


@case(Outcome.PASS, lost(2, "DOCUMENTED"), regression(2, "DOCUMENTED"), **LEAST_2)
def an_isr_that_is_just_enough_and_loses_its_power_loses_records(story: Story) -> None:
    in_sync_alone(story, 0, 1, dark=(0, 1))


@case(Outcome.VIOLATION, lost(2), regression(2), **LEAST_1)
def who_was_in_sync_and_kept_its_power_must_have_been_asked(story: Story) -> None:
    write(story, 3)
    lose_power(story, 0)


@case(Outcome.VIOLATION, lost(2), ("unjustified-join", "VIOLATION", 2), regression(2), **LEAST_1)
def who_has_come_into_the_isr_since_must_have_the_record(story: Story) -> None:
    write(story, 2)
    shrink(story, 0)
    write(story, 1)
    shrink(story, 0, 1)
    lose_power(story, 0)


@case(Outcome.VIOLATION, lost(2), regression(2), **LEAST_2)
def one_failure_takes_nothing_where_two_must_be_in_sync(story: Story) -> None:
    """The last replica standing: the other one has left the ISR, not the power grid."""
    write(story, 3)
    shrink(story, 0)
    lose_power(story, 0)


@case(Outcome.PASS, lost(2, "DOCUMENTED"), regression(2, "DOCUMENTED"), **LEAST_2)
def who_had_left_the_isr_is_not_asked_for_what_all_of_it_lost(story: Story) -> None:
    write(story, 3)
    shrink(story, 0, 1)
    lose_power(story, 0, 1)


@case(Outcome.VIOLATION, lost(2), regression(2), **LEAST_1)
def one_failure_is_no_excuse_where_somebody_else_was_in_sync_since(story: Story) -> None:
    """Not even where one replica is enough: to survive one failure is what replication is for."""
    one_failure_takes_nothing_where_two_must_be_in_sync(story)


@case(Outcome.PASS, lost(2, "DOCUMENTED"), regression(2, "DOCUMENTED"), **LEAST_2)
def who_is_back_and_not_in_sync_again_has_failed_as_well(story: Story) -> None:
    fail_in_turns(story)


@case(Outcome.VIOLATION, lost(2), regression(2), **LEAST_2)
def who_was_in_sync_again_had_time_to_copy_what_it_had_lost(story: Story) -> None:
    fail_in_turns(story, again=True)


SAMPLED_2: dict[str, Any] = {"generation": "3.7", "guarantees": {**LEAST_2["guarantees"], "timeline": "sampled"}}
LEAST_3: dict[str, Any] = {"generation": "3.7", "guarantees": {"min_insync_replicas": 3, "unclean_election": False}}


@case(Outcome.PASS, lost(2, "DOCUMENTED"), regression(2, "DOCUMENTED"), **LEAST_2)
def what_a_leader_has_not_heard_of_its_isr_the_controller_knows(story: Story) -> None:
    write(story, 3)
    decide(story, 0, 1)
    lose_power(story, 0, 1)


@case(Outcome.PASS, lost(2, "DOCUMENTED"), regression(2, "DOCUMENTED"), **SAMPLED_2)
def what_a_leader_was_last_seen_to_say_of_its_isr_may_be_over(story: Story) -> None:
    what_a_leader_has_not_heard_of_its_isr_the_controller_knows(story)


@case(Outcome.VIOLATION, lost(2), regression(2), **LEAST_3)
def fewer_failures_than_must_be_in_sync_are_no_excuse_where_the_isr_is_smaller(story: Story) -> None:
    write(story, 3)
    shrink(story, 0, 1)
    lose_power(story, 0, 1)


@case(Outcome.VIOLATION, lost(2), regression(2), **LEAST_2)
def where_nobody_names_an_isr_every_replica_may_have_been_in_it(story: Story) -> None:
    fail_unnamed(story, 0, 1)


@case(Outcome.PASS, lost(2, "DOCUMENTED"), regression(2, "DOCUMENTED"), **LEAST_2)
def where_nobody_names_an_isr_the_failure_of_every_replica_is_that_of_all_in_it(story: Story) -> None:
    fail_unnamed(story, *NODES)


def fail_unnamed(story: Story, *nodes: int) -> None:
    write(story, 3)
    lose_power(story, *nodes)
    for row in story.timeline:
        row["isr"] = None


@case(Outcome.VIOLATION, lost(2), regression(2), **LEAST_1)
def the_failure_of_who_was_in_no_isr_does_not_make_two_of_one(story: Story) -> None:
    write(story, 2)
    shrink(story, 0, 2)
    write(story, 1)
    story.fault("bystander", kind="power_loss", nodes=["1"])
    story.now += 1_000_000
    story.restart(1)
    shrink(story, 0)
    lose_power(story, 0)


@case(
    Outcome.VIOLATION,
    lost(2, "DOCUMENTED"),
    *[("committed-cut", "VIOLATION", 2)] * 3,
    regression(2),
    **LEAST_2,
)
def a_watermark_that_fell_before_every_power_loss_did_not_fall_by_it(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2)
    story.elect(2)
    lose_power(story, *NODES)


def fail_in_turns(story: Story, *, again: bool = False) -> None:
    """Broker 1 loses its power, and it and 2 leave the ISR; it is back, perhaps in the ISR; then 0 loses its power."""
    write(story, 3)
    times = {"healed_ns": story.now + 9_000_000, "heal_proven_ns": story.now + 9_000_001}
    story.fault("first", kind="power_loss", nodes=["1"], **times)
    shrink(story, 0)
    story.now += 9_000_000
    story.restart(1)
    if again:
        shrink(story, 0, 1)
    lose_power(story, 0)


@case(Outcome.PASS, lost(2, "DOCUMENTED"), regression(2, "DOCUMENTED"), **LEAST_2)
def a_leader_that_died_in_an_older_epoch_says_no_more_who_is_in_sync(story: Story) -> None:
    write(story, 2)
    died = len(story.timeline)
    story.partitions[0].isr = {1, 2}
    story.elect(1)
    write(story, 1)
    lose(story, *[row for row in story.timeline[died:] if row["node"] == 0])
    story.incarnations[0], story.sequences[0] = 1, 0
    lose_power(story, 1, 2)


@case(Outcome.PASS, lost(2, "DOCUMENTED"), regression(2, "DOCUMENTED"), **LEAST_2)
def where_the_controller_chose_the_replicas_their_ends_say_who_they_are(story: Story) -> None:
    story.scenario = {
        "cluster": {"brokers": 4},
        "topics": [{"name": "ledger", "partitions": 1, "replication_factor": 3}],
    }
    story.incarnations[3] = story.sequences[3] = 0
    story.say(3, "started", None)
    in_sync_alone(story, 0, 1, dark=(0, 1))


A_COMMIT_IS_BEYOND = (
    lost(2, "DOCUMENTED"),
    ("vanished-read", "DOCUMENTED", 2),
    ("commit-beyond-end", "DOCUMENTED", 3),
    regression(2, "DOCUMENTED"),
)


@case(Outcome.PASS, *A_COMMIT_IS_BEYOND, **LEAST_2)
def a_commit_beyond_what_every_power_loss_took_is_documented(story: Story) -> None:
    write(story, 3)
    story.poll(5, range(3))
    commit(story, 3)
    lose_power(story, *NODES)


@case(Outcome.PASS, *A_COMMIT_IS_BEYOND, **LEAST_2)
def what_a_group_is_told_after_a_loss_is_as_documented_as_that_loss(story: Story) -> None:
    write(story, 3)
    story.poll(5, range(3))
    commit(story, 3, result="info")
    lose_power(story, *NODES)
    story.history.pop()
    commit(story, 3, "committed")
    story.row(process=-1, op=next(story.ops), type="ok", f="close")


@case(
    Outcome.VIOLATION,
    ("commit-beyond-end", "VIOLATION", 3),
    ("committed-cut", "VIOLATION", 2),
    ("committed-cut", "VIOLATION", 2),
    regression(2),
    **LEAST_2,
)
def a_commit_beyond_what_one_power_loss_took_is_found(story: Story) -> None:
    write(story, 2)
    story.send(result="info")
    commit(story, 3)
    lose_power(story, 0)


# ----------------------------------------------------------------------------------------------------- given up copies


def sent_again(story: Story, lose_it: Callable[[Story], None]) -> None:
    """A record is committed and read at 3 and its acknowledgement lost; then it is sent again, and lands at 2."""
    write(story, 3)
    about: Row = {"process": 0, "op": next(story.ops), "f": "send", "topic": "ledger", "partition": 0}
    about |= {"value": next(story.values), "acks": -1}
    story.row(**about, type="invoke")
    story.append(0, about["value"], [1, 2])
    story.poll(5, range(4))
    lose_it(story)
    story.append(0, about["value"], [n for n in NODES if n != story.partitions[0].leader])
    story.row(**about, type="ok", offset=2)
    story.send()
    story.finish()


LOST_TWO: dict[str, tuple[Expected, ...]] = {
    verdict: (
        lost(2, verdict),
        ("vanished-read", verdict, 2),
        ("vanished-read", verdict, 3),
        ("inconsistent-offsets", verdict, 2),
        ("inconsistent-offsets", verdict, 3),
        ("duplicate", verdict, 2),
        regression(2, verdict),
    )
    for verdict in ("VIOLATION", "DOCUMENTED")
}


@case(Outcome.PASS, *LOST_TWO["DOCUMENTED"], **UNCLEAN)
def a_record_that_an_unclean_election_gave_up_may_be_sent_again(story: Story) -> None:
    sent_again(story, lambda told: lose_tail(told, 2, clean=False))


@case(Outcome.VIOLATION, *LOST_TWO["VIOLATION"], **UNCLEAN)
def a_record_that_was_lost_otherwise_is_a_duplicate_when_it_is_sent_again(story: Story) -> None:
    sent_again(story, lambda told: lose_tail(told, 2))


@case(Outcome.PASS, *LOST_TWO["DOCUMENTED"], **LEAST_2)
def a_record_that_every_power_loss_took_may_be_sent_again(story: Story) -> None:
    sent_again(story, lambda told: darken(told, *NODES))


@case(Outcome.VIOLATION, ("duplicate", "VIOLATION", 0), **UNCLEAN)
def a_record_that_is_twice_in_the_log_is_a_duplicate_whatever_was_given_up(story: Story) -> None:
    write(story, 2)
    story.append(0, 0, {1, 2})
    story.elect(1, clean=False)
    story.finish()
