"""Stories of ISRs that are too small, and of decisions that are told otherwise. Importing this adds to ``CASES``."""

from __future__ import annotations

from typing import Any

from harness.checker import Outcome
from harness.detection.withheld import samples
from tests.checkers.cases import case, write
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import GUARANTEES, Row, Story
from tests.checkers.timeline_cases import decide

TAKEN = ("ack-below-min-isr", "VIOLATION", 2)
DIFFERING = ("metadata-divergence", "VIOLATION", None)
OLD: dict[str, Any] = {"generation": "2.8", "guarantees": GUARANTEES}


# ------------------------------------------------------------------------------------------------ acknowledgements


def shrink(story: Story, *members: int) -> None:
    """The leader's ISR has these members from now on."""
    story.partitions[0].isr = set(members)
    story.state(0)


def take(story: Story, *members: int, acks: int = -1) -> None:
    """Two records are committed by everybody, and two by an ISR of these members, which then is whole again."""
    write(story, 2)
    shrink(story, *members)
    write(story, 2, acks=acks, copies=(1, 2))
    story.state(0)
    shrink(story, 0, 1, 2)
    story.commit()
    story.finish()


@case(Outcome.VIOLATION, TAKEN, ("advance-below-min-isr", "DOCUMENTED", 2), **OLD)
def an_acknowledgement_that_an_isr_was_too_small_for_is_found(story: Story) -> None:
    take(story, 0)


@case(Outcome.PASS, **OLD)
def an_isr_that_is_just_large_enough_may_acknowledge(story: Story) -> None:
    take(story, 0, 1)


@case(Outcome.PASS, ("advance-below-min-isr", "DOCUMENTED", 2), **OLD)
def who_does_not_ask_for_all_need_not_be_refused(story: Story) -> None:
    take(story, 0, acks=1)


@case(Outcome.PASS, generation="2.8", guarantees={"unclean_election": False})
def a_run_that_does_not_say_how_large_an_isr_has_to_be_is_not_held_to_it(story: Story) -> None:
    take(story, 0)


@case(Outcome.PASS, ("advance-below-min-isr", "DOCUMENTED", 2), **OLD)
def what_was_appended_before_the_isr_shrank_was_not_to_be_refused(story: Story) -> None:
    write(story, 2)
    story.send(result="invoke", commit=False)
    begun = {name: story.history[-1][name] for name in ("op", "f", "process", "value", "acks")}
    shrink(story, 0)
    story.commit()
    story.row(**begun, topic="ledger", partition=0, type="ok", offset=2)
    shrink(story, 0, 1, 2)
    story.commit()
    story.finish()


@case(Outcome.VIOLATION, TAKEN)
def what_was_appended_in_too_small_an_isr_had_to_be_refused_however_late_it_is_acknowledged(story: Story) -> None:
    take_late(story, (0,))


@case(Outcome.VIOLATION, TAKEN, guarantees=GUARANTEES | {"min_insync_replicas": 3})
def what_was_appended_in_too_small_an_isr_is_found_when_the_isr_shrank_further_meanwhile(story: Story) -> None:
    take_late(story, (0, 1), (0,))


@case(Outcome.PASS)
def what_was_appended_in_an_isr_that_shrank_only_then_is_acknowledged_when_it_has_grown_again(story: Story) -> None:
    take_late(story, (0, 1), (0,))


def take_late(story: Story, *isrs: tuple[int, ...]) -> None:
    """A record with acks=all is appended in the first ISR, and acknowledged when all others are over."""
    write(story, 2)
    shrink(story, *isrs[0])
    story.send(result="invoke", commit=False, copies=(1, 2))
    about = {name: story.history[-1][name] for name in ("op", "f", "process", "value", "acks")}
    story.state(0)
    for isr in isrs[1:]:
        shrink(story, *isr)
    shrink(story, 0, 1, 2)
    story.commit()
    story.row(**about, topic="ledger", partition=0, type="ok", offset=2)
    story.finish()


@case(Outcome.PASS)
def what_another_leader_appended_at_the_offset_may_be_acknowledged(story: Story) -> None:
    write(story, 2)
    story.send(acks=1, result="invoke", commit=False, copies=())
    shrink(story, 0)
    story.send(acks=1, result="invoke", commit=False, copies=())
    zombie = story.state(0)
    shrink(story, 0, 1, 2)
    story.elect(1)
    write(story, 2)
    story.finish()
    zombie["time_ns"] = story.now


