"""Stories about watermarks, members of ISRs, and who may be elected. Importing this module adds them to ``CASES``."""

from __future__ import annotations

from typing import Any

from harness.checker import Outcome
from harness.detection.withheld import samples
from tests.checkers.cases import case, lost, regression, write
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import NODES, Story
from tests.checkers.timeline_cases import decide

# ------------------------------------------------------------------------------------------------------- watermarks


def shrink(story: Story, acks: int = -1) -> None:
    write(story, 2)
    story.partitions[0].isr = {0}
    story.state(0)
    story.send(acks=acks)
    story.partitions[0].isr = set(NODES)
    for node in (1, 2):
        story.partitions[0].logs[node] = list(story.partitions[0].logs[0])
        story.state(node)
    story.commit()
    story.finish()


@case(Outcome.VIOLATION, ("ack-below-min-isr", "VIOLATION", 2), ("advance-below-min-isr", "VIOLATION", 2))
def a_watermark_that_does_not_wait_for_enough_replicas_is_found(story: Story) -> None:
    shrink(story)


@case(Outcome.PASS, ("advance-below-min-isr", "DOCUMENTED", 2), generation="2.8")
def before_3_7_no_watermark_waits_for_enough_replicas(story: Story) -> None:
    shrink(story, acks=1)


@case(Outcome.PASS, guarantees={"min_insync_replicas": 1})
def a_watermark_need_not_wait_for_more_than_the_minimum(story: Story) -> None:
    shrink(story)


@case(Outcome.PASS)
def a_watermark_that_rises_as_the_isr_shrinks_is_not_judged(story: Story) -> None:
    write(story, 2)
    story.send(result="info", commit=False)
    story.partitions[0].isr = {0}
    story.commit()
    story.partitions[0].isr = set(NODES)
    story.commit()
    story.finish()


def take_office_alone(story: Story, mark: int) -> None:
    """Node 1 takes office with an ISR of its own, and a record that nobody has committed; its watermark is ``mark``."""
    write(story, 2)
    part = story.partitions[0]
    story.send(result="info", copies=(1,), commit=False)
    part.isr, part.marks[1] = {1}, mark
    story.elect(1)
    part.isr = set(NODES)
    story.commit()
    story.finish()


@case(Outcome.VIOLATION, ("advance-below-min-isr", "VIOLATION", 2))
def a_leader_that_commits_its_log_as_it_takes_office_with_too_few_in_sync_is_found(story: Story) -> None:
    take_office_alone(story, 3)


@case(Outcome.PASS)
def a_leader_that_takes_office_with_what_had_been_committed_is_not_blamed(story: Story) -> None:
    take_office_alone(story, 2)


@case(Outcome.PASS, ("advance-below-min-isr", "DOCUMENTED", 2), generation="2.8")
def before_3_7_a_leader_that_is_alone_commits_its_log_as_it_takes_office(story: Story) -> None:
    take_office_alone(story, 3)


FELL = ("follower-hw-regression", "VIOLATION", None)


def fall(story: Story, to: int = 1) -> None:
    """Node 2's watermark falls, and rises again."""
    part = story.partitions[0]
    before, part.marks[2] = part.marks[2], to
    story.state(2)
    part.marks[2] = before
    story.state(2)


@case(Outcome.VIOLATION, FELL)
def a_follower_whose_watermark_falls_after_it_has_risen_is_found(story: Story) -> None:
    write(story, 3)
    fall(story)
    story.finish()


@case(Outcome.VIOLATION, FELL)
def a_follower_whose_watermark_has_risen_with_another_isr_is_found(story: Story) -> None:
    write(story, 3)
    story.partitions[0].isr = {0, 2}
    story.state(2)
    fall(story)
    story.partitions[0].isr = set(NODES)
    story.state(0)
    story.finish()


@case(Outcome.VIOLATION, FELL, FELL)
def each_life_in_which_a_follower_falls_back_is_told(story: Story) -> None:
    write(story, 3)
    fall(story)
    fall(story)
    story.restart(2)
    story.send()
    fall(story)
    story.finish()


