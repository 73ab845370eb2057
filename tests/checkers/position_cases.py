"""Stories about positions of consumers behind markers, about records that only those are given who read uncommitted
ones, and about partitions that end with what nobody else is given.

Importing this module adds them to ``CASES``.
"""

from __future__ import annotations

from harness.checker import Outcome
from tests.checkers.cases import Expected, case, lost, regression, write
from tests.checkers.clients import Sent, poll, transact
from tests.checkers.excuse_cases import LEAST_2, UNCLEAN
from tests.checkers.given_up_cases import UNCLEAN_AND_RETENTION
from tests.checkers.story import NODES, Partition, Story
from tests.checkers.transaction_cases import SETTLES, closed, marked

UNREAD = "The final read of ledger-0 ended at 1, below the final high watermark 3"


def stand_behind_a_marker(story: Story) -> None:
    """A consumer was given offsets 0 and 1; behind them is a marker that node 1 lacks."""
    write(story, 1)
    transact(story, Sent(0))
    story.partitions[0].isr = {0, 2}
    story.state(0)
    story.append(0, None, [2])
    story.poll(5, [0, 1])


def elect_who_has(story: Story, end: int) -> None:
    """Node 1 leads, by an unclean election, although its log ends there."""
    part = story.partitions[0]
    part.logs[1] = part.logs[1][:end]
    part.marks[1] = min(part.marks[1], end)
    story.elect(1, clean=False)
    part.isr = set(NODES)
    story.state(1)


def given_up(end: int, verdict: str = "DOCUMENTED") -> tuple[Expected, ...]:
    """What else is found when an election gives up what lies from there on: both others cut it off."""
    return *2 * (("committed-cut", verdict, end),), regression(end, verdict)


@case(Outcome.PASS, ("nonmonotonic-poll", "DOCUMENTED", 0), *given_up(2), **UNCLEAN)
def a_consumer_behind_a_marker_that_was_given_up_may_be_taken_back(story: Story) -> None:
    stand_behind_a_marker(story)
    elect_who_has(story, 2)
    story.poll(5, [0])
    story.finish()


@case(Outcome.PASS, ("poll-skip", "DOCUMENTED", 2), *given_up(2), **UNCLEAN)
def a_consumer_behind_a_marker_that_was_given_up_may_be_taken_past_what_took_its_place(story: Story) -> None:
    stand_behind_a_marker(story)
    elect_who_has(story, 2)
    write(story, 3)
    story.poll(5, [3, 4])
    story.finish()


@case(Outcome.VIOLATION, ("nonmonotonic-poll", "VIOLATION", 0), *given_up(2, "VIOLATION"), **LEAST_2)
def a_consumer_is_not_taken_back_by_an_election_that_nothing_permits(story: Story) -> None:
    a_consumer_behind_a_marker_that_was_given_up_may_be_taken_back(story)


@case(Outcome.VIOLATION, ("nonmonotonic-poll", "VIOLATION", 0), **UNCLEAN)
def a_consumer_is_not_taken_back_by_an_election_that_gave_up_nothing(story: Story) -> None:
    write(story, 1)
    transact(story, Sent(0))
    story.poll(5, [0, 1])
    elect_who_has(story, 2)
    story.poll(5, [0])
    story.finish()


@case(Outcome.VIOLATION, ("nonmonotonic-poll", "VIOLATION", 0), *given_up(2), **UNCLEAN)
def a_consumer_that_came_after_the_election_is_not_taken_back_by_it(story: Story) -> None:
    stand_behind_a_marker(story)
    elect_who_has(story, 2)
    story.restart(0)
    story.poll(6, [0, 1])
    story.poll(6, [0])
    story.finish()


@case(Outcome.VIOLATION, ("nonmonotonic-poll", "VIOLATION", 0), *given_up(4), **UNCLEAN)
def a_consumer_that_had_not_come_to_the_new_end_is_not_taken_back(story: Story) -> None:
    write(story, 2)
    marked(story)
    story.partitions[0].isr = {0, 2}
    story.state(0)
    story.append(0, None, [2])
    story.poll(5, [0, 1])
    elect_who_has(story, 4)
    story.poll(5, [0])
    story.finish()
    story.forget(*[row for row in story.final_rows() if row["offset"] == 3])


