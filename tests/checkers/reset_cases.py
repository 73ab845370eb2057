"""Stories of consumers that are told that they are out of range. Importing this module adds them to ``CASES``."""

from __future__ import annotations

from collections.abc import Callable

from harness.checker import Outcome
from tests.checkers.cases import Expected, case, lose_tail, lost, regression, write
from tests.checkers.excuse_cases import LEAST_2, UNCLEAN
from tests.checkers.group_cases import lose_power
from tests.checkers.lookups import read
from tests.checkers.resets import be_refused
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import NODES, Story
from tests.checkers.timeline_cases import decide


def reset(offset: int, verdict: str = "VIOLATION") -> Expected:
    return "unfounded-reset", verdict, offset


def read_three(story: Story) -> None:
    write(story, 3)
    story.poll(5, [0, 1, 2])


@case(Outcome.VIOLATION, reset(2))
def a_consumer_at_the_end_may_not_be_told_that_it_is_out_of_range(story: Story) -> None:
    read_three(story)
    be_refused(story, 5, 3)
    story.finish()


@case(Outcome.VIOLATION, reset(0))
def nor_may_one_in_the_middle_be_told_that_the_log_was_truncated_there(story: Story) -> None:
    read_three(story)
    be_refused(story, 5, 1, error="_LOG_TRUNCATION")
    story.finish()


@case(Outcome.PASS)
def what_another_consumer_was_given_does_not_count_where_epochs_tell_of_a_truncation(story: Story) -> None:
    read_three(story)
    be_refused(story, 6, 1, error="_LOG_TRUNCATION")
    story.finish()


@case(Outcome.VIOLATION, reset(2))
def what_the_same_poll_has_delivered_counts(story: Story) -> None:
    write(story, 3)
    be_refused(story, 5, 3, [0, 1, 2])
    story.finish()


@case(Outcome.VIOLATION, reset(2))
def a_later_leader_has_what_was_delivered_before_it_was_elected(story: Story) -> None:
    read_three(story)
    story.elect(1)
    be_refused(story, 5, 3)
    story.finish()


def ask_after_a_failover(story: Story, ask: Callable[[], None]) -> None:
    """Broker 0 does not hear that 1 has taken over, which writes a third record; a consumer reads all there is."""
    write(story, 2)
    begin = len(story.timeline)
    story.elect(1)
    decide(story, leader=1, leader_epoch=1, partition_epoch=4, isr=[1, 2])
    story.partitions[0].isr = {1, 2}
    story.send()
    deposed = [row for row in story.timeline[begin:] if row["node"] == 0]
    story.timeline = [row for row in story.timeline if all(row is not one for one in deposed)]
    story.sequences[0] -= len(deposed)
    read(story, 5, [0, 1, 2])
    ask()
    story.state(0)
    story.finish()


@case(Outcome.PASS)
def a_leader_that_has_not_heard_of_its_successor_may_have_refused(story: Story) -> None:
    ask_after_a_failover(story, lambda: be_refused(story, 5, 3))


@case(Outcome.VIOLATION, reset(1))
def even_that_one_has_what_was_written_before_its_successor_led(story: Story) -> None:
    ask_after_a_failover(story, lambda: be_refused(story, 5, 2))


@case(Outcome.PASS)
def a_position_that_no_consumer_had_reached_proves_nothing(story: Story) -> None:
    write(story, 3)
    story.poll(5, [0, 1])
    be_refused(story, 6, 3)
    story.finish()


@case(Outcome.PASS)
def a_position_behind_the_end_is_refused_rightly(story: Story) -> None:
    read_three(story)
    be_refused(story, 5, 4)
    story.finish()


@case(Outcome.PASS)
def a_client_that_does_not_say_where_it_was_proves_nothing(story: Story) -> None:
    read_three(story)
    be_refused(story, 5, None)
    story.finish()


def refuse_the_deleted(story: Story) -> None:
    """The leader has deleted what a consumer was to read next; the next leader has not."""
    write(story, 4)
    story.poll(5, [0])
    story.delete(3, nodes=[0])
    be_refused(story, 5, 1)
    story.partitions[0].starts[0] = 0
    story.elect(1)
    story.finish()


@case(Outcome.PASS, reset(0, "DOCUMENTED"), guarantees={"retention": True})
def a_position_before_what_the_leader_has_deleted_is_refused_rightly(story: Story) -> None:
    refuse_the_deleted(story)


@case(Outcome.VIOLATION, reset(0))
def where_nothing_may_be_deleted_no_position_is_before_the_log(story: Story) -> None:
    refuse_the_deleted(story)


@case(Outcome.PASS, lost(2, "DOCUMENTED"), ("vanished-read", "DOCUMENTED", 2), regression(2, "DOCUMENTED"), **UNCLEAN)
def a_position_that_an_unclean_election_gave_up_is_refused_rightly(story: Story) -> None:
    read_three(story)
    lose_tail(story, 2, clean=False)
    be_refused(story, 5, 3)
    story.finish()


def elect_uncleanly_and_lose_nothing(story: Story) -> None:
    read_three(story)
    story.elect(2, clean=False)
    be_refused(story, 5, 3)
    story.finish()


@case(Outcome.VIOLATION, reset(2), **UNCLEAN)
def an_unclean_election_whose_winner_had_the_record_excuses_nothing(story: Story) -> None:
    elect_uncleanly_and_lose_nothing(story)


@case(Outcome.PASS, reset(2, "DOCUMENTED"), guarantees=SAMPLED | {"unclean_election": True})
def one_whose_winner_was_only_looked_at_may_have_lost_it_for_a_while(story: Story) -> None:
    elect_uncleanly_and_lose_nothing(story)


@case(Outcome.PASS, reset(2, "DOCUMENTED"), **LEAST_2)
def a_leader_may_have_begun_with_less_where_all_lost_their_power(story: Story) -> None:
    read_three(story)
    lose_power(story, *NODES)
    be_refused(story, 5, 3)
    story.finish()
