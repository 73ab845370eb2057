"""Stories of records that are weak. Importing this module adds to ``CASES``."""

from __future__ import annotations

from harness.checker import Outcome
from tests.checkers.cases import case, lost, write
from tests.checkers.rest_cases import CASES
from tests.checkers.sampling import SAMPLED, samples
from tests.checkers.story import GUARANTEES, NODES, Story

__all__ = ["CASES"]


def drop(story: Story, acks: int = 1) -> None:
    """The leader acknowledges a record at its log's end, and does not append it."""
    write(story, 2)
    story.send(acks=acks, append=False, offset=2 if acks else None)


@case(Outcome.VIOLATION, lost(2), guarantees=GUARANTEES | {"unclean_election": True})
def a_leader_that_leads_on_keeps_what_it_has_acknowledged(story: Story) -> None:
    drop(story)
    story.finish()


@case(Outcome.PASS, lost(None, "WEAK"))
def who_waits_for_nobody_is_promised_nothing(story: Story) -> None:
    drop(story, acks=0)
    story.finish()


@case(Outcome.VIOLATION, lost(2))
def a_follower_that_is_started_again_takes_nothing_from_its_leader(story: Story) -> None:
    drop(story)
    story.restart(2)
    story.finish()


@case(Outcome.PASS, lost(2, "WEAK"))
def a_leader_that_is_started_again_may_have_lost_what_it_had_not_flushed(story: Story) -> None:
    drop(story)
    story.restart(0)
    story.finish()


@case(Outcome.VIOLATION, lost(2))
def what_happened_before_a_send_began_did_not_take_its_record(story: Story) -> None:
    write(story, 1)
    story.restart(0)
    story.elect(0)
    for node in NODES:
        story.state(node)
    story.now += 10_000_000_000
    write(story, 1)
    story.send(acks=1, append=False, offset=2)
    story.finish()


@case(Outcome.VIOLATION, lost(2))
def a_leader_that_was_started_before_a_send_has_not_been_started_again_since(story: Story) -> None:
    write(story, 1)
    story.restart(0)
    story.now += 10_000_000_000
    write(story, 1)
    story.send(acks=1, append=False, offset=2)
    story.partitions[0].isr = {0, 1}
    story.state(0)
    story.partitions[0].isr = set(NODES)
    story.state(0)
    story.finish()


@case(Outcome.VIOLATION, lost(2), ("inconsistent-offsets", "VIOLATION", 2))
def a_leader_that_leads_on_gives_no_offset_to_two_records(story: Story) -> None:
    drop(story)
    write(story, 1, acks=1)
    story.finish()


@case(Outcome.PASS, lost(2, "WEAK"))
def a_leader_that_has_not_heard_of_another_one_may_still_take_records(story: Story) -> None:
    write(story, 2)
    part = story.partitions[0]
    story.say(
        100, "election", 0, {"clean": True, "elected_from_isr": True, "previous_leader": 0, "controller_epoch": 1},
        leader=1, leader_epoch=1, partition_epoch=3, isr=[1, 2],
    )  # fmt: skip
    story.now += 10_000_000_000
    story.send(acks=1, copies=(), commit=False)
    part.leader, part.epoch = 1, 1
    story.state(1)
    story.cut(0, 2)
    story.finish()


@case(Outcome.VIOLATION, lost(2), guarantees=SAMPLED)
def a_leader_that_is_looked_at_now_and_then_and_leads_on_keeps_it_too(story: Story) -> None:
    drop(story)
    story.finish()
    story.timeline = samples(story.timeline, lambda _: True)


@case(Outcome.INVALID, lost(2, "INDETERMINATE"), reason="has .* rows where")
def an_election_may_be_in_the_gap_of_a_timeline(story: Story) -> None:
    drop(story)
    story.finish()
    gone = next(row for row in story.timeline if (row["node"], row["kind"], row["sequence"]) == (1, "state", 3))
    story.timeline.remove(gone)


@case(Outcome.PASS, lost(0, "DOCUMENTED"), guarantees=GUARANTEES | {"retention": True})
def what_was_deleted_is_not_put_down_to_what_its_sender_waited_for(story: Story) -> None:
    story.send(acks=1, commit=False)
    write(story, 2)
    story.delete(1)
    story.finish()
