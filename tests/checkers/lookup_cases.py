"""Stories of consumers that look offsets up by time. Importing this module adds them to ``CASES``."""

from __future__ import annotations

from harness.checker import Outcome
from harness.detection.withheld import samples
from tests.checkers.cases import Expected, case, lose_tail, lost, regression, write
from tests.checkers.excuse_cases import LEAST_2, UNCLEAN
from tests.checkers.group_cases import lose_power
from tests.checkers.lookups import look_up, read
from tests.checkers.order_cases import configured, order
from tests.checkers.reset_cases import ask_after_a_failover
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import NODES, Story

ORDERED = configured(order(2)) | {"guarantees": SAMPLED | {"retention": True}}
GIVEN_UP = configured(order(2, "_TIMED_OUT")) | {"guarantees": SAMPLED | {"retention": True}}


def lookup(offset: int, verdict: str = "VIOLATION") -> Expected:
    return "unfounded-lookup", verdict, offset


def read_three(story: Story) -> None:
    write(story, 3)
    read(story, 5, [0, 1, 2])


@case(Outcome.PASS)
def the_first_record_that_is_as_young_is_the_answer(story: Story) -> None:
    read_three(story)
    for offset in range(3):
        look_up(story, 6, offset, offset)
    look_up(story, 6, 3, None)
    story.finish()


@case(Outcome.VIOLATION, lookup(1))
def the_answer_may_not_be_a_younger_one(story: Story) -> None:
    read_three(story)
    look_up(story, 6, 1, 2)
    story.finish()


@case(Outcome.VIOLATION, lookup(0))
def nor_may_it_be_that_there_is_none(story: Story) -> None:
    read_three(story)
    look_up(story, 6, 0, None)
    story.finish()


@case(Outcome.PASS)
def an_answer_before_the_record_leaves_nothing_out(story: Story) -> None:
    read_three(story)
    look_up(story, 6, 2, 0)
    story.finish()


@case(Outcome.PASS)
def a_lookup_that_is_not_answered_proves_nothing(story: Story) -> None:
    read_three(story)
    look_up(story, 6, 1, None, error="_TIMED_OUT")
    story.finish()


@case(Outcome.PASS)
def nor_does_a_record_that_was_delivered_after_the_lookup_began(story: Story) -> None:
    write(story, 3)
    look_up(story, 6, 1, None)
    read(story, 5, [0, 1, 2])
    story.finish()


@case(Outcome.PASS)
def nor_one_whose_time_is_not_known(story: Story) -> None:
    write(story, 3)
    story.poll(5, [0, 1, 2])
    look_up(story, 6, 1, None)
    story.finish()


@case(Outcome.VIOLATION, lookup(1))
def a_later_leader_has_what_had_been_delivered(story: Story) -> None:
    read_three(story)
    story.elect(1)
    look_up(story, 6, 1, None)
    story.finish()


@case(Outcome.PASS)
def a_leader_that_has_not_heard_of_its_successor_may_lack_the_record(story: Story) -> None:
    ask_after_a_failover(story, lambda: look_up(story, 6, 2, None))


@case(Outcome.VIOLATION, lookup(1))
def even_that_one_has_what_its_epoch_wrote(story: Story) -> None:
    ask_after_a_failover(story, lambda: look_up(story, 6, 1, None))


def look_up_the_deleted(story: Story) -> None:
    """The leader has deleted what is looked up; the next leader has not."""
    write(story, 4)
    read(story, 5, [0, 1, 2, 3])
    story.delete(2, nodes=[0])
    look_up(story, 6, 1, 2)
    story.partitions[0].starts[0] = 0
    story.elect(1)
    story.finish()


@case(Outcome.PASS, lookup(1, "DOCUMENTED"), guarantees={"retention": True})
def what_the_leader_has_deleted_is_not_found(story: Story) -> None:
    look_up_the_deleted(story)


@case(Outcome.VIOLATION, lookup(1))
def where_nothing_may_be_deleted_it_has_to_be_found(story: Story) -> None:
    look_up_the_deleted(story)


@case(Outcome.PASS, lost(2, "DOCUMENTED"), ("vanished-read", "DOCUMENTED", 2), regression(2, "DOCUMENTED"), **UNCLEAN)
def what_an_unclean_election_gave_up_is_not_found(story: Story) -> None:
    read_three(story)
    lose_tail(story, 2, clean=False)
    look_up(story, 6, 2, None)
    story.finish()


@case(Outcome.PASS, lookup(2, "DOCUMENTED"), guarantees=SAMPLED | {"unclean_election": True})
def a_winner_that_was_only_looked_at_may_have_lost_it_for_a_while(story: Story) -> None:
    read_three(story)
    story.elect(2, clean=False)
    look_up(story, 6, 2, None)
    story.finish()


@case(Outcome.PASS, lookup(2, "DOCUMENTED"), **LEAST_2)
def a_leader_may_have_begun_without_it_where_all_lost_their_power(story: Story) -> None:
    read_three(story)
    lose_power(story, *NODES)
    look_up(story, 6, 2, None)
    story.finish()


@case(Outcome.PASS, lookup(1, "DOCUMENTED"), generation="2.1")
def a_new_leader_of_an_early_generation_answers_by_a_watermark_that_may_be_too_low(story: Story) -> None:
    read_three(story)
    story.elect(1)
    look_up(story, 6, 1, None)
    story.finish()


@case(Outcome.VIOLATION, lookup(1), generation="2.1")
def even_that_leader_may_not_answer_with_a_later_offset(story: Story) -> None:
    read_three(story)
    story.elect(1)
    look_up(story, 6, 1, 2)
    story.finish()


@case(Outcome.PASS, lookup(1, "DOCUMENTED"), **ORDERED)
def what_was_deleted_may_be_there_again_after_a_restart(story: Story) -> None:
    """Only samples tell of it."""
    write(story, 4)
    read(story, 5, [0, 1, 2, 3])
    story.delete(2)
    look_up(story, 6, 1, 2)
    for node in NODES:
        story.partitions[0].starts[node] = 0
        story.restart(node)
    story.elect(0)
    story.finish()
    story.timeline = samples(story.timeline, lambda _: True)


@case(Outcome.VIOLATION, lookup(3), **GIVEN_UP)
def what_no_request_asked_to_delete_has_to_be_found_in_samples_too(story: Story) -> None:
    write(story, 4)
    read(story, 5, [0, 1, 2, 3])
    look_up(story, 6, 3, None)
    story.finish()
    story.timeline = samples(story.timeline, lambda _: True)