@case(Outcome.VIOLATION, ("nonmonotonic-poll", "VIOLATION", 0), *given_up(2), **UNCLEAN)
def without_transactions_a_consumer_stands_right_behind_what_it_was_given(story: Story) -> None:
    write(story, 2)
    story.partitions[0].isr = {0, 2}
    story.state(0)
    story.append(0, None, [2])
    story.poll(5, [0, 1])
    elect_who_has(story, 2)
    story.poll(5, [0])
    story.finish()


# ---------------------------------------------------------------------------------------------------- half of it, read


def half_of_it_goes(story: Story, isolation: str | None) -> None:
    """A transaction of which nobody knows how it ended: one half was committed, the other is gone by the end."""
    story.partitions[1] = Partition()
    for node in NODES:
        story.state(node, 1)
    write(story, 1, p=1)
    transact(story, Sent(0), Sent(1), result="info")
    poll(story, 5, [0], 0)
    poll(story, 6, [1], 1, isolation=isolation)
    story.send(1)
    story.finish()
    story.forget(*[row for row in story.final_rows(1) if row["offset"] == 1])


@case(Outcome.VIOLATION, ("torn-transaction", "VIOLATION", 1))
def half_of_a_transaction_that_only_readers_of_uncommitted_records_were_given_is_missed(story: Story) -> None:
    half_of_it_goes(story, "read_uncommitted")


@case(Outcome.VIOLATION, ("vanished-read", "VIOLATION", 1), ("int-poll-skip", "VIOLATION", 1))
def half_of_a_transaction_that_was_read_as_committed_vanishes(story: Story) -> None:
    half_of_it_goes(story, "read_committed")


@case(Outcome.PASS, lost(0, "DOCUMENTED"), ("torn-transaction", "DOCUMENTED", 1), **UNCLEAN_AND_RETENTION)
def half_of_a_transaction_that_was_read_uncommitted_may_be_deleted(story: Story) -> None:
    story.partitions[1] = Partition()
    for node in NODES:
        story.state(node, 1)
    write(story, 1, p=1)
    transact(story, Sent(0), Sent(1), result="info")
    poll(story, 5, [0], 0)
    poll(story, 6, [1], 1, isolation="read_uncommitted")
    story.delete(2, 1)
    story.finish()


# ------------------------------------------------------------------------------------------------------ the very end


@case(Outcome.PASS, guarantees=SETTLES)
def a_partition_may_end_with_an_aborted_transaction(story: Story) -> None:
    write(story, 1)
    marked(story, "fail")
    closed(story, None, None, "abort", hidden=1, more=0)


@case(Outcome.INCONCLUSIVE, reason=UNREAD, guarantees=SETTLES)
def what_was_committed_at_a_partition_s_end_is_to_be_read(story: Story) -> None:
    write(story, 1)
    marked(story, "info")
    closed(story, None, None, "commit", hidden=1, more=0)


@case(Outcome.VIOLATION, ("open-transaction", "VIOLATION", 1), reason=UNREAD, guarantees=SETTLES)
def another_producer_s_abort_is_no_reason_not_to_read_what_is_at_the_end(story: Story) -> None:
    write(story, 1)
    marked(story, "info")
    closed(story, None, None, "abort", hidden=1, more=0, producers=(7, 7, 8))


@case(Outcome.INCONCLUSIVE, reason=UNREAD, guarantees=SETTLES)
def what_belongs_to_no_transaction_is_to_be_read_whatever_marker_follows(story: Story) -> None:
    write(story, 1)
    marked(story, "info")
    closed(story, None, None, "abort", hidden=1, more=0)
    for row in story.logs:
        row["transactional"] = row["control"] is not None


@case(Outcome.VIOLATION, ("open-transaction", "VIOLATION", 1), reason=UNREAD, guarantees=SETTLES)
def a_marker_of_nobody_closes_nothing(story: Story) -> None:
    write(story, 1)
    marked(story, "info")
    closed(story, None, None, "abort", hidden=1, more=0)
    for row in story.logs:
        if row["control"] is not None:
            row["producer_id"] = row["producer_epoch"] = None
