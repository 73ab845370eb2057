"""Stories of members that begin elsewhere than at the commit. Importing this module adds them to ``CASES``."""

from __future__ import annotations

from collections.abc import Sequence

from harness.checker import Outcome
from tests.checkers.cases import Expected, case, write
from tests.checkers.clients import commit, deliver, move, poll
from tests.checkers.excuse_cases import LEAST_2
from tests.checkers.group_cases import lose_power
from tests.checkers.resets import be_refused
from tests.checkers.story import NODES, Row, Story

FIRST, SECOND = 70, 71
GROUP = "g"


def repeat(offset: int) -> Expected:
    return "group-repeat", "VIOLATION", offset


def begin(
    story: Story, process: int, told: Sequence[int | None], given: Sequence[int] = (), generation: int | None = 1,
) -> None:  # fmt: skip
    """In a poll a member is given the partition, the group is ``told`` its commit, and records are delivered."""
    about: Row = {"process": process, "op": next(story.ops), "group": GROUP}
    story.row(**about, f="poll", type="invoke")
    place: Row = {"topic": "ledger", "partition": 0}
    story.row(**about, **place, f="assigned", type="info", generation=generation)
    for offset in told:
        commit(story, offset, "committed")
    deliver(story, about | {"f": "poll"}, "ok", given)


def read(story: Story, process: int, offsets: Sequence[int]) -> None:
    poll(story, process, offsets, group=GROUP)


def part(story: Story, process: int, change: str) -> None:
    """In a poll that delivers nothing a member gives the partition up, or has lost it."""
    op = poll(story, process, [], group=GROUP)
    move(story, process, change, 0, result="info", group=GROUP, op=op)


def committed_two(story: Story) -> None:
    """The first member reads three records, and commits two of them."""
    write(story, 4)
    begin(story, FIRST, [None], [0, 1, 2])
    commit(story, 2)


@case(Outcome.PASS)
def the_next_member_is_given_again_what_was_not_committed(story: Story) -> None:
    committed_two(story)
    begin(story, SECOND, [2], generation=2)
    read(story, SECOND, [2, 3])
    story.finish()


@case(Outcome.VIOLATION, repeat(1))
def the_next_member_may_not_be_given_again_what_was_committed(story: Story) -> None:
    committed_two(story)
    begin(story, SECOND, [2], generation=2)
    read(story, SECOND, [1, 2, 3])
    story.finish()


@case(Outcome.INCONCLUSIVE, ("group-repeat", "INDETERMINATE", 1))
def a_client_may_have_asked_a_coordinator_that_had_stood_still(story: Story) -> None:
    committed_two(story)
    begin(story, SECOND, [2], generation=2)
    story.fault(kind="pause", nodes=["1"])
    read(story, SECOND, [1, 2, 3])
    story.finish()


@case(Outcome.INCONCLUSIVE, ("group-repeat", "INDETERMINATE", 1), **LEAST_2)
def what_a_client_asks_for_again_may_be_gone_with_the_power_of_all_brokers(story: Story) -> None:
    committed_two(story)
    begin(story, SECOND, [2], generation=2)
    lose_power(story, *NODES)
    read(story, SECOND, [1, 2, 3])
    story.elect(1)
    write(story, 1)
    story.finish()


@case(Outcome.PASS)
def a_commit_that_another_member_made_in_between_may_be_what_the_client_was_told(story: Story) -> None:
    committed_two(story)
    begin(story, SECOND, [2], generation=2)
    commit(story, 1)
    read(story, SECOND, [1, 2, 3])
    story.finish()


@case(Outcome.VIOLATION, repeat(1))
def nor_does_a_commit_that_was_refused_or_is_higher_excuse_it(story: Story) -> None:
    committed_two(story)
    begin(story, SECOND, [2], generation=2)
    commit(story, 0, result="fail")
    commit(story, 3)
    read(story, SECOND, [1, 2, 3])
    story.finish()


@case(Outcome.VIOLATION, repeat(1))
def a_broker_that_was_killed_answers_nobody(story: Story) -> None:
    committed_two(story)
    begin(story, SECOND, [2], generation=2)
    story.fault(kind="kill", nodes=["1"])
    read(story, SECOND, [1, 2, 3])
    story.finish()


@case(Outcome.VIOLATION, repeat(0))
def the_poll_of_its_first_assignment_counts(story: Story) -> None:
    committed_two(story)
    begin(story, SECOND, [2], [0, 1, 2, 3], generation=2)
    story.finish()


@case(Outcome.VIOLATION, repeat(1))
def a_member_that_is_given_a_partition_again_begins_at_the_commit_of_the_one_between(story: Story) -> None:
    """Its client still had records that it had fetched before."""
    committed_two(story)
    part(story, FIRST, "revoked")
    begin(story, SECOND, [2], [2, 3], generation=2)
    commit(story, 4)
    write(story, 1)
    begin(story, FIRST, [4], generation=3)
    read(story, FIRST, [1, 2, 3, 4])
    story.finish()


@case(Outcome.PASS)
def what_the_poll_of_a_later_assignment_delivers_may_be_of_before(story: Story) -> None:
    committed_two(story)
    part(story, FIRST, "revoked")
    commit(story, 3)
    begin(story, FIRST, [3], [2], generation=3)
    story.finish()


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 1))
def a_member_that_was_told_less_begins_where_it_was_told(story: Story) -> None:
    committed_two(story)
    begin(story, SECOND, [1], generation=2)
    read(story, SECOND, [1, 2, 3])
    story.finish()


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", None))
def nor_is_one_to_blame_that_was_told_nothing(story: Story) -> None:
    committed_two(story)
    begin(story, SECOND, [None], generation=2)
    read(story, SECOND, [0, 1, 2, 3])
    story.finish()


@case(Outcome.PASS)
def another_member_may_have_been_told_more(story: Story) -> None:
    committed_two(story)
    begin(story, SECOND, [2], generation=2)
    commit(story, 3)
    commit(story, 3, "committed")
    read(story, SECOND, [2, 3])
    story.finish()


@case(Outcome.PASS)
def a_member_may_go_back_after_the_partition_was_taken_from_it(story: Story) -> None:
    committed_two(story)
    begin(story, SECOND, [2], generation=2)
    part(story, SECOND, "lost")
    read(story, SECOND, [1, 2])
    story.finish()


@case(Outcome.PASS)
def a_client_that_names_no_generation_may_seek(story: Story) -> None:
    committed_two(story)
    begin(story, SECOND, [2], generation=None)
    read(story, SECOND, [0, 1])
    story.finish()


@case(Outcome.PASS)
def a_group_that_was_out_of_range_begins_at_the_beginning(story: Story) -> None:
    committed_two(story)
    be_refused(story, FIRST, 5, group=GROUP)
    begin(story, SECOND, [2], generation=2)
    read(story, SECOND, [0, 1, 2, 3])
    story.finish()
