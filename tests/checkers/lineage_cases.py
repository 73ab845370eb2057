"""Stories about what an unclean election gives up, by epochs. Importing this module adds them to ``CASES``."""

from __future__ import annotations

from harness.checker import Outcome
from tests.checkers.cases import CASES, case, lose_tail, lost, regression, write
from tests.checkers.story import Story

__all__ = ["CASES"]

PERMITTED = {"unclean_election": True, "min_insync_replicas": 2}


def serve_as_a_zombie(story: Story) -> None:
    """Node 0 has not heard of the election of node 1, acknowledges one more record, and shows it to a consumer."""
    old = story.partitions[0]
    election = story.timeline[-1]["time_ns"] + 1
    story.say(
        100, "election", 0,
        {"clean": False, "elected_from_isr": False, "previous_leader": 0, "controller_epoch": 1},
        leader=1, leader_epoch=1, time_ns=election,
    )  # fmt: skip
    story.now = election
    old.isr = {0, 2}
    story.send()
    story.poll(5, [len(old.logs[0]) - 1])
    old.epoch, old.leader, old.isr = 1, 1, {0, 1, 2}
    story.state(1)
    for node in (0, 2):
        story.cut(node, 2)
        story.state(node)


@case(
    Outcome.PASS,
    lost(2, "DOCUMENTED"),
    ("vanished-read", "DOCUMENTED", 2),
    regression(2, "DOCUMENTED"),
    guarantees=PERMITTED,
)
def what_a_zombie_acknowledges_after_an_unclean_election_has_been_given_up(story: Story) -> None:
    write(story, 2)
    serve_as_a_zombie(story)
    story.finish()


@case(Outcome.VIOLATION, lost(2), regression(2), guarantees=PERMITTED)
def what_is_written_in_the_epoch_of_an_unclean_election_is_not_given_up_by_it(story: Story) -> None:
    write(story, 2)
    story.elect(1, clean=False)
    story.send()
    story.cut(2, 2)
    story.elect(2)
    story.finish()


@case(Outcome.VIOLATION, lost(2), regression(2), guarantees=PERMITTED)
def an_unclean_election_recorded_late_does_not_excuse_its_own_epoch(story: Story) -> None:
    """The controller's row is younger than the acknowledgement; the epoch says what came first."""
    write(story, 2)
    story.elect(1, clean=False)
    row = next(r for r in story.timeline if r["kind"] == "election")
    story.send()
    row["time_ns"] = story.now + 1
    story.cut(2, 2)
    story.elect(2)
    story.finish()


@case(
    Outcome.VIOLATION,
    lost(1),
    lost(2, "DOCUMENTED"),
    regression(1),
    regression(2, "DOCUMENTED"),
    guarantees=PERMITTED,
)
def what_the_winner_of_an_unclean_election_had_is_not_given_up_by_it(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2, clean=False)
    story.cut(2, 1)
    story.elect(2)
    story.finish()


def overwrite_uncleanly(story: Story, *, heard: bool) -> None:
    """Node 1 leads with a record of epoch 0 where one of epoch 1 was committed; ``heard``: or it seems to be of 1."""
    write(story, 2)
    story.send(result="info", copies=(1,), commit=False)
    part = story.partitions[0]
    stale = list(part.logs[1])
    part.leader, part.epoch, part.isr = 2, 1, {0, 2}
    story.state(2)
    story.cut(0, 2)
    story.send(copies=(0,))
    if heard:
        part.logs[1] = stale[:2]
        story.state(1)
        part.logs[1] = stale
        story.state(1)
    part.isr = {0, 1, 2}
    story.elect(1, clean=False)
    story.commit()
    story.finish()


@case(Outcome.PASS, lost(2, "DOCUMENTED"), ("inconsistent-offsets", "DOCUMENTED", 2), guarantees=PERMITTED)
def where_the_winner_of_an_unclean_election_had_something_else_the_record_is_given_up(story: Story) -> None:
    overwrite_uncleanly(story, heard=False)


@case(Outcome.VIOLATION, lost(2), ("inconsistent-offsets", "VIOLATION", 2), guarantees=PERMITTED)
def what_the_winner_of_an_unclean_election_got_in_the_record_s_epoch_is_not_something_else(story: Story) -> None:
    overwrite_uncleanly(story, heard=True)
