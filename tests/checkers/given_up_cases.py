"""Stories about what is given up without being lost: offsets that were passed rightly, and markers.

Importing this module adds them to ``CASES``.
"""

from __future__ import annotations

from harness.checker import Outcome
from harness.detection.withheld import samples
from harness.findings import KEPT_PER_GROUP
from tests.checkers.cases import Expected, case, lose_tail, lost, regression, write
from tests.checkers.client_cases import two_partitions
from tests.checkers.clients import Sent, poll, transact
from tests.checkers.excuse_cases import LEAST_2, UNCLEAN, darken
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import NODES, Story
from tests.checkers.transaction_cases import closed, closed_by_the_next_abort, mark, marked


def tail(first: int, *offsets: int) -> tuple[Expected, ...]:
    """What else is found when records at these offsets were read and given up, and everything from ``first`` on."""
    return (
        *(
            (kind, "DOCUMENTED", offset)
            for kind in ("lost-write", "vanished-read", "inconsistent-offsets")
            for offset in offsets
        ),
        regression(first, "DOCUMENTED"),
    )


def cut(end: int, verdict: str = "VIOLATION") -> tuple[Expected, ...]:
    """What is found when every node cuts what is committed from ``end`` on, and nothing of it is lost."""
    return *3 * (("committed-cut", verdict, end),), regression(end, verdict)


# ------------------------------------------------------------------------------------------- what was passed rightly


def pass_a_marker(story: Story, *, within: bool, result: str = "ok") -> None:
    """A consumer is given what is at 0, 3 and 4, and at 1 unless the transaction failed; at 2 is the marker."""
    write(story, 1)
    marked(story, result)
    write(story, 2)
    given = (0, 1, 3, 4) if result == "ok" else (0, 3, 4)
    for offsets in (given,) if within else (given[:-2], given[-2:]):
        poll(story, 5, offsets)


PASSED = (*tail(2, 3, 4), ("open-transaction", "DOCUMENTED", 1))
SENT_AGAIN = tuple(("nonmonotonic-send", "DOCUMENTED", offset) for offset in (2, 3))


@case(Outcome.PASS, *PASSED, *SENT_AGAIN, **UNCLEAN)
def where_a_marker_was_an_unclean_election_puts_a_record_that_nobody_skipped(story: Story) -> None:
    pass_a_marker(story, within=False)
    lose_tail(story, 2, clean=False)
    write(story, 3)
    closed(story)


@case(Outcome.PASS, *PASSED, *SENT_AGAIN, **UNCLEAN)
def where_a_marker_was_within_one_operation_nobody_skipped_what_came_later(story: Story) -> None:
    pass_a_marker(story, within=True)
    lose_tail(story, 2, clean=False)
    write(story, 3)
    closed(story)


@case(
    Outcome.PASS,
    *tail(1, 3, 4),
    *(("nonmonotonic-send", "DOCUMENTED", offset) for offset in (1, 2, 3)),
    **UNCLEAN,
)
def where_an_aborted_record_was_nobody_skipped_what_came_later(story: Story) -> None:
    pass_a_marker(story, within=True, result="fail")
    lose_tail(story, 1, clean=False)
    write(story, 4)
    closed(story)


@case(Outcome.PASS, *tail(2, 3, 4), *SENT_AGAIN, **LEAST_2)
def where_a_marker_was_a_power_loss_of_all_puts_a_record_that_nobody_skipped(story: Story) -> None:
    pass_a_marker(story, within=False)
    darken(story, *NODES)
    write(story, 3)
    story.finish()


KEPT = range(2, 2 + KEPT_PER_GROUP)
LOST_AND_SENT_AGAIN = (
    *((kind, "DOCUMENTED", at) for kind in ("lost-write", "inconsistent-offsets", "nonmonotonic-send") for at in KEPT),
    ("hw-regression", "DOCUMENTED", 2),
)


@case(Outcome.PASS, *LOST_AND_SENT_AGAIN, **LEAST_2)
def what_was_sent_again_after_losses_that_are_only_counted_is_put_down_to_them(story: Story) -> None:
    write(story, len(KEPT) + 5)
    darken(story, *NODES)
    write(story, len(KEPT) + 3)
    story.finish()


@case(Outcome.VIOLATION, ("poll-skip", "VIOLATION", 1), **UNCLEAN)
def an_unclean_election_that_gave_up_nothing_excuses_no_skip(story: Story) -> None:
    write(story, 3)
    story.elect(1, clean=False)
    story.poll(5, [0])
    story.poll(5, [2])
    story.finish()


@case(
    Outcome.VIOLATION,
    lost(2, "DOCUMENTED"),
    ("inconsistent-offsets", "DOCUMENTED", 2),
    ("poll-skip", "VIOLATION", 3),
    regression(2, "DOCUMENTED"),
    **UNCLEAN,
)
def an_unclean_election_excuses_no_skip_of_what_came_after_it(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2, clean=False)
    write(story, 3)
    story.poll(5, [2])
    story.poll(5, [4])
    story.finish()


