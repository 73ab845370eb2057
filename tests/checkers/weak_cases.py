"""Stories of records that are weak. Importing this module adds to ``CASES``."""

from __future__ import annotations

from harness.checker import Outcome
from harness.detection.withheld import samples
from tests.checkers.cases import case, lost, write
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import GUARANTEES, NODES, Partition, Story


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


@case(Outcome.VIOLATION, lost(None))
def a_record_that_all_are_said_to_have_is_lost_when_it_is_nowhere_though_no_place_was_named(story: Story) -> None:
    write(story, 2)
    story.send(append=False, offset=None)
    story.finish()


@case(Outcome.PASS)
def a_record_that_is_somewhere_is_not_lost_though_no_place_was_named(story: Story) -> None:
    write(story, 2)
    story.send(offset=None)
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


@case(Outcome.VIOLATION, lost(2), ("inconsistent-offsets", "VIOLATION", 2))
def what_happens_after_another_record_took_its_offset_did_not_take_a_record(story: Story) -> None:
    drop(story)
    write(story, 1, acks=1)
    story.restart(0)
    story.elect(1)
    story.finish()


@case(Outcome.VIOLATION, lost(2))
def a_record_that_never_was_in_its_leader_s_log_was_taken_by_no_later_election(story: Story) -> None:
    drop(story)
    story.state(0)
    story.restart(0)
    story.elect(1)
    story.finish()


def calm(story: Story) -> None:
    """Half a minute in which no broker has anything to say."""
    story.now += 30_000_000_000


@case(Outcome.VIOLATION, lost(2))
def an_election_takes_nothing_that_a_leader_did_not_have_all_the_calm_before_it(story: Story) -> None:
    drop(story)
    calm(story)
    story.elect(1)
    story.finish()


@case(Outcome.VIOLATION, lost(2))
def what_a_broker_says_of_another_replica_ends_its_calm_too(story: Story) -> None:
    story.partitions[1] = Partition()
    for node in NODES:
        story.state(node, 1)
    drop(story)
    calm(story)
    story.state(0, 1)
    story.restart(0)
    story.finish()


@case(Outcome.PASS, lost(2, "WEAK"))
def a_leader_that_said_nothing_more_before_it_was_killed_may_have_had_its_record(story: Story) -> None:
    drop(story)
    calm(story)
    story.restart(0)
    story.elect(1)
    story.finish()


@case(Outcome.PASS, lost(2, "WEAK"))
def a_record_that_the_next_row_has_was_there_though_it_says_so_after_the_acknowledgement(story: Story) -> None:
    write(story, 2)
    story.send(acks=1, append=False, offset=2)
    part = story.partitions[0]
    part.logs[0].append((0, 2))
    part.isr = {0, 1}
    story.state(0)
    story.elect(1)
    story.finish()


@case(Outcome.PASS, lost(2, "WEAK"))
def a_record_that_the_next_row_cuts_was_there(story: Story) -> None:
    write(story, 2)
    story.send(acks=1, append=False, offset=2)
    part = story.partitions[0]
    part.logs[0].append((0, 2))
    part.leader, part.epoch = 1, 1
    story.say(
        100, "election", 0, {"clean": True, "elected_from_isr": True, "previous_leader": 0, "controller_epoch": 1},
        leader=1, leader_epoch=1, partition_epoch=3, isr=[0, 1, 2],
    )  # fmt: skip
    story.state(1)
    story.cut(0, 2)
    story.finish()


@case(Outcome.VIOLATION, lost(2), ("inconsistent-offsets", "VIOLATION", 2))
def a_broker_that_led_only_after_it_was_started_again_took_nothing_by_that(story: Story) -> None:
    drop(story)
    story.restart(2)
    write(story, 1)
    story.elect(2)
    story.finish()


@case(Outcome.VIOLATION, lost(2))
def what_happens_after_a_leader_s_log_was_cut_did_not_cut_it(story: Story) -> None:
    write(story, 2)
    story.send(acks=1, copies=(), commit=False)
    story.cut(0, 2)
    story.elect(1)
    story.finish()


@case(Outcome.PASS, lost(2, "WEAK"), ("inconsistent-offsets", "WEAK", 2))
def that_another_record_was_committed_at_its_offset_does_not_make_a_record_committed(story: Story) -> None:
    write(story, 2)
    story.send(acks=1, append=False, offset=2)
    story.restart(0)
    write(story, 1)
    story.finish()


@case(Outcome.VIOLATION, lost(2), ("inconsistent-offsets", "VIOLATION", 2), ("replica-divergence", "VIOLATION", 2))
def a_record_that_a_log_holds_was_committed_though_another_one_has_its_place(story: Story) -> None:
    write(story, 2)
    story.send(acks=1)
    story.send(result="info", append=False)
    story.partitions[0].logs[0][2] = story.partitions[0].logs[1][2] = (0, 3)
    story.finish()


@case(Outcome.PASS, lost(2, "WEAK"), ("inconsistent-offsets", "WEAK", 2))
def a_leader_that_is_elected_before_another_record_took_its_offset_may_not_have_had_the_first(story: Story) -> None:
    write(story, 2)
    story.send(acks=1, copies=(), commit=False)
    story.elect(1)
    write(story, 1)
    story.restart(0)
    story.finish()


@case(Outcome.PASS, lost(2, "WEAK"))
def a_log_that_ends_before_a_record_when_its_leader_is_back_may_have_lost_it_by_that(story: Story) -> None:
    write(story, 2)
    story.send(acks=1, copies=(), commit=False)
    del story.partitions[0].logs[0][2:]
    story.restart(0)
    story.finish()


@case(Outcome.PASS, *(lost(offset, "WEAK") for offset in range(1, 26)))
def times_of_senders_that_wait_for_nobody_say_nothing_of_others_that_are_only_counted(story: Story) -> None:
    write(story, 1)
    write(story, 5, acks=0, append=False, offset=None)
    for isr in ({0, 1}, set(NODES)):
        story.partitions[0].isr = isr
        story.state(0)
    write(story, 30, acks=1, copies=(), commit=False)
    story.elect(1)
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
