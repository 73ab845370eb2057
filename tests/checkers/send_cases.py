"""Stories about sends of which only a poll, or only an operation that nobody knows the end of, says where they are.

Importing this module adds them to ``CASES``.
"""

from __future__ import annotations

from harness.checker import Outcome
from tests.checkers.cases import case, write
from tests.checkers.client_randomness import IMPORTED
from tests.checkers.clients import Sent, poll, transact
from tests.checkers.reader_cases import CASES, only_clients
from tests.checkers.story import Story

__all__ = ["CASES"]


def stored(story: Story, *values: int) -> None:
    """These values are in the log, in this order."""
    for value in values:
        story.append(0, value, (1, 2))


@case(Outcome.VIOLATION, ("nonmonotonic-send", "VIOLATION", 0))
def a_process_whose_later_record_is_read_before_its_earlier_one_is_found(story: Story) -> None:
    story.send(offset=None, append=False)
    story.send(offset=None, append=False)
    stored(story, 1, 0)
    story.finish()


@case(Outcome.VIOLATION, ("nonmonotonic-send", "VIOLATION", 0), **IMPORTED)
def a_record_that_timed_out_and_overtook_an_acknowledged_one_is_found(story: Story) -> None:
    story.send(offset=1, append=False)
    story.send(result="info", append=False)
    stored(story, 1, 0)
    poll(story, 900, [0, 1], final=True)
    only_clients(story)


@case(Outcome.VIOLATION, ("G0-realtime", "VIOLATION", 0))
def a_record_of_another_process_that_timed_out_and_overtook_is_found(story: Story) -> None:
    stored(story, 1, 0)
    story.send(offset=1, append=False, process=0)
    story.send(result="info", append=False, process=1)
    story.finish()


@case(Outcome.VIOLATION, ("int-nonmonotonic-send", "VIOLATION", 0))
def a_transaction_whose_records_are_read_the_other_way_round_is_found(story: Story) -> None:
    transact(story, Sent(offset=None, append=False), Sent(offset=None, append=False))
    stored(story, 1, 0)
    story.finish()


@case(Outcome.PASS)
def an_acknowledgement_of_acks_0_says_nothing_of_when_it_was_stored(story: Story) -> None:
    stored(story, 1, 0)
    story.send(offset=None, append=False, acks=0, process=0)
    story.send(offset=0, append=False, process=1)
    story.finish()


@case(Outcome.VIOLATION, ("duplicate", "VIOLATION", 0))
def where_a_record_is_that_lies_there_twice_nobody_can_say(story: Story) -> None:
    write(story, 1)
    story.history[1]["offset"] = 1
    story.send(result="info", append=False)
    stored(story, 0, 1)
    story.partitions[0].logs = {node: [(0, 1), (0, 0), (0, 1)] for node in story.partitions[0].logs}
    poll(story, 900, [0, 1, 2], final=True)
    only_clients(story)


# ------------------------------------------------------------------------ what operations were told that then timed out


@case(Outcome.VIOLATION, ("inconsistent-offsets", "VIOLATION", 1), ("duplicate", "VIOLATION", 1), **IMPORTED)
def a_record_of_a_transaction_that_is_elsewhere_than_its_client_was_told_is_found(story: Story) -> None:
    write(story, 1)
    transact(story, Sent(append=False, offset=1, knows=True), result="info")
    story.send(offset=1)
    stored(story, 1)
    poll(story, 900, [0, 1, 2], final=True)
    only_clients(story)


@case(Outcome.PASS)
def where_a_transaction_that_nobody_saw_was_told_that_its_record_is_says_nothing(story: Story) -> None:
    transact(story, Sent(append=False, offset=0, knows=True), result="info")
    write(story, 2)
    story.finish()


@case(Outcome.VIOLATION, ("torn-transaction", "VIOLATION", 0), **IMPORTED)
def a_record_of_a_transaction_that_everybody_was_taken_past_is_found(story: Story) -> None:
    story.__init__(story.run, 2)  # type: ignore[misc]
    transact(story, Sent(0), Sent(1, append=False, offset=0, knows=True), result="info")
    story.append(1, None, (1, 2))
    story.send(1, offset=1)
    poll(story, 900, [0], 0, final=True)
    poll(story, 900, [1], 1, final=True)
    only_clients(story)
