"""Stories about records that a group passes: by which of its members, and whether one of them was given the record.

Importing this module adds them to ``CASES``.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.checker import Outcome
from tests.checkers.cases import case, lose_tail, lost, write
from tests.checkers.clients import Sent, commit, poll, transact
from tests.checkers.excuse_cases import UNCLEAN
from tests.checkers.generation_cases import FIRST, SECOND, be_given, commit_in, subscribe
from tests.checkers.story import Story
from tests.checkers.transaction_cases import closed, marked

PASSED = ("group-skip", "VIOLATION", 2)


def read_in_turns(story: Story, first: Sequence[int], second: Sequence[int], result: str = "ok") -> None:
    """Two members read five records one after the other, and the second one commits offset 5."""
    write(story, 5)
    for process in (FIRST, SECOND):
        subscribe(story, process)
    be_given(story, FIRST, 4)
    poll(story, FIRST, first, group="g")
    be_given(story, SECOND, 5)
    poll(story, SECOND, second, group="g", result=result)


def end(story: Story) -> None:
    write(story, 1)
    story.finish()


def pass_one(story: Story) -> None:
    read_in_turns(story, [0, 1], [3, 4])
    commit_in(story, 5, offset=5)
    end(story)


@case(Outcome.VIOLATION, PASSED)
def a_record_that_the_next_member_does_not_begin_with_is_found(story: Story) -> None:
    pass_one(story)


@case(Outcome.VIOLATION, ("group-skip", "VIOLATION", 0), ("group-skip", "VIOLATION", 1))
def records_before_the_first_that_a_group_is_given_are_found(story: Story) -> None:
    read_in_turns(story, [], [2, 3, 4])
    commit_in(story, 5, offset=5)
    end(story)


@case(Outcome.PASS)
def a_record_may_be_given_to_any_member(story: Story) -> None:
    read_in_turns(story, [0, 1, 2], [2, 3, 4])
    commit_in(story, 5, offset=5)
    end(story)


@case(Outcome.PASS)
def a_record_may_be_given_after_the_group_has_passed_it(story: Story) -> None:
    read_in_turns(story, [0, 1], [3, 4])
    commit_in(story, 5, offset=5)
    poll(story, FIRST, [2], group="g")
    end(story)


@case(Outcome.PASS)
def a_poll_whose_end_is_not_known_has_given_what_its_rows_say(story: Story) -> None:
    read_in_turns(story, [0, 1], [2, 3, 4], result="info")
    commit_in(story, 5, offset=5)
    end(story)


@case(Outcome.PASS)
def a_group_that_has_not_committed_may_give_a_record_later(story: Story) -> None:
    read_in_turns(story, [0, 1], [3, 4])
    end(story)


@case(Outcome.PASS)
def a_group_that_has_committed_no_more_than_it_was_given_has_passed_nothing(story: Story) -> None:
    read_in_turns(story, [0, 1], [3, 4])
    commit_in(story, 5, offset=2)
    end(story)


@case(Outcome.PASS)
def a_commit_that_nobody_acknowledged_has_passed_nothing(story: Story) -> None:
    read_in_turns(story, [0, 1], [3, 4])
    commit_in(story, 5, offset=5, ends="info")
    end(story)


@case(Outcome.PASS)
def who_is_no_member_may_have_taken_the_group_past_it(story: Story) -> None:
    read_in_turns(story, [0, 1], [3, 4])
    commit(story, 3, result="info")
    commit_in(story, 5, offset=5)
    end(story)


@case(Outcome.VIOLATION, PASSED)
def who_is_refused_takes_no_group_past_anything(story: Story) -> None:
    read_in_turns(story, [0, 1], [3, 4])
    commit(story, 3, result="fail")
    commit_in(story, 5, offset=5)
    end(story)


@case(Outcome.PASS)
def what_only_another_group_was_given_beyond_it_does_not_count(story: Story) -> None:
    read_in_turns(story, [0, 1], [])
    poll(story, SECOND, [3, 4], group="h")
    commit_in(story, 5, offset=5)
    end(story)


@case(Outcome.VIOLATION, PASSED)
def a_record_that_a_group_passes_is_found_where_transactions_send_as_well(story: Story) -> None:
    transact(story, Sent())
    pass_one(story)


def pass_a_transaction(story: Story, result: str, control: str, *, clean: bool = True) -> None:
    """A group passes a transaction's record at offset 2, and its marker at offset 3; ``clean``: so is an election."""
    write(story, 2)
    marked(story, result)
    read_in_turns(story, [0, 1], [4, 5, 6, 7, 8])
    commit_in(story, 5, offset=9)
    story.elect(1, clean=clean)
    closed(story, None, None, None, control, hidden=2 if control == "abort" else -1)


