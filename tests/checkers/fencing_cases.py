"""Stories of consumers that name leader epochs. Importing this module adds them to ``CASES``."""

from __future__ import annotations

from harness.checker import Outcome
from tests.checkers.cases import case, write
from tests.checkers.story import Story

UNFENCED = ("unfenced-read", "VIOLATION", 2)


def read(story: Story, named: int | None, *offsets: int) -> None:
    """A consumer is given records of epochs 0 and 1 at offsets 1 and 2, 3; its fetch named an epoch, or none."""
    write(story, 2)
    story.elect(1)
    story.send()
    story.send()
    for row in story.poll(30, offsets):
        row["current_leader_epoch"] = named
    story.finish()


@case(Outcome.VIOLATION, UNFENCED)
def a_consumer_that_names_an_older_epoch_and_is_given_a_newer_record_is_found(story: Story) -> None:
    read(story, 0, 1, 2, 3)


@case(Outcome.PASS, ("unfenced-read", "DOCUMENTED", 2), generation="2.0.1")
def before_2_1_leaders_do_not_look_at_the_epoch(story: Story) -> None:
    read(story, 0, 2)


@case(Outcome.PASS)
def a_consumer_that_names_the_leader_s_epoch_may_be_given_older_records(story: Story) -> None:
    read(story, 1, 0, 1, 2, 3)


@case(Outcome.PASS)
def what_was_fetched_before_an_election_may_be_delivered_after_it(story: Story) -> None:
    read(story, 0, 0, 1)


@case(Outcome.PASS)
def a_consumer_that_does_not_say_what_it_names_is_not_judged(story: Story) -> None:
    read(story, None, 1, 2, 3)