@case(Outcome.PASS)
def a_follower_s_watermark_falls_to_that_of_a_new_leader(story: Story) -> None:
    write(story, 3)
    story.elect(1)
    fall(story)
    story.send()
    story.finish()


@case(Outcome.PASS, ("committed-cut", "DOCUMENTED", 1), generation="0.10")
def a_follower_that_cuts_its_log_below_its_watermark_has_a_lower_one(story: Story) -> None:
    write(story, 2)
    story.cut(2, 1)
    story.partitions[0].logs[2] = list(story.partitions[0].logs[0])
    story.state(2)
    story.commit()
    story.finish()


@case(Outcome.PASS)
def a_leader_that_restarts_in_its_epoch_begins_with_its_checkpoint(story: Story) -> None:
    write(story, 3)
    story.partitions[0].marks[0] = 1
    story.restart(0)
    fall(story)
    story.commit()
    story.finish()


@case(Outcome.PASS)
def an_answer_of_a_leader_s_earlier_life_may_come_after_its_restart(story: Story) -> None:
    write(story, 2)
    story.send(commit=False)
    story.restart(0)
    story.partitions[0].isr = {0, 2}
    story.state(2)
    story.commit()
    fall(story)
    story.partitions[0].isr = set(NODES)
    story.commit()
    story.finish()


@case(Outcome.PASS)
def an_answer_of_a_leader_may_be_of_another_of_its_epochs(story: Story) -> None:
    write(story, 2)
    story.elect(1)
    story.send()
    story.elect(0)
    story.send()
    fall(story, to=2)
    story.finish()


@case(Outcome.PASS, guarantees=SAMPLED)
def of_a_follower_that_is_looked_at_now_and_then_no_fall_is_judged(story: Story) -> None:
    write(story, 3)
    fall(story)
    story.finish()
    story.timeline = samples(story.timeline, lambda _: True)


@case(Outcome.VIOLATION, ("bounds-crossed", "VIOLATION", None), FELL)
def a_watermark_beyond_the_log_is_found(story: Story) -> None:
    write(story, 2)
    story.state(2)["high_watermark"] = 3
    story.state(2)
    story.finish()


@case(Outcome.VIOLATION, ("bounds-crossed", "VIOLATION", None))
def a_log_that_starts_beyond_its_watermark_is_found(story: Story) -> None:
    write(story, 2)
    story.send(result="info", commit=False)
    story.state(0)["log_start_offset"] = 3
    story.state(0)
    story.commit()
    story.finish()


@case(Outcome.VIOLATION, ("unjustified-advance", "VIOLATION", 2))
def a_leader_that_commits_what_a_member_of_its_isr_lacks_is_found(story: Story) -> None:
    write(story, 2)
    story.send(copies=(1,))
    story.partitions[0].logs[2] = list(story.partitions[0].logs[0])
    story.state(2)
    story.finish()


def leave_one_out(story: Story, **decided: Any) -> None:
    """The leader waits for nodes 0 and 2 only, and does not tell; the controller has decided on something before."""
    write(story, 2)
    part = story.partitions[0]
    decide(story, partition_epoch=1, **decided)
    part.isr = {0, 2}
    story.state(0)
    story.send()
    part.isr, part.logs[1] = set(NODES), list(part.logs[0])
    story.state(1)
    story.commit()
    story.finish()


@case(Outcome.VIOLATION, ("unjustified-advance", "VIOLATION", 2))
def a_leader_that_does_not_wait_for_whom_the_controller_has_in_the_isr_is_found(story: Story) -> None:
    leave_one_out(story)


@case(
    Outcome.VIOLATION,
    ("unjustified-advance", "VIOLATION", 2),
    ("advance-below-min-isr", "VIOLATION", 2),
    ("ack-below-min-isr", "VIOLATION", 2),
    guarantees={"min_insync_replicas": 3},
)
def a_leader_that_does_not_wait_for_whom_the_controller_calls_eligible_is_found(story: Story) -> None:
    leave_one_out(story, isr=[0, 2], detail={"elr": [1]})


@case(Outcome.PASS)
def a_leader_need_not_wait_for_whom_the_controller_has_left_out(story: Story) -> None:
    leave_one_out(story, isr=[0, 2])


