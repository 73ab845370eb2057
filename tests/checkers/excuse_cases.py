"""Stories in which an excuse, or what is said not to be there, may have been lost: nobody is convicted.

Importing this module adds them to ``CASES``.
"""

from __future__ import annotations

from typing import Any

from harness.checker import Outcome
from tests.checkers.cases import case, lose_tail, lost, regression, write
from tests.checkers.client_cases import CASES, two_partitions
from tests.checkers.clients import Sent, commit, move, transact
from tests.checkers.story import NODES, Row, Story

__all__ = ["CASES"]

UNCLEAN: dict[str, Any] = {"guarantees": {"min_insync_replicas": 2, "unclean_election": True}}


def lose(story: Story, *rows: Row) -> None:
    """These rows were recorded, and are not there."""
    gone = {id(row) for row in rows}
    story.history = [row for row in story.history if id(row) not in gone]
    story.timeline = [row for row in story.timeline if id(row) not in gone]


# ---------------------------------------------------------------------------------------------------- what is not there


@case(Outcome.INVALID, ("lost-commit", "INDETERMINATE", 3), reason="rows 15 to 16 are missing")
def a_commit_that_may_be_in_a_gap_of_the_history_is_not_called_lost(story: Story) -> None:
    write(story, 4)
    story.poll(5, range(4))
    commit(story, 1)
    known = len(story.history)
    commit(story, 3)
    second = story.history[known:]
    commit(story, 3, "committed")
    story.finish()
    lose(story, *second)


@case(Outcome.INVALID, ("nonmonotonic-poll", "INDETERMINATE", 0), reason="rows 13 to 14 are missing")
def a_consumer_whose_assignment_may_be_in_a_gap_of_the_history_was_not_taken_back(story: Story) -> None:
    write(story, 4)
    story.poll(5, range(4))
    known = len(story.history)
    move(story, 5, "assign", 0)
    moved = story.history[known:]
    story.poll(5, range(4))
    story.finish()
    lose(story, *moved)


@case(Outcome.INVALID, ("torn-transaction", "INDETERMINATE", None), reason="rows .* are missing")
def a_transaction_of_which_one_record_may_be_in_a_gap_is_not_torn(story: Story) -> None:
    two_partitions(story)
    write(story, 1)
    story.send(p=1)
    transact(story, Sent(0), Sent(1), result="info")
    story.send(p=1)
    story.finish()
    lose(story, *[row for row in story.final_rows(1) if row["offset"] == 1])


# ------------------------------------------------------------------------------------------------------ absent excuses


@case(
    Outcome.INVALID,
    lost(2, "INDETERMINATE"),
    regression(2, "INDETERMINATE"),
    reason=r"node 100 \(incarnation 0\) has 2 rows where its last one says 3",
    **UNCLEAN,
)
def a_permitted_unclean_election_may_be_in_a_gap_of_the_timeline(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2, clean=False)
    story.elect(2)
    story.finish()
    lose(story, next(row for row in story.timeline if row["kind"] == "election"))


@case(Outcome.VIOLATION, lost(2), regression(2), reason=r"node 100 \(incarnation 0\) has 2 rows")
def an_unclean_election_that_is_forbidden_may_be_in_a_gap_as_it_likes(story: Story) -> None:
    a_permitted_unclean_election_may_be_in_a_gap_of_the_timeline(story)


def dark(story: Story) -> None:
    """All nodes lose their power at one time, and the last of three records is gone."""
    write(story, 3)
    for node in NODES:
        times = {"injected_ns": story.now + 1, "healed_ns": story.now + 500_000, "heal_proven_ns": story.now + 500_001}
        story.fault(f"dark-{node}", kind="power_loss", nodes=[str(node)], **times)
    story.now += 1_000_000
    for node in NODES:
        story.restart(node)
    lose_tail(story, 2)
    story.finish()
    names = [{"inject": {"fault": "power_loss", "as": f"dark-{node}"}} for node in NODES]
    story.scenario["schedule"] = names


@case(Outcome.PASS, lost(2, "DOCUMENTED"), regression(2, "DOCUMENTED"))
def a_power_loss_of_all_excuses_a_loss(story: Story) -> None:
    dark(story)


@case(
    Outcome.INVALID,
    lost(2, "INDETERMINATE"),
    regression(2, "INDETERMINATE"),
    reason="Fault 'dark-1' is not among the 2 faults",
)
def a_power_loss_that_is_missing_among_the_faults_may_have_excused_a_loss(story: Story) -> None:
    dark(story)
    del story.faults[1]


@case(
    Outcome.INVALID,
    lost(2, "INDETERMINATE"),
    regression(2, "INDETERMINATE"),
    reason=r"Fault 'dark-1' \(power_loss of 1\) was never proven",
)
def a_power_loss_that_nobody_proved_may_have_excused_a_loss(story: Story) -> None:
    dark(story)
    story.faults[1]["proven_ns"] = None


@case(Outcome.VIOLATION, lost(2), regression(2), reason="Fault 'cut' .* was never proven")
def another_fault_that_nobody_proved_excuses_nothing(story: Story) -> None:
    write(story, 3)
    story.fault(proven_ns=None)
    lose_tail(story, 2)
    story.finish()
