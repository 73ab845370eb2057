"""Stories of a quorum of controllers and its metadata log. Importing this module adds them to ``CASES``."""

from __future__ import annotations

from typing import Any

from harness.checker import Outcome
from tests.checkers.cases import case, write
from tests.checkers.laggard_cases import CASES
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import GUARANTEES, Row, Story

__all__ = ["CASES"]

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