@case(Outcome.PASS)
def what_the_controller_decided_in_another_epoch_is_not_held_against_a_leader(story: Story) -> None:
    leave_one_out(story, leader_epoch=1)


@case(Outcome.INVALID, reason="has no decision of partition epoch")
def a_leader_may_have_heard_of_a_decision_that_nobody_knows(story: Story) -> None:
    leave_one_out(story)
    rows = [row for row in story.timeline if row["node"] == 0]
    for row in rows[next(at for at, row in enumerate(rows) if row["isr"] == [0, 2]) :]:
        row["partition_epoch"] = 2 if row["isr"] == [0, 2] else 3


@case(Outcome.PASS, ("unjustified-advance", "DOCUMENTED", 2), generation="2.0.1")
def before_2_1_leaders_are_known_to_count_what_they_should_not(story: Story) -> None:
    a_leader_that_commits_what_a_member_of_its_isr_lacks_is_found(story)


@case(Outcome.VIOLATION, ("unjustified-advance", "VIOLATION", 2))
def a_leader_that_commits_before_a_member_has_heard_of_its_epoch_is_found(story: Story) -> None:
    write(story, 2)
    story.elect(1)
    story.timeline = [row for row in story.timeline if (row["node"], row["leader_epoch"]) != (2, 1)]
    story.sequences[2] = sum(row["node"] == 2 for row in story.timeline)
    part = story.partitions[0]
    value = story.send(result="info", append=False)
    for node in NODES:
        part.logs[node].append((0 if node == 2 else 1, value))
    story.state(0)
    part.epoch, part.leader = 0, 0
    story.state(2)
    part.epoch, part.leader = 1, 1
    part.marks[1] = 3
    story.state(1)
    for node in NODES:
        part.logs[node][2] = (1, value)
    story.state(0)
    story.commit()
    story.finish()


def lead_on(story: Story, epoch: int) -> None:
    """The leader leads in ``epoch``, and commits at once what the others had before it."""
    write(story, 2)
    story.send(result="info", commit=False)
    part = story.partitions[0]
    part.epoch = epoch
    for mark in (2, 3):
        part.marks[0] = mark
        story.state(0)
    for node in (1, 2):
        story.state(node)
    story.commit()
    story.finish()


@case(Outcome.PASS)
def a_leader_that_goes_on_in_the_next_epoch_may_count_what_a_member_had_before(story: Story) -> None:
    lead_on(story, 1)


@case(Outcome.VIOLATION, ("unjustified-advance", "VIOLATION", 2), ("unjustified-advance", "VIOLATION", 2))
def a_leader_that_comes_back_in_a_later_epoch_may_not(story: Story) -> None:
    lead_on(story, 2)


@case(Outcome.PASS)
def a_member_that_a_crash_has_robbed_is_not_held_against_its_leader(story: Story) -> None:
    write(story, 2)
    log = story.partitions[0].logs[2]
    story.partitions[0].logs[2], story.partitions[0].marks[2] = [], 0
    story.fault(kind="power_loss", nodes=["2"])
    story.restart(2)
    story.partitions[0].isr = {0, 1}
    story.state(0)
    story.partitions[0].logs[2] = log
    story.state(2)
    story.partitions[0].isr = set(NODES)
    story.commit()
    story.finish()


@case(Outcome.VIOLATION, ("unjustified-join", "VIOLATION", 1), ("committed-cut", "VIOLATION", 1))
def a_member_that_lacks_what_is_committed_is_found(story: Story) -> None:
    write(story, 3)
    log = list(story.partitions[0].logs[2])
    story.partitions[0].isr = {0, 1}
    story.state(0)
    story.cut(2, 1)
    story.partitions[0].isr = set(NODES)
    story.state(0)
    story.partitions[0].logs[2] = log
    story.state(2)
    story.commit()
    story.finish()


