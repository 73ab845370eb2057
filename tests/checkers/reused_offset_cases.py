"""Stories of deletions one after the other, and of offsets that are used again after a deletion.

An unclean election may make a log shorter than the offset at which it starts. What is written there then is new: a
deletion that was over before does not explain that it is gone. Importing this module adds to ``CASES``.
"""

from __future__ import annotations

import json
from typing import Any

from harness.checker import Outcome
from harness.findings import KEPT_PER_GROUP
from harness.history.delete_records_log import GAVE_UP
from tests.checkers.answer_cases import CASES
from tests.checkers.cases import case, lost, regression, write
from tests.checkers.order_cases import PERMITTED, configured, order
from tests.checkers.sampling import SAMPLED, samples
from tests.checkers.story import NODES, Row, Story

__all__ = ["CASES"]

UNCLEAN = PERMITTED | {"unclean_election": True, "settles": False}
REUSED = (
    lost(0, "DOCUMENTED"), lost(1, "DOCUMENTED"), ("inconsistent-offsets", "DOCUMENTED", 0),
    ("inconsistent-offsets", "DOCUMENTED", 1), ("nonmonotonic-send", "DOCUMENTED", 0), regression(0, "DOCUMENTED"),
)  # fmt: skip
"""What an unclean election explains, in any case: offsets 0 and 1 were written before, and are written again."""
LOST = (lost(0), lost(1))
GONE = (lost(0, "DOCUMENTED"), lost(1, "DOCUMENTED"))
ORDERED_NS, ANSWERED_NS, LONG_AFTER_NS = 100_000_000, 200_000_000, 20_000_000_000
"""When a story's order is sent, and answered, its leader deleting in between; and when no look can still see that."""


def unclean(*orders: Row, sampled: bool = False) -> dict[str, Any]:
    """A run with these orders in which unclean elections are permitted, and no record grows too old."""
    seen = SAMPLED if sampled else {}
    guarantees = PERMITTED | {"unclean_election": True} | seen
    return configured(*orders, log_retention_ms="-1") | {"guarantees": guarantees}


def deleting(error: str | None = None) -> Row:
    """The order to delete two records."""
    return order(2, error, invoked_ns=ORDERED_NS, completed_ns=ANSWERED_NS)


def delete(story: Story) -> None:
    """The leader deletes the only two records; node 1 has never had them."""
    story.partitions[0].isr = {0, 2}
    write(story, 2)
    story.now = ORDERED_NS
    story.delete(2, nodes=(0,))
    story.now = LONG_AFTER_NS


def use_again(story: Story, *, restart: bool = True) -> None:
    """Node 1 is elected without the two records, and three more are written, in all logs."""
    story.partitions[0].starts[0] = 0
    story.elect(1, clean=False)
    story.partitions[0].isr = set(NODES)
    if restart:
        story.restart(0)
    write(story, 3)


def come_back(story: Story) -> None:
    """The first leader is started again, with the start that its log had before, and is elected."""
    story.partitions[0].starts[0] = 2
    story.restart(0)
    story.elect(0)
    story.finish()


def now_and_then(story: Story) -> None:
    """The timeline is a sampled one."""
    story.timeline = samples(story.timeline, lambda _: True)


@case(Outcome.VIOLATION, *REUSED, *LOST, **unclean(deleting()))
def a_log_start_that_comes_back_hides_what_was_written_since(story: Story) -> None:
    delete(story)
    use_again(story)
    come_back(story)


@case(Outcome.VIOLATION, *REUSED, *LOST, **unclean(deleting(), sampled=True))
def an_order_that_was_obeyed_before_explains_no_later_loss(story: Story) -> None:
    a_log_start_that_comes_back_hides_what_was_written_since(story)
    now_and_then(story)


@case(Outcome.VIOLATION, *REUSED, *LOST, **unclean(deleting(GAVE_UP), sampled=True))
def an_order_does_not_outlive_the_broker_that_got_it(story: Story) -> None:
    a_log_start_that_comes_back_hides_what_was_written_since(story)
    now_and_then(story)


@case(Outcome.PASS, *REUSED, *GONE, **unclean(deleting(GAVE_UP), sampled=True))
def an_order_may_be_carried_out_after_its_client_has_given_up(story: Story) -> None:
    delete(story)
    use_again(story, restart=False)
    come_back(story)
    now_and_then(story)


@case(Outcome.PASS, *REUSED, *GONE, **unclean(deleting(), order(2, invoked_ns=LONG_AFTER_NS + 1), sampled=True))
def another_order_explains_it(story: Story) -> None:
    an_order_that_was_obeyed_before_explains_no_later_loss(story)


@case(Outcome.PASS, *REUSED, *GONE, **unclean(deleting(), sampled=True))
def what_an_unclean_election_may_have_given_up_was_not_deleted(story: Story) -> None:
    delete(story)
    part, kept = story.partitions[0], list(story.partitions[0].logs[0])
    part.starts[0] = 0
    story.elect(1, clean=False)
    write(story, 2)
    part.logs[0], part.starts[0] = kept, 2
    story.elect(0, clean=False)
    write(story, 1)
    story.finish()
    now_and_then(story)


# ------------------------------------------------------------------------------------- one deletion after the other

SECOND_NS = 1_000_000_000
MANY = tuple(lost(offset, "DOCUMENTED") for offset in range(KEPT_PER_GROUP))


def expire_in_turn(story: Story, *ages_ns: int) -> None:
    """Twenty records are written and, when they are so old, deleted; and then the next twenty."""
    for turn, age_ns in enumerate(ages_ns, 1):
        write(story, 20)
        story.now += age_ns
        retire_to(story, 20 * turn)
    write(story, 1)
    story.finish()


def retire_to(story: Story, before: int) -> None:
    """All logs lose what is before an offset because it is too old."""
    begin = len(story.timeline)
    story.delete(before)
    for row in story.timeline[begin:]:
        if row["kind"] == "log_start":
            row["detail"] = json.dumps(json.loads(row["detail"]) | {"reason": "retention"})


@case(Outcome.PASS, *MANY, **configured(log_retention_ms=2_000))
def each_deletion_has_a_time_of_its_own(story: Story) -> None:
    expire_in_turn(story, 2 * SECOND_NS, 2 * SECOND_NS, 2 * SECOND_NS)


@case(Outcome.PASS, *MANY, **configured(log_retention_ms=2_000) | {"guarantees": PERMITTED | SAMPLED})
def each_deletion_has_a_time_of_its_own_that_is_seen_now_and_then(story: Story) -> None:
    each_deletion_has_a_time_of_its_own(story)
    now_and_then(story)


@case(Outcome.VIOLATION, *MANY, lost(None), **configured(log_retention_ms=60_000))
def a_deletion_that_comes_too_soon_is_found_behind_many_others(story: Story) -> None:
    expire_in_turn(story, 60 * SECOND_NS, 60 * SECOND_NS, SECOND_NS)
