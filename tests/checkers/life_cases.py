"""Stories whose faults, endings and timelines tell of the nodes' lives. Importing this module adds to ``CASES``."""

from __future__ import annotations

from typing import Any

from harness.checker import Outcome
from tests.checkers.cases import case, write
from tests.checkers.guarantee_cases import configured
from tests.checkers.story import Story

UNEXPLAINED = "Node 1 has a life 1, and neither a fault nor an ending in run.json says how its life 0 ended"
SECOND = 1_000_000_000


def ended(**more: Any) -> dict[str, Any]:
    """A manifest with the ending of the first life of node 1."""
    harmed = {"node": 1, "incarnation": 0, "time_ns": 0, "status": 1, "said": "Halting.", "blames": ""} | more
    return {**configured(), "endings": [harmed]}


def harmed(story: Story, kind: str, *, halts: bool | None = None) -> None:
    """Node 1 was hit by a fault, whereupon it may say whether it halts, and was started again."""
    write(story, 2)
    story.fault(kind=kind, nodes=["1"])
    if halts is not None:
        story.say(1, "storage_failed", None, detail={"errno": 28, "halts": halts})
    story.restart(1)
    story.faults[-1] |= {"healed_ns": story.now, "heal_proven_ns": story.now}
    write(story, 1)
    story.finish()


@case(Outcome.PASS, **configured())
def a_life_that_follows_a_kill_is_explained(story: Story) -> None:
    harmed(story, "kill")


@case(Outcome.PASS, **configured())
def a_life_that_follows_on_the_healing_of_a_disk_is_explained(story: Story) -> None:
    harmed(story, "disk_full", halts=False)


@case(Outcome.PASS, **configured())
def a_node_may_be_ended_that_has_lost_its_last_log_directory(story: Story) -> None:
    harmed(story, "log_dir_failure", halts=True)


@case(Outcome.PASS, ("node-exit", "DOCUMENTED", None), **ended())
def a_life_that_ended_by_itself_is_explained(story: Story) -> None:
    harmed(story, "disk_full", halts=True)
    story.faults[-1] |= {"injected_ns": 0, "aimed_ns": 0}


@case(Outcome.INVALID, **configured(), reason=f"{UNEXPLAINED}, in which a row records that it halts")
def a_life_that_says_that_it_halts_has_an_ending(story: Story) -> None:
    harmed(story, "disk_full", halts=True)


@case(Outcome.INVALID, **configured(), reason=UNEXPLAINED)
def a_life_that_nothing_ended_makes_the_run_invalid(story: Story) -> None:
    harmed(story, "pause")


@case(Outcome.INVALID, **configured(), reason=UNEXPLAINED)
def a_fault_that_was_healed_before_explains_no_life(story: Story) -> None:
    write(story, 1)
    story.fault(kind="pause", nodes=["1"])
    story.fault(kind="log_dir_failure", nodes=["1"])
    write(story, 2)
    story.restart(1)
    story.finish()


@case(Outcome.PASS)
def a_run_that_no_target_made_need_not_explain_lives(story: Story) -> None:
    write(story, 2)
    story.restart(1)
    story.finish()


def killed(story: Story, until_s: float) -> None:
    """Node 1 is killed, and so many seconds after its restart the kill is said to be healed."""
    write(story, 2)
    story.fault(kind="kill", nodes=["1"])
    story.restart(1)
    write(story, 1)
    story.now += 20 * SECOND
    write(story, 1)
    story.finish()
    begun = next(row["time_ns"] for row in story.timeline if (row["node"], row["incarnation"]) == (1, 1))
    story.faults[-1] |= dict.fromkeys(("healed_ns", "heal_proven_ns"), begun + round(until_s * SECOND))


@case(Outcome.PASS, **configured())
def a_node_may_have_rows_until_it_is_seen_that_it_is_back(story: Story) -> None:
    killed(story, 9.5)


@case(Outcome.INVALID, **configured(), reason=r"has node 1 down from \d+ to \d+, and .* rows of its life 1 meanwhile")
def a_killed_node_that_has_rows_for_long_makes_the_run_invalid(story: Story) -> None:
    killed(story, 10.5)


@case(Outcome.PASS, **configured(time="virtual", configuration={"target": "simulated"}))
def a_node_is_back_when_it_is_started_in_virtual_time(story: Story) -> None:
    killed(story, 0.0)


@case(
    Outcome.INVALID,
    **configured(time="virtual", configuration={"target": "simulated"}),
    reason="has rows of its life 1 meanwhile",
)
def a_killed_node_that_has_rows_in_virtual_time_makes_the_run_invalid(story: Story) -> None:
    killed(story, 0.1)


@case(Outcome.INVALID, **configured(), reason="has rows of its life 0 meanwhile")
def a_node_that_has_rows_after_its_kill_was_proven_makes_the_run_invalid(story: Story) -> None:
    write(story, 1)
    story.fault(kind="stop", nodes=["1"])
    write(story, 2)
    story.faults[-1] |= {"healed_ns": story.now, "heal_proven_ns": story.now}
    story.restart(1)
    story.finish()


@case(Outcome.INVALID, **configured(), reason="Faults 'cut' and 'cut 1' both have node 1 down")
def a_node_is_not_down_twice_at_once(story: Story) -> None:
    harmed(story, "kill")
    story.faults.append(story.faults[-1] | {"fault": "cut 1", "kind": "power_loss"})
    story.restart(1)


def quiet(story: Story) -> None:
    write(story, 2)
    story.finish()


@case(Outcome.INVALID, **configured(), reason="have rows about ledger-0 that name no ISR")
def a_built_in_leader_that_names_no_isr_makes_the_run_invalid(story: Story) -> None:
    quiet(story)
    for row in story.timeline:
        row["isr"] = None if row["kind"] == "state" else row["isr"]


@case(Outcome.INVALID, **configured(), reason="No poll names the leader epoch of a record that it delivered")
def polls_of_a_built_in_cluster_that_name_no_epoch_make_the_run_invalid(story: Story) -> None:
    quiet(story)
    for row in story.history:
        row["leader_epoch"] = None


@case(Outcome.PASS)
def who_did_not_run_on_a_target_may_read_records_without_an_epoch(story: Story) -> None:
    quiet(story)
    for row in story.history:
        row["leader_epoch"] = None
