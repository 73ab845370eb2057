"""Stories about the generations of a group: who may commit in them.

Importing this module adds them to ``CASES``.
"""

from __future__ import annotations

from typing import Any

from harness.checker import Outcome
from tests.checkers.cases import case, write
from tests.checkers.clients import commit, poll
from tests.checkers.excuse_cases import LEAST_2, UNCLEAN
from tests.checkers.group_cases import be_told, lose_power
from tests.checkers.story import NODES, Row, Story

STALE = ("stale-commit", "VIOLATION", 2)
FIRST, SECOND = 50, 51


def subscribe(story: Story, process: int, group: str = "g") -> None:
    about: Row = {"process": process, "op": next(story.ops), "f": "subscribe", "group": group, "topic": "ledger",
                  "partition": 0}  # fmt: skip
    story.row(**about, type="invoke")
    story.row(**about, type="ok")


def be_given(
    story: Story, process: int, generation: int | None, group: str = "g", *, partition: int = 0, **columns: Any
) -> None:
    """A member is given a partition in a poll that gives it no record."""
    rebalance(story, "assigned", process, generation, group, partition=partition, **columns)


def rebalance(
    story: Story, change: str, process: int, generation: int | None, group: str = "g", *, partition: int = 0,
    **columns: Any,
) -> None:  # fmt: skip
    """A rebalance moves a partition of a member in a poll that gives it no record."""
    op = poll(story, process, [], group=group)
    story.row(process=process, op=op, f=change, type="info", group=group, topic="ledger", partition=partition,
              generation=generation, **columns)  # fmt: skip


def commit_in(
    story: Story, generation: int | None, *, later: int | None = None, ends: str = "ok", **columns: Any
) -> None:
    """A member commits offset 2; ``later``: the generation that it is in when that ``ends``."""
    about: Row = {"process": 60, "op": next(story.ops), "f": "commit", "group": "g", "topic": "ledger", "partition": 0,
                  "offset": 2, **columns}  # fmt: skip
    story.row(**about, type="invoke", generation=generation)
    story.row(**about, type=ends, generation=generation if later is None else later)


def begin(story: Story) -> None:
    """The first of two members is given the partition in generation 4, and reads it."""
    write(story, 3)
    for process in (FIRST, SECOND):
        subscribe(story, process)
    be_given(story, FIRST, 4)
    poll(story, FIRST, [0, 1, 2], group="g")


def end(story: Story) -> None:
    story.elect(1)
    write(story, 1)
    story.finish()


def commit_after_its_generation(story: Story, **columns: Any) -> None:
    begin(story)
    be_given(story, SECOND, 6)
    commit_in(story, 4, **columns)
    end(story)


@case(Outcome.VIOLATION, STALE)
def a_commit_of_a_generation_that_was_over_is_found(story: Story) -> None:
    commit_after_its_generation(story)


@case(Outcome.PASS)
def a_commit_that_began_before_the_next_generation_may_be_acknowledged_after_it(story: Story) -> None:
    begin(story)
    about: Row = {"process": 60, "op": next(story.ops), "f": "commit", "group": "g", "topic": "ledger", "partition": 0,
                  "offset": 2, "generation": 4}  # fmt: skip
    story.row(**about, type="invoke")
    be_given(story, SECOND, 6)
    story.row(**about, type="ok")
    end(story)


@case(Outcome.PASS)
def a_commit_of_a_generation_that_was_over_may_be_refused(story: Story) -> None:
    begin(story)
    be_given(story, SECOND, 6)
    commit_in(story, 4, ends="info", error="ILLEGAL_GENERATION")
    end(story)


@case(Outcome.PASS)
def a_member_that_joins_again_meanwhile_commits_in_a_generation_that_is_not_known(story: Story) -> None:
    commit_after_its_generation(story, later=6)


@case(Outcome.PASS)
def a_member_that_was_removed_meanwhile_may_have_committed_to_an_empty_group(story: Story) -> None:
    commit_after_its_generation(story, later=-1)


@case(Outcome.PASS)
def a_generation_of_another_group_ends_none(story: Story) -> None:
    begin(story)
    be_given(story, SECOND, 6, "h")
    commit_in(story, 4)
    end(story)


@case(Outcome.PASS)
def a_member_may_learn_late_of_a_generation_that_came_before(story: Story) -> None:
    begin(story)
    be_given(story, SECOND, 3)
    commit_in(story, 4)
    end(story)


@case(Outcome.PASS)
def a_generation_that_was_first_given_after_a_later_one_may_be_of_a_new_group(story: Story) -> None:
    write(story, 3)
    for process in (FIRST, SECOND):
        subscribe(story, process)
    be_given(story, SECOND, 6)
    be_given(story, FIRST, 4)
    poll(story, FIRST, [0, 1, 2], group="g")
    commit_in(story, 4)
    end(story)


@case(Outcome.PASS)
def who_is_no_member_commits_in_no_generation(story: Story) -> None:
    begin(story)
    be_given(story, SECOND, 6)
    commit(story, 2)
    end(story)


@case(Outcome.PASS, ("stale-commit", "DOCUMENTED", 2), **LEAST_2)
def a_generation_that_every_power_loss_took_is_documented(story: Story) -> None:
    begin(story)
    be_given(story, SECOND, 6)
    lose_power(story, *NODES)
    commit_in(story, 4)
    end(story)


