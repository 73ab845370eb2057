"""Stories of brokers that start again on the logs they had. Importing this module adds to ``CASES``."""

from __future__ import annotations

import json
from typing import Any

from harness.checker import Outcome
from harness.detection.withheld import samples
from tests.checkers.cases import case, write
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import GUARANTEES, NODES, Row, Story

VIRTUAL: dict[str, Any] = {"guarantees": GUARANTEES | {"time": "virtual"}}
SHRUNK = ("shrunk-log", "VIOLATION", 2)


def append(story: Story) -> None:
    """Every node has three records, of which two are committed."""
    write(story, 2)
    story.send(acks=1, commit=False, result="info")


def reopen(story: Story, node: int, end: int = 2) -> None:
    """The node is started again, finds a log that ends there, and has all of it soon after."""
    log = list(story.partitions[0].logs[node])
    story.partitions[0].logs[node] = log[:end]
    story.restart(node)
    story.partitions[0].logs[node] = log
    story.state(node)


def drop(story: Story, node: int = 1, **fault: Any) -> None:
    """Three records, and a start that finds two of them; ``fault``: one that was there meanwhile."""
    append(story)
    if fault:
        story.fault(**fault)
    reopen(story, node)
    story.send()
    story.finish()


@case(Outcome.VIOLATION, SHRUNK, **VIRTUAL)
def what_a_killed_broker_had_written_is_there_when_it_starts_again(story: Story) -> None:
    drop(story, kind="kill", nodes=["1"])


@case(Outcome.VIOLATION, SHRUNK, **VIRTUAL)
def a_log_that_is_cut_first_was_too_short_before(story: Story) -> None:
    append(story)
    story.incarnations[1], story.sequences[1] = 1, 0
    story.say(1, "started", None)
    log = list(story.partitions[0].logs[1])
    story.partitions[0].logs[1] = log[:2]
    cut: Row = {"from_offset": 2, "to_offset": 2, "reason": "leader said so"}
    story.state(1, kind="truncation")["detail"] = json.dumps(cut)
    story.partitions[0].logs[1] = log
    story.state(1)
    story.send()
    story.finish()


@case(Outcome.PASS, **VIRTUAL)
def a_log_that_is_cut_first_was_as_long_before(story: Story) -> None:
    append(story)
    story.incarnations[1], story.sequences[1] = 1, 0
    story.say(1, "started", None)
    log = list(story.partitions[0].logs[1])
    story.cut(1, 2)
    story.partitions[0].logs[1] = log
    story.state(1)
    story.send()
    story.finish()


def begin_later(story: Story) -> None:
    """Node 1 is started again, and its log begins at 1."""
    write(story, 3)
    story.partitions[0].starts[1] = 1
    story.restart(1)
    story.partitions[0].starts[1] = 0
    story.state(1)
    story.send()
    story.finish()


@case(Outcome.VIOLATION, ("shrunk-log", "VIOLATION", 0), **VIRTUAL)
def the_beginning_of_a_log_does_not_go_with_its_process(story: Story) -> None:
    begin_later(story)


@case(Outcome.PASS)
def a_broker_may_be_killed_between_a_deletion_and_its_row(story: Story) -> None:
    begin_later(story)


@case(Outcome.PASS, **VIRTUAL)
def a_start_may_find_an_older_beginning(story: Story) -> None:
    write(story, 3)
    story.delete(2)
    story.partitions[0].starts = dict.fromkeys(NODES, 0)
    story.restart(1)
    story.finish()


@case(Outcome.PASS, **VIRTUAL)
def a_broker_may_have_written_more_than_it_said(story: Story) -> None:
    append(story)
    reopen(story, 1, 3)
    story.send()
    story.finish()


@case(Outcome.PASS)
def a_follower_may_be_killed_between_a_cut_and_its_row(story: Story) -> None:
    drop(story)


@case(Outcome.VIOLATION, SHRUNK)
def a_leader_that_leads_on_has_not_cut_its_log(story: Story) -> None:
    story.elect(0)
    drop(story, 0)


@case(Outcome.PASS)
def a_leader_that_was_succeeded_may_have_been_killed_between_a_cut_and_its_row(story: Story) -> None:
    append(story)
    story.elect(0)
    story.elect(1)
    reopen(story, 0)
    story.send()
    story.finish()


@case(Outcome.PASS, **VIRTUAL)
def a_power_loss_takes_what_was_not_flushed(story: Story) -> None:
    drop(story, kind="power_loss", nodes=["1"])


@case(Outcome.PASS, **VIRTUAL)
def a_wiped_disk_has_nothing(story: Story) -> None:
    drop(story, kind="wipe_disk", nodes=["1"])


@case(Outcome.PASS, **VIRTUAL)
def a_full_disk_may_take_what_could_not_be_kept(story: Story) -> None:
    drop(story, kind="disk_full", nodes=["1"])


@case(Outcome.PASS, **VIRTUAL)
def damage_may_show_itself_lives_later(story: Story) -> None:
    story.fault(kind="corrupt_log", nodes=["1"])
    append(story)
    story.restart(1)
    reopen(story, 1)
    story.send()
    story.finish()


@case(Outcome.VIOLATION, SHRUNK, **VIRTUAL)
def another_node_s_disk_full_takes_nothing_here(story: Story) -> None:
    drop(story, kind="disk_full", nodes=["2"])


@case(Outcome.VIOLATION, SHRUNK, **VIRTUAL)
def a_power_loss_of_an_earlier_life_takes_nothing_later(story: Story) -> None:
    story.fault(kind="power_loss", nodes=["1"])
    story.restart(1)
    drop(story)


@case(Outcome.PASS, guarantees=SAMPLED | VIRTUAL["guarantees"])
def a_log_may_have_been_cut_since_it_was_last_looked_at(story: Story) -> None:
    drop(story)
    story.timeline = samples(story.timeline, lambda _: True)