@case(
    Outcome.PASS,
    *tail(2, 2),
    ("poll-skip", "DOCUMENTED", 3),
    **UNCLEAN,
)
def a_position_that_an_unclean_election_gave_up_says_nothing_of_the_new_log(story: Story) -> None:
    write(story, 3)
    story.poll(5, [2])
    lose_tail(story, 2, clean=False)
    write(story, 3)
    story.poll(5, [4])
    story.finish()


@case(Outcome.PASS, *tail(2, 2)[:-1], ("poll-skip", "DOCUMENTED", 3), guarantees=SAMPLED | {"unclean_election": True})
def a_position_that_was_given_up_when_nobody_looked_says_nothing_of_the_new_log(story: Story) -> None:
    a_position_that_an_unclean_election_gave_up_says_nothing_of_the_new_log(story)
    story.timeline = samples(story.timeline, lambda row: row["leader_epoch"] == 0 or row["log_end_offset"] == 5)


@case(Outcome.PASS, *tail(2, 2), ("poll-skip", "DOCUMENTED", 3), **LEAST_2)
def a_position_that_every_power_loss_took_says_nothing_of_the_new_log(story: Story) -> None:
    write(story, 3)
    story.poll(5, [2])
    darken(story, *NODES)
    write(story, 3)
    story.poll(5, [4])
    story.finish()


@case(
    Outcome.VIOLATION,
    lost(2, "DOCUMENTED"),
    ("inconsistent-offsets", "DOCUMENTED", 2),
    ("poll-skip", "VIOLATION", 3),
    regression(2, "DOCUMENTED"),
    **LEAST_2,
)
def who_came_after_the_power_loss_has_skipped_a_record(story: Story) -> None:
    write(story, 3)
    darken(story, *NODES)
    write(story, 3)
    story.poll(5, [2])
    story.poll(5, [4])
    story.finish()


# -------------------------------------------------------------------------------------------------------- transactions

UNCLEAN_AND_RETENTION = {"guarantees": UNCLEAN["guarantees"] | {"retention": True}}


def half_of_it(story: Story) -> None:
    """Of a transaction of which nobody knows how it ended the half in partition 0 is delivered."""
    two_partitions(story)
    write(story, 1)
    story.send(p=1)
    transact(story, Sent(0), Sent(1), result="info")
    poll(story, 5, [1], 0)


def elect_one_that_lacks(story: Story, p: int, end: int, *, clean: bool = False) -> None:
    begin = len(story.timeline)
    story.cut(1, end, p)
    for row in story.timeline[begin:]:
        row["leader_epoch"] = 1
    story.elect(1, p, clean=clean)


@case(
    Outcome.PASS,
    *cut(1, "DOCUMENTED"),
    ("torn-transaction", "DOCUMENTED", None),
    **UNCLEAN,
)
def half_of_a_transaction_may_be_given_up_by_an_unclean_election(story: Story) -> None:
    half_of_it(story)
    elect_one_that_lacks(story, 1, 1)
    story.send(p=1)
    story.finish()


@case(
    Outcome.VIOLATION,
    *cut(1),
    ("torn-transaction", "VIOLATION", None),
    **UNCLEAN,
)
def half_of_a_transaction_is_not_given_up_by_a_clean_election(story: Story) -> None:
    half_of_it(story)
    elect_one_that_lacks(story, 1, 1, clean=True)
    story.send(p=1)
    story.finish()


@case(Outcome.VIOLATION, ("torn-transaction", "VIOLATION", None), **UNCLEAN_AND_RETENTION)
def an_unclean_election_that_lacked_nothing_gave_up_no_half_of_a_transaction(story: Story) -> None:
    two_partitions(story)
    write(story, 1)
    story.send(p=1)
    transact(story, Sent(0), Sent(1, append=False), result="info")
    poll(story, 5, [1], 0)
    story.elect(1, 1, clean=False)
    story.send(p=1)
    story.finish()


@case(Outcome.PASS, lost(0, "DOCUMENTED"), ("torn-transaction", "DOCUMENTED", None), **UNCLEAN_AND_RETENTION)
def half_of_a_transaction_may_be_deleted(story: Story) -> None:
    half_of_it(story)
    story.send(p=1)
    story.delete(2, 1)
    story.finish()


@case(Outcome.VIOLATION, lost(0, "DOCUMENTED"), ("torn-transaction", "VIOLATION", None), **UNCLEAN_AND_RETENTION)
def half_of_a_transaction_was_not_deleted_before_it_was_sent(story: Story) -> None:
    two_partitions(story)
    write(story, 1)
    story.send(p=1)
    story.delete(1, 1)
    transact(story, Sent(0), Sent(1, append=False), result="info")
    poll(story, 5, [1], 0)
    story.send(p=1)
    story.finish()