def let_in(story: Story, has: int, *, cut: int = 0, say: bool = True) -> None:
    """Node 1 leads with three records and a watermark of 0; node 2 is let in, having no more than ``has`` of them."""
    part = story.partitions[0]
    part.isr = {0, 1}
    write(story, 3)
    part.leader, part.epoch, part.marks[1] = 1, 1, 0
    decide(story, "election", leader=1, leader_epoch=1, partition_epoch=3, isr=[0, 1], detail={"clean": True})
    story.state(1)
    whole, part.logs[2] = part.logs[1], part.logs[1][:has]
    if say:
        story.state(2)
    if cut:
        part.logs[2] = part.logs[1][:cut]
        story.restart(2)
    decide(story, leader=1, leader_epoch=1, partition_epoch=4, isr=list(NODES))
    part.logs[2], part.isr = list(whole), set(NODES)
    for node in (2, 1, 0):
        story.state(node)
    story.commit()
    story.finish()


@case(Outcome.VIOLATION, ("unjustified-join", "VIOLATION", 1))
def who_is_let_in_at_a_watermark_that_lags_is_found(story: Story) -> None:
    let_in(story, 1)


@case(Outcome.PASS, ("unjustified-join", "DOCUMENTED", 1), generation="0.11")
def old_generations_let_in_who_has_reached_a_watermark_that_lags(story: Story) -> None:
    let_in(story, 1)


@case(Outcome.PASS)
def who_has_reached_the_start_of_its_leader_s_epoch_may_be_let_in(story: Story) -> None:
    let_in(story, 3)


@case(Outcome.PASS)
def of_whom_nobody_heard_in_that_epoch_nobody_knows_what_it_had(story: Story) -> None:
    let_in(story, 1, say=False)


@case(Outcome.PASS)
def what_a_crash_took_after_it_was_reached_is_held_against_nobody(story: Story) -> None:
    story.fault(kind="power_loss", nodes=["2"])
    let_in(story, 3, cut=1)


# ------------------------------------------------------------------------------------------------------ candidates


def eligible(story: Story) -> None:
    """The controller has node 2 as eligible, and everybody hears of it."""
    decide(story, partition_epoch=1, isr=[0], detail={"elr": [2]})
    story.partitions[0].isr = {0}
    for node in NODES:
        story.state(node)
    story.partitions[0].isr = set(NODES)


@case(Outcome.VIOLATION, ("incomplete-candidate", "VIOLATION", 1), ("committed-cut", "VIOLATION", 1))
def an_eligible_replica_that_has_cut_what_is_committed_is_found(story: Story) -> None:
    write(story, 3)
    log = list(story.partitions[0].logs[2])
    story.cut(2, 1)
    eligible(story)
    eligible(story)
    story.partitions[0].logs[2] = log
    story.state(2)
    story.commit()
    story.finish()


@case(Outcome.VIOLATION, ("committed-cut", "VIOLATION", 1))
def an_eligible_replica_that_has_got_back_what_it_cut_is_complete(story: Story) -> None:
    write(story, 3)
    log = list(story.partitions[0].logs[2])
    story.cut(2, 1)
    story.partitions[0].logs[2] = log
    story.state(2)
    eligible(story)
    story.commit()
    story.finish()


@case(Outcome.PASS)
def what_a_crash_took_from_an_eligible_replica_is_not_held_against_the_controller(story: Story) -> None:
    write(story, 3)
    log = list(story.partitions[0].logs[2])
    story.partitions[0].isr = {0, 1}
    story.state(0)
    story.partitions[0].logs[2], story.partitions[0].marks[2] = log[:1], 1
    story.fault(kind="power_loss", nodes=["2"])
    story.restart(2)
    eligible(story)
    story.partitions[0].logs[2] = log
    story.state(2)
    story.partitions[0].isr = set(NODES)
    story.commit()
    story.finish()


@case(Outcome.VIOLATION, lost(2), lost(1), regression(1))
def what_a_leader_did_not_have_is_not_held_against_candidates_as_well(story: Story) -> None:
    write(story, 3)
    story.cut(2, 1)
    eligible(story)
    story.cut(1, 1)
    story.elect(1)
    decide(story, leader=1, leader_epoch=1, partition_epoch=5, isr=[1], detail={"elr": [0, 2]})
    story.finish()
