"""Stories about what an unclean election gives up, by epochs. Importing this module adds them to ``CASES``."""

from __future__ import annotations

from harness.checker import Outcome
from tests.checkers.cases import CASES, case, lost, regression, write
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