def take_the_place(story: Story, first: str, *, clean: bool = False) -> None:
    """The marker of a transaction that ended ``first`` is given up, and the next one of its producer ends otherwise."""
    write(story, 1)
    marked(story, first)
    lose_tail(story, 2, clean=clean)
    marked(story, "ok" if first == "fail" else "fail")


MARKER_GIVEN_UP = (*cut(2, "DOCUMENTED"), ("wrong-marker", "DOCUMENTED", 1))


def aborted_instead(story: Story, *, clean: bool = False) -> None:
    take_the_place(story, "ok", clean=clean)
    closed_by_the_next_abort(story)


@case(
    Outcome.PASS,
    *MARKER_GIVEN_UP,
    lost(1, "DOCUMENTED"),
    ("int-poll-skip", "DOCUMENTED", 1),
    **UNCLEAN,
)
def a_commit_marker_that_was_given_up_may_leave_its_record_to_the_next_abort(story: Story) -> None:
    aborted_instead(story)


@case(
    Outcome.PASS,
    *MARKER_GIVEN_UP,
    lost(1, "DOCUMENTED"),
    ("vanished-read", "DOCUMENTED", 1),
    ("int-poll-skip", "DOCUMENTED", 1),
    **UNCLEAN,
)
def what_was_read_before_its_commit_marker_was_given_up_may_vanish(story: Story) -> None:
    write(story, 1)
    marked(story)
    poll(story, 5, [0, 1])
    lose_tail(story, 2, clean=False)
    marked(story, "fail")
    closed_by_the_next_abort(story)


@case(
    Outcome.VIOLATION,
    *cut(2),
    ("wrong-marker", "VIOLATION", 1),
    lost(1),
    ("int-poll-skip", "VIOLATION", 1),
    **UNCLEAN,
)
def a_clean_election_gives_up_no_commit_marker(story: Story) -> None:
    aborted_instead(story, clean=True)


@case(Outcome.PASS, *MARKER_GIVEN_UP, ("aborted-read", "DOCUMENTED", 1), **UNCLEAN)
def an_abort_marker_that_was_given_up_may_leave_its_record_to_the_next_commit(story: Story) -> None:
    take_the_place(story, "fail")
    closed(story, None, None, None, "commit")


@case(Outcome.VIOLATION, *MARKER_GIVEN_UP, ("aborted-read", "VIOLATION", 1), **UNCLEAN)
def what_was_aborted_was_not_read_because_of_an_election_that_came_later(story: Story) -> None:
    write(story, 1)
    marked(story, "fail")
    poll(story, 5, [0, 1])
    lose_tail(story, 2, clean=False)
    marked(story)
    closed(story, None, None, None, "commit")


@case(
    Outcome.VIOLATION,
    ("wrong-marker", "VIOLATION", 1),
    lost(1),
    ("int-poll-skip", "VIOLATION", 1),
    **UNCLEAN,
)
def an_unclean_election_that_lacked_no_marker_excuses_none(story: Story) -> None:
    write(story, 1)
    transact(story, Sent(0))
    story.elect(1, clean=False)
    marked(story, "fail")
    closed_by_the_next_abort(story)


@case(
    Outcome.VIOLATION,
    ("wrong-marker", "VIOLATION", 1),
    lost(1),
    ("int-poll-skip", "VIOLATION", 1),
    *cut(4, "DOCUMENTED"),
    **UNCLEAN,
)
def an_unclean_election_after_the_wrong_marker_does_not_excuse_it(story: Story) -> None:
    write(story, 1)
    transact(story, Sent(0))
    marked(story, "fail")
    mark(story)
    lose_tail(story, 4, clean=False)
    closed_by_the_next_abort(story)


@case(
    Outcome.PASS,
    *cut(2, "DOCUMENTED"),
    **UNCLEAN,
)
def what_is_read_because_an_abort_marker_was_given_up_does_not_commit_its_transaction(story: Story) -> None:
    """Both halves were aborted; in partition 0 a commit marker took the abort's place, and that half was read."""
    two_partitions(story)
    for p in (0, 1):
        write(story, 1, p=p)
    transact(story, Sent(0), Sent(1), result="info")
    for p in (0, 1):
        mark(story, p)
    lose_tail(story, 2, clean=False)
    marked(story)
    story.send(p=1)
    closed(story, None, None, None, "commit")
    for row in (row for row in story.logs if row["partition"] == 1):
        row |= {"producer_id": 7, "producer_epoch": 0, "control": "abort" if row["offset"] == 2 else None}
    story.forget(*[row for row in story.final_rows(1) if row["offset"] in (1, 2)])