@case(Outcome.PASS, ("advance-below-min-isr", "DOCUMENTED", 2), **OLD)
def what_somebody_else_had_committed_he_may_have_acknowledged(story: Story) -> None:
    write(story, 2)
    shrink(story, 0)
    write(story, 2, copies=(1, 2))
    part = story.partitions[0]
    part.leader, part.epoch, part.isr = 1, 1, {0, 1, 2}
    part.logs = {node: [*log[:2], *((1, value) for _, value in log[2:])] for node, log in part.logs.items()}
    part.marks[1] = len(part.logs[1])
    story.state(1)
    story.state(0).update(role="leader", leader=0, leader_epoch=0, isr=[0])
    story.commit()
    story.finish()


@case(Outcome.PASS, guarantees=SAMPLED | GUARANTEES)
def who_is_looked_at_now_and_then_may_have_had_a_larger_isr(story: Story) -> None:
    take(story, 0)
    story.timeline = samples(story.timeline, lambda _: True)


# ---------------------------------------------------------------------------------------------------------- decisions


def tell(story: Story, node: int, **columns: Any) -> Row:
    """A broker says what it has been told in partition epoch 3."""
    row = story.state(node)
    row |= {"partition_epoch": 3, **columns}
    return row


@case(Outcome.VIOLATION, DIFFERING)
def a_broker_that_goes_by_another_isr_than_was_decided_is_found(story: Story) -> None:
    write(story, 1)
    decide(story, partition_epoch=3)
    tell(story, 1)
    tell(story, 2, isr=[0, 1])
    story.finish()


@case(Outcome.VIOLATION, DIFFERING)
def a_controller_that_decides_anew_what_others_have_heard_otherwise_is_found(story: Story) -> None:
    decide(story, partition_epoch=3, isr=[0, 1])
    decide(story, partition_epoch=3)
    write(story, 1)
    story.finish()


@case(Outcome.PASS)
def a_decision_that_is_told_again_is_the_same_decision(story: Story) -> None:
    write(story, 1)
    for epoch in range(3):
        decide(story, partition_epoch=epoch)
    decide(story, partition_epoch=3, isr=[2, 0, 1])
    tell(story, 1)
    decide(story, partition_epoch=3)
    tell(story, 0, isr=None)
    story.finish()


# ----------------------------------------------------------------------------------------------- the log of a quorum

METADATA: Row = {"topic": "__cluster_metadata", "partition": 0}
REAL: dict[str, Any] = {"guarantees": SAMPLED | GUARANTEES}
FORKED = ("replica-divergence", "VIOLATION", 2)


def control(story: Story, *ends: int) -> None:
    """A quorum writes three records down and commits them; its first member leads, and says so of these ends."""
    for node in (101, 102, 103):
        story.sequences[node] = story.incarnations[node] = 0
        story.say(node, "started", None)
    for end in ends:
        story.say(101, "state", 0, **METADATA, role="leader", leader=101, leader_epoch=1, high_watermark=end,
                  log_end_offset=3)  # fmt: skip


def keep(story: Story, *committed: int) -> None:
    """Everything else goes well. Each member's log holds the three records; it takes these for committed in the end."""
    write(story, 2)
    story.finish()
    for node, mark in zip((101, 102, 103), committed, strict=True):
        role = "leader" if node == 101 else "follower"
        story.say(node, "final", 0, **METADATA, role=role, leader=101, leader_epoch=1, high_watermark=mark)
        story.logs += [
            {**METADATA, "run": story.run, "node": node, "offset": offset, "leader_epoch": 1, "value": None,
             "batch_base_offset": offset, "batch_crc": offset, "intact": True}
            for offset in range(3)
        ]  # fmt: skip


@case(Outcome.PASS, **REAL)
def metadata_logs_that_are_alike_are_one(story: Story) -> None:
    control(story, 1, 2, 3)
    keep(story, 3, 3, 2)


@case(Outcome.VIOLATION, FORKED, **REAL)
def controllers_that_have_different_records_of_one_epoch_are_found(story: Story) -> None:
    control(story, 2)
    keep(story, 2, 2, 2)
    story.logs[-1]["batch_crc"] = 7


@case(Outcome.VIOLATION, FORKED, **REAL)
def a_controller_that_lacks_what_it_has_committed_is_found(story: Story) -> None:
    control(story, 3)
    keep(story, 3, 3, 3)
    story.logs.pop()


@case(Outcome.PASS, **REAL)
def a_controller_may_lack_what_it_has_not_heard_to_be_committed(story: Story) -> None:
    control(story, 3)
    keep(story, 3, 3, 2)
    story.logs.pop()


@case(Outcome.VIOLATION, ("hw-regression", "VIOLATION", 2), **REAL)
def a_quorum_whose_watermark_falls_is_found(story: Story) -> None:
    control(story, 3, 2)
    keep(story, 3, 3, 3)
