"""Stories of controllers that start again, and of rows that are missing. Importing this adds them to ``CASES``."""

from __future__ import annotations

import json

from harness.checker import Outcome
from tests.checkers.cases import case, write
from tests.checkers.story import CONTROLLER, Story
from tests.checkers.timeline_cases import cut_and_refetch, decide


def start_again(story: Story, controller_epoch: int) -> None:
    """The controller decides in controller epoch 1, and once it has started again in this one."""
    write(story, 2)
    decide(story, leader_epoch=1, partition_epoch=4)
    story.restart_controller()
    decide(story, leader_epoch=1, partition_epoch=5, detail={"controller_epoch": controller_epoch})
    story.finish()


@case(Outcome.VIOLATION, ("epoch-regression", "VIOLATION", None))
def a_controller_that_starts_again_without_raising_its_epoch_is_found(story: Story) -> None:
    start_again(story, 1)


@case(Outcome.PASS)
def a_controller_that_starts_again_raises_its_epoch(story: Story) -> None:
    start_again(story, 2)


@case(Outcome.INVALID, reason="Node 2 .* does not say why its log of ledger-0, which ended at 2, ended at 1")
def a_cut_without_its_row_makes_the_run_invalid(story: Story) -> None:
    write(story, 1)
    story.send(result="info", commit=False)
    cut_and_refetch(story)
    story.timeline = [row for row in story.timeline if row["kind"] != "truncation"]
    renumber(story, 2)


@case(
    Outcome.INVALID,
    ("lost-write", "DOCUMENTED", 0),
    reason="does not say why its log of ledger-0, which began at 0, began at 1",
    guarantees={"retention": True, "min_insync_replicas": 2},
)
def a_log_that_begins_later_without_its_row_makes_the_run_invalid(story: Story) -> None:
    write(story, 3)
    story.delete(1)
    story.elect(1)
    story.finish()
    story.timeline = [row for row in story.timeline if (row["kind"], row["node"]) != ("log_start", 2)]
    renumber(story, 2)


@case(Outcome.INVALID, reason="does not say that the session of broker 1 began")
def a_controller_that_does_not_say_whose_session_began_makes_the_run_invalid(story: Story) -> None:
    write(story, 2)
    story.finish()
    first = json.dumps({"broker": 1, "change": "registered"})
    story.timeline = [row for row in story.timeline if row["detail"] != first]
    renumber(story, CONTROLLER)


def renumber(story: Story, node: int) -> None:
    """Close the gaps that rows left which are not there any more."""
    rows = sorted((row for row in story.timeline if row["node"] == node), key=lambda row: int(row["sequence"]))
    last = {row["sequence"] for row in rows if row["kind"] == "final"}
    others = [row for row in rows if row["kind"] != "final"]
    for sequence, row in enumerate(others):
        row["sequence"] = sequence
    for row in rows:
        if row["sequence"] in last and row["kind"] == "final":
            row["sequence"] = len(others)
