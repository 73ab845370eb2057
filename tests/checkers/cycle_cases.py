"""Stories about transactions that follow from each other. Importing this module adds them to ``CASES``."""

from __future__ import annotations

from harness.checker import Outcome
from tests.checkers.cases import case
from tests.checkers.client_cases import two_partitions
from tests.checkers.clients import Polled, Sent, transact
from tests.checkers.story import Story


def at_once(story: Story, start: int) -> None:
    """The operations from row ``start`` on all begin before any of them ends."""
    rows = story.history[start:]
    told = [*(row for row in rows if row["type"] == "invoke"), *(row for row in rows if row["type"] != "invoke")]
    times = [row["time_ns"] for row in rows]
    for index, (row, time_ns) in enumerate(zip(told, times, strict=True), start):
        row |= {"index": index, "time_ns": time_ns}
    story.history[start:] = told


def two_transactions(story: Story, one: list[Sent | Polled], other: list[Sent | Polled]) -> None:
    """Two transactions at once; their records are values 0, 1 ... in this order."""
    start = len(story.history)
    transact(story, *one, process=10)
    transact(story, *other, process=11)
    at_once(story, start)
    story.finish()


@case(Outcome.VIOLATION, ("G1c", "VIOLATION", 0))
def two_transactions_that_read_each_other_are_found(story: Story) -> None:
    two_partitions(story)
    story.append(1, 1, (1, 2))
    two_transactions(story, [Sent(0), Polled([0], 1)], [Sent(1, append=False, offset=0), Polled([0], 0)])


@case(Outcome.PASS)
def a_transaction_may_read_one_that_read_nothing_of_it(story: Story) -> None:
    two_partitions(story)
    two_transactions(story, [Sent(0), Sent(1)], [Sent(1), Polled([0], 0), Polled([0], 1)])


@case(Outcome.PASS, ("G0", "DOCUMENTED", 1))
def transactions_that_write_at_once_may_interleave(story: Story) -> None:
    two_partitions(story)
    for p, value in ((0, 0), (0, 2), (1, 3), (1, 1)):
        story.append(p, value, (1, 2))
    there = {"append": False}
    one: list[Sent | Polled] = [Sent(0, offset=0, **there), Sent(1, offset=1, **there)]
    two_transactions(story, one, [Sent(0, offset=1, **there), Sent(1, offset=0, **there)])


@case(
    Outcome.VIOLATION,
    *[("G0", "DOCUMENTED", 1), ("lost-write", "VIOLATION", None), ("vanished-read", "VIOLATION", 0)],
)
def transactions_that_interleave_are_found_also_where_one_alone_knows_of_its_records(story: Story) -> None:
    two_partitions(story)
    for p, value in ((0, 0), (0, 2), (1, 3), (1, 1)):
        story.append(p, value, (1, 2))
    one: list[Sent | Polled] = [Sent(p, append=False, offset=None) for p in (0, 1)]
    reads: list[Sent | Polled] = [Polled([p], p, "read_uncommitted") for p in (0, 1)]
    two_transactions(story, [*one, *reads], [Sent(0, append=False, offset=1), Sent(1, append=False, offset=0)])
    story.forget(story.final_rows(0)[0], story.final_rows(1)[1])
    story.logs = [row for row in story.logs if row["value"] not in (0, 1)]


@case(Outcome.PASS, ("G1c", "DOCUMENTED", 0))
def a_transaction_may_read_one_that_writes_after_it(story: Story) -> None:
    two_partitions(story)
    for p, value in ((0, 0), (1, 2), (1, 1)):
        story.append(p, value, (1, 2))
    there = {"append": False}
    one: list[Sent | Polled] = [Sent(0, offset=0, **there), Sent(1, offset=1, **there)]
    two_transactions(story, one, [Sent(1, offset=0, **there), Polled([0], 0)])
