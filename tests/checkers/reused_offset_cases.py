"""Stories of deletions one after the other, and of offsets that are used again after a deletion.

An unclean election may make a log shorter than the offset at which it starts. What is written there then is new: a
deletion that was over before does not explain that it is gone. Importing this module adds to ``CASES``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.checker import Outcome
from harness.detection.withheld import samples
from harness.findings import KEPT_PER_GROUP
from harness.history.delete_records_log import GAVE_UP
from tests.checkers.cases import case, lost, regression, write
from tests.checkers.client_cases import two_partitions
from tests.checkers.clients import Sent, poll, transact
from tests.checkers.order_cases import PERMITTED, configured, order, retire
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import NODES, Row, Story

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


def elect_a_laggard(story: Story) -> None:
    """Node 1 is elected without the two records; the first leader, if it is there, starts its log anew."""
    story.partitions[0].starts[0] = 0
    story.elect(1, clean=False)


def use_again(story: Story, *, restart: bool = True) -> None:
    """Node 1 is elected without the two records, and three more are written, in all logs."""
    elect_a_laggard(story)
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
    elect_a_laggard(story)
    write(story, 2)
    part.logs[0], part.starts[0] = kept, 2
    story.elect(0, clean=False)
    write(story, 1)
    story.finish()
    now_and_then(story)


def away(story: Story, node: int, act: Callable[[], None]) -> None:
    """Something happens while a node is down: it writes no rows."""
    begin, sequence = len(story.timeline), story.sequences[node]
    act()
    story.timeline[begin:] = [row for row in story.timeline[begin:] if row["node"] != node]
    story.sequences[node] = sequence


def deleted_elsewhere(story: Story) -> None:
    """While the first leader is away, two records are written at offsets that it deleted, and deleted."""
    delete(story)
    part, kept = story.partitions[0], list(story.partitions[0].logs[0])

    def meanwhile() -> None:
        elect_a_laggard(story)
        part.isr = {1, 2}
        write(story, 2)
        story.now = 2 * LONG_AFTER_NS
        story.delete(2, nodes=(1,))

    away(story, 0, meanwhile)
    part.logs[0], part.starts[0], part.marks[0], part.isr = kept, 2, 2, set(NODES)
    story.restart(0)
    story.elect(0)
    write(story, 1)
    story.finish()


AGAIN = order(2, invoked_ns=2 * LONG_AFTER_NS - 1)


@case(Outcome.PASS, *REUSED, *GONE, **unclean(deleting(), AGAIN))
def what_another_leader_deleted_is_gone_where_the_last_one_never_had_it(story: Story) -> None:
    deleted_elsewhere(story)


@case(Outcome.VIOLATION, *REUSED, *LOST, **unclean(deleting()))
def what_another_leader_deleted_without_an_order_is_lost(story: Story) -> None:
    deleted_elsewhere(story)


@case(Outcome.VIOLATION, *REUSED, *LOST, **unclean(deleting(), order(4, invoked_ns=3 * LONG_AFTER_NS), sampled=True))
def an_order_that_is_sent_when_the_record_is_gone_explains_nothing(story: Story) -> None:
    an_order_that_was_obeyed_before_explains_no_later_loss(story)


WEAK = (lost(0, "WEAK"), lost(1, "WEAK"), ("nonmonotonic-send", "WEAK", 0))


@case(Outcome.PASS, *REUSED, *GONE, *WEAK, **unclean(deleting(), sampled=True))
def what_its_sender_did_not_wait_for_was_not_deleted(story: Story) -> None:
    delete(story)
    part = story.partitions[0]
    elect_a_laggard(story)
    part.isr = set(NODES)
    story.send(acks=1, copies=(), commit=False)
    story.send(acks=1, copies=(), commit=False)
    story.elect(2)
    part.starts = dict.fromkeys(NODES, 2)
    write(story, 3)
    story.finish()
    now_and_then(story)


def of_two_partitions() -> dict[str, Any]:
    """A sampled run in which two records of partition 1 are deleted."""
    run = unclean(deleting() | {"partition": 1}, sampled=True)
    run["configuration"]["scenario"]["topics"][0]["partitions"] = 2
    return run


@case(
    Outcome.PASS, ("torn-transaction", "DOCUMENTED", None), regression(2, "DOCUMENTED"),
    *GONE, *[("committed-cut", "DOCUMENTED", 2)] * 3, **of_two_partitions(),
)  # fmt: skip
def half_of_a_transaction_was_given_up_after_a_deletion(story: Story) -> None:
    two_partitions(story)
    story.send(p=1)
    story.send(p=1)
    story.now = ORDERED_NS
    story.delete(2, 1)
    story.now = LONG_AFTER_NS
    transact(story, Sent(0), Sent(1), result="info")
    poll(story, 5, [0], 0)
    begin = len(story.timeline)
    story.cut(1, 2, 1)
    for row in story.timeline[begin:]:
        row["leader_epoch"] = 1
    story.elect(1, 1, clean=False)
    story.send(p=1)
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
        retire(story, *NODES, before=20 * turn)
    write(story, 1)
    story.finish()


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


@case(
    Outcome.AS_PREDICTED, lost(0, "EXPECTED"), lost(1, "EXPECTED"), *MANY[2:], **configured(log_retention_ms=60_000),
    predictions=[{"kind": "lost-write", "topic": "ledger", "partition": 0, "offset": at} for at in (0, 1)],
)  # fmt: skip
def a_deletion_that_is_predicted_says_nothing_of_the_others(story: Story) -> None:
    write(story, 2)
    story.now += SECOND_NS
    retire(story, *NODES, before=2)
    write(story, 40)
    story.now += 60 * SECOND_NS
    retire(story, *NODES, before=42)
    write(story, 1)
    story.finish()


@case(
    Outcome.VIOLATION, *MANY, lost(None),
    **configured(order(30), log_retention_ms="-1") | {"guarantees": PERMITTED | SAMPLED},
)  # fmt: skip
def more_is_gone_than_was_to_be(story: Story) -> None:
    write(story, 70)
    story.delete(60)
    story.finish()
    now_and_then(story)