@case(Outcome.VIOLATION, STALE, **LEAST_2)
def a_generation_is_kept_when_one_broker_keeps_its_power(story: Story) -> None:
    begin(story)
    be_given(story, SECOND, 6)
    lose_power(story, 0, 1)
    commit_in(story, 4)
    end(story)


@case(Outcome.VIOLATION, STALE, **LEAST_2)
def a_coordinator_that_was_cut_off_cannot_acknowledge_what_it_stores(story: Story) -> None:
    begin(story)
    be_given(story, SECOND, 6)
    story.fault(parameters='{"links": [["0", "1"], ["1", "0"]]}')
    commit_in(story, 4)
    end(story)


@case(Outcome.INCONCLUSIVE, ("stale-commit", "INDETERMINATE", 2), **UNCLEAN)
def an_unclean_election_that_no_table_has_may_have_given_up_a_generation(story: Story) -> None:
    begin(story)
    be_given(story, SECOND, 6)
    story.fault()
    commit_in(story, 4)
    end(story)


def commit_by_epoch(story: Story, given: list[tuple[int, int, int]], epoch: int) -> None:
    """Members of a group of the consumer protocol are given partitions; one commits to the first one in an epoch.

    ``given``: for each time the process, the epoch and the partition.
    """
    write(story, 3)
    for process in sorted({process for process, _, _ in given}):
        subscribe(story, process)
    for process, in_epoch, partition in given:
        be_given(story, process, in_epoch, partition=partition, group_protocol="consumer")
    poll(story, FIRST, [0, 1, 2], group="g")
    commit_in(story, epoch, group_protocol="consumer")
    end(story)


@case(Outcome.VIOLATION, STALE)
def a_commit_to_a_partition_that_another_member_was_given_in_a_later_epoch_is_found(story: Story) -> None:
    commit_by_epoch(story, [(FIRST, 4, 0), (SECOND, 6, 0)], 4)


@case(Outcome.VIOLATION, STALE)
def so_is_one_in_an_epoch_through_which_its_member_has_kept_the_partition(story: Story) -> None:
    commit_by_epoch(story, [(FIRST, 4, 0), (SECOND, 6, 0)], 5)


@case(Outcome.PASS)
def a_member_commits_in_its_epoch_while_others_are_in_a_later_one_with_other_partitions(story: Story) -> None:
    commit_by_epoch(story, [(FIRST, 4, 0), (SECOND, 6, 1)], 4)


@case(Outcome.PASS)
def a_member_goes_on_in_later_epochs_with_what_it_was_given_in_an_earlier_one(story: Story) -> None:
    commit_by_epoch(story, [(SECOND, 2, 0), (FIRST, 4, 0)], 7)


@case(Outcome.PASS)
def an_epoch_that_was_first_given_after_a_later_one_may_be_of_a_new_group(story: Story) -> None:
    commit_by_epoch(story, [(SECOND, 6, 0), (FIRST, 4, 0)], 4)


def refuse(story: Story, **how: Any) -> None:
    """A member of generation 4 has a commit of offset 1 refused."""
    commit_in(story, 4, **{"offset": 1, "ends": "info", "error": "ILLEGAL_GENERATION", **how})


def go_back_to_what_was_refused(story: Story, last: int = 6, **how: Any) -> None:
    write(story, 3)
    refuse(story, **how)
    commit_in(story, last, offset=3)
    be_told(story, 1)


WENT_BACK = ("lost-commit", "VIOLATION", 1)


@case(Outcome.VIOLATION, WENT_BACK)
def a_commit_that_was_refused_does_not_come_after_that_of_a_later_generation(story: Story) -> None:
    go_back_to_what_was_refused(story)


@case(Outcome.VIOLATION, WENT_BACK)
def a_commit_that_is_refused_is_not_stored_all_the_same(story: Story) -> None:
    write(story, 3)
    commit_in(story, 6, offset=3)
    refuse(story)
    be_told(story, 1)


@case(Outcome.VIOLATION, WENT_BACK)
def a_member_that_hears_so_that_it_was_removed_has_sent_its_commit_before(story: Story) -> None:
    go_back_to_what_was_refused(story, later=-1, error="CommitFailedException")


@case(Outcome.PASS)
def a_commit_that_was_refused_may_have_been_stored_before(story: Story) -> None:
    write(story, 3)
    refuse(story)
    be_told(story, 1)


@case(Outcome.PASS)
def who_refused_a_commit_may_not_have_known_its_generation_yet(story: Story) -> None:
    go_back_to_what_was_refused(story, last=4)


@case(Outcome.PASS)
def a_commit_without_an_answer_may_have_been_sent_in_a_later_generation(story: Story) -> None:
    go_back_to_what_was_refused(story, error="_TIMED_OUT")


@case(Outcome.PASS)
def a_member_that_has_joined_again_may_have_sent_its_commit_again(story: Story) -> None:
    go_back_to_what_was_refused(story, later=6)


@case(Outcome.PASS)
def who_is_no_member_says_nothing_of_its_groups_generation(story: Story) -> None:
    write(story, 3)
    refuse(story)
    commit(story, 3)
    be_told(story, 1)