@case(Outcome.VIOLATION, PASSED)
def a_committed_record_that_a_group_passes_is_found(story: Story) -> None:
    pass_a_transaction(story, "ok", "commit")


@case(Outcome.PASS)
def a_group_passes_markers_and_what_was_aborted(story: Story) -> None:
    pass_a_transaction(story, "fail", "abort")


@case(Outcome.PASS)
def a_group_passes_what_was_aborted_and_nobody_told_its_producer(story: Story) -> None:
    pass_a_transaction(story, "info", "abort")


@case(Outcome.PASS)
def a_group_may_pass_what_its_producer_does_not_know_to_be_committed(story: Story) -> None:
    pass_a_transaction(story, "info", "commit")


@case(Outcome.VIOLATION, ("wrong-marker", "VIOLATION", 2), lost(2), ("int-poll-skip", "VIOLATION", 2))
def a_group_passes_what_was_aborted_although_its_producer_committed_it(story: Story) -> None:
    pass_a_transaction(story, "ok", "abort")


@case(Outcome.PASS, **UNCLEAN)
def a_group_may_pass_what_was_open_until_an_unclean_election(story: Story) -> None:
    pass_a_transaction(story, "ok", "commit", clean=False)


CUT = ("lost-write", "vanished-read", "inconsistent-offsets")


@case(
    Outcome.PASS,
    *[(kind, "DOCUMENTED", offset) for kind in CUT for offset in (2, 3, 4)],
    *[("nonmonotonic-send", "DOCUMENTED", offset) for offset in (2, 3)],
    ("hw-regression", "DOCUMENTED", 2),
    **UNCLEAN,
)
def a_group_was_given_something_else_where_an_unclean_election_cut_the_log(story: Story) -> None:
    read_in_turns(story, [0, 1], [2, 3, 4])
    commit_in(story, 5, offset=5)
    lose_tail(story, 2, clean=False)
    write(story, 6)
    poll(story, SECOND, [5, 6], group="g")
    commit_in(story, 5, offset=7)
    end(story)


def pass_what_was_deleted(story: Story) -> None:
    """A leader has deleted the first records when the group comes; the next leader has not."""
    write(story, 5)
    subscribe(story, FIRST)
    story.delete(3, nodes=[0])
    be_given(story, FIRST, 4)
    poll(story, FIRST, [3, 4], group="g")
    commit_in(story, 4, offset=5)
    story.partitions[0].starts[0] = 0
    story.elect(1)
    end(story)


DELETED = [("group-skip", "DOCUMENTED", offset) for offset in (0, 1, 2)]


@case(Outcome.PASS, *DELETED, guarantees={"retention": True})
def a_group_may_pass_what_its_leader_has_deleted(story: Story) -> None:
    pass_what_was_deleted(story)


@case(Outcome.VIOLATION, *[(kind, "VIOLATION", offset) for kind, _, offset in DELETED])
def where_nothing_may_be_deleted_no_group_passes_it(story: Story) -> None:
    pass_what_was_deleted(story)
