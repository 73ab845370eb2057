"""Stories about the generations of a group: who may commit in them, and who is given what.

Importing this module adds them to ``CASES``.
"""

from __future__ import annotations

from typing import Any

from harness.checker import Outcome
from tests.checkers.cases import case, write
from tests.checkers.clients import commit, poll
from tests.checkers.excuse_cases import LEAST_2, UNCLEAN
from tests.checkers.group_cases import lose_power
from tests.checkers.story import NODES, Row, Story

STALE = ("stale-commit", "VIOLATION", 2)
SHARED = ("two-owners", "VIOLATION", None)
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


def poll_in(story: Story, process: int, epoch: int) -> None:
    """A member of the consumer protocol polls in an epoch; the poll gives it no record."""
    about: Row = {"process": process, "op": next(story.ops), "f": "poll", "group": "g"}
    story.row(**about, type="invoke", generation=epoch, group_protocol="consumer")
    story.row(**about, type="ok")


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


# ------------------------------------------------------------------------------------------------------- two owners


def share(story: Story, generation: int | None = 4, process: int = SECOND, group: str = "g") -> None:
    begin(story)
    be_given(story, process, generation, group)
    end(story)


@case(Outcome.VIOLATION, SHARED)
def a_partition_that_two_members_are_given_in_one_generation_is_found(story: Story) -> None:
    share(story)


@case(Outcome.PASS)
def in_the_next_generation_another_member_may_be_given_it(story: Story) -> None:
    share(story, 5)


@case(Outcome.PASS)
def a_member_may_be_given_the_same_partition_again(story: Story) -> None:
    share(story, process=FIRST)


@case(Outcome.PASS)
def every_group_has_an_owner_of_its_own(story: Story) -> None:
    share(story, group="h")


@case(Outcome.PASS)
def where_the_generation_is_not_known_there_may_be_two(story: Story) -> None:
    begin(story)
    for process in (FIRST, SECOND):
        be_given(story, process, None)
        be_given(story, process, -1)
    end(story)


@case(Outcome.PASS)
def a_static_member_that_is_started_again_has_what_its_former_self_had(story: Story) -> None:
    write(story, 3)
    subscribe(story, FIRST)
    be_given(story, FIRST, 4)
    poll(story, FIRST, [0, 1, 2], group="g")
    subscribe(story, SECOND)
    be_given(story, SECOND, 4)
    end(story)


@case(Outcome.PASS, ("two-owners", "DOCUMENTED", None), **LEAST_2)
def a_generation_whose_number_comes_again_after_every_power_loss_is_documented(story: Story) -> None:
    begin(story)
    lose_power(story, *NODES)
    be_given(story, SECOND, 4)
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


@case(Outcome.VIOLATION, SHARED)
def a_partition_that_two_members_are_given_in_one_epoch_is_found(story: Story) -> None:
    write(story, 3)
    for process in (FIRST, SECOND):
        subscribe(story, process)
        be_given(story, process, 4, group_protocol="consumer")
    poll(story, FIRST, [0, 1, 2], group="g")
    end(story)


# --------------------------------------------------------------------------------- two owners, of two generations

KEPT: dict[str, Any] = {"guarantees": {"members_kept_ms": 1_000}}
LATE_NS = 1_000_000_000
VIRTUAL: dict[str, Any] = {"guarantees": {"time": "virtual"}}


def be_given_beside(story: Story, *, partition: int = 1, then: int = 6, **columns: Any) -> None:
    """The second member is given what the first one has; the first is in a generation ``then``, in which it is given
    another partition.
    """  # fmt: skip
    begin(story)
    be_given(story, SECOND, 6, **columns)
    be_given(story, FIRST, then, partition=partition, **columns)
    rebalance(story, "revoked", FIRST, then, **columns)
    end(story)


@case(Outcome.VIOLATION, SHARED)
def a_partition_that_is_given_to_another_in_a_generation_before_its_owner_gave_it_up_in_that_is_found(
    story: Story,
) -> None:
    be_given_beside(story)


@case(Outcome.VIOLATION, SHARED)
def a_member_that_has_it_in_a_still_later_generation_is_found(story: Story) -> None:
    be_given_beside(story, then=7)


@case(Outcome.PASS)
def a_member_may_be_in_a_later_generation_when_it_has_given_it_up(story: Story) -> None:
    begin(story)
    rebalance(story, "revoked", FIRST, 4)
    be_given(story, SECOND, 6)
    be_given(story, FIRST, 6, partition=1)
    end(story)


@case(Outcome.PASS)
def a_member_that_has_lost_it_may_be_in_the_next_generation(story: Story) -> None:
    begin(story)
    rebalance(story, "lost", FIRST, -1)
    be_given(story, SECOND, 6)
    be_given(story, FIRST, 6, partition=1)
    end(story)


@case(Outcome.PASS)
def a_member_that_learns_late_that_it_was_removed_may_have_had_it(story: Story) -> None:
    begin(story)
    be_given(story, SECOND, 6)
    rebalance(story, "lost", FIRST, -1)
    be_given(story, FIRST, 7, partition=1)
    end(story)


@case(Outcome.PASS)
def a_static_member_that_joins_late_comes_into_a_generation_that_has_given_its_partition_away(story: Story) -> None:
    begin(story)
    be_given(story, SECOND, 6)
    rebalance(story, "revoked", FIRST, 4)
    be_given(story, FIRST, 6, partition=1)
    end(story)


@case(Outcome.PASS)
def a_generation_that_its_client_names_as_it_gives_up_may_not_have_been_stored(story: Story) -> None:
    begin(story)
    be_given(story, SECOND, 6)
    rebalance(story, "revoked", FIRST, 6)
    end(story)


@case(Outcome.VIOLATION, SHARED, **KEPT)
def a_member_that_cannot_have_been_removed_yet_has_its_partition(story: Story) -> None:
    begin(story)
    be_given(story, SECOND, 6)
    rebalance(story, "lost", FIRST, -1)
    end(story)


@case(Outcome.VIOLATION, SHARED, **KEPT)
def so_has_one_that_joined_again_a_short_time_before(story: Story) -> None:
    begin(story)
    rebalance(story, "revoked", FIRST, 4)
    story.now += LATE_NS
    rebalance(story, "revoked", FIRST, 4, partition=1)
    be_given(story, FIRST, 5)
    be_given(story, SECOND, 6)
    poll(story, FIRST, [], group="g")
    end(story)


@case(Outcome.PASS, **KEPT)
def a_member_that_joined_a_session_before_may_have_been_removed(story: Story) -> None:
    begin(story)
    story.now += LATE_NS
    be_given(story, SECOND, 6)
    rebalance(story, "lost", FIRST, -1)
    end(story)


@case(Outcome.PASS, **KEPT)
def what_a_member_gives_up_in_the_generation_in_which_it_is_given_something_does_not_say_when_it_joined(
    story: Story,
) -> None:
    begin(story)
    story.now += LATE_NS
    rebalance(story, "revoked", FIRST, 5)
    be_given(story, FIRST, 5)
    be_given(story, SECOND, 6)
    rebalance(story, "lost", FIRST, -1)
    end(story)


@case(Outcome.PASS, **KEPT)
def a_member_that_polls_no_more_may_have_left(story: Story) -> None:
    begin(story)
    be_given(story, SECOND, 6)
    end(story)


@case(Outcome.PASS, **KEPT)
def in_the_consumer_protocol_brokers_time_the_sessions(story: Story) -> None:
    write(story, 3)
    for process in (FIRST, SECOND):
        subscribe(story, process)
    be_given(story, FIRST, 4, group_protocol="consumer")
    be_given(story, SECOND, 6, group_protocol="consumer")
    rebalance(story, "lost", FIRST, -1, group_protocol="consumer")
    end(story)


@case(Outcome.PASS, ("two-owners", "DOCUMENTED", None), **LEAST_2)
def an_owner_that_every_power_loss_made_the_group_forget_is_documented(story: Story) -> None:
    begin(story)
    lose_power(story, *NODES)
    be_given(story, SECOND, 6)
    be_given(story, FIRST, 6, partition=1)
    rebalance(story, "revoked", FIRST, 6)
    end(story)


def release_in_epochs(story: Story, *, releases_first: bool, before: int, after: int, change: str = "revoked") -> None:
    """A partition goes from the first member, in epoch 4, to the second, in epoch 6.

    ``releases_first``: before that; ``before``: the epoch in which the first one polls then, ``after``: afterwards.
    """
    write(story, 3)
    for process in (FIRST, SECOND):
        subscribe(story, process)
    be_given(story, FIRST, 4, group_protocol="consumer")
    poll_in(story, FIRST, before)
    if releases_first:
        rebalance(story, "revoked", FIRST, before, group_protocol="consumer")
    be_given(story, SECOND, 6, group_protocol="consumer")
    if not releases_first:
        rebalance(story, change, FIRST, before, group_protocol="consumer")
    poll_in(story, FIRST, after)
    end(story)


@case(Outcome.PASS, **VIRTUAL)
def a_member_comes_into_the_epoch_of_the_next_owner_when_it_has_released_the_partition(story: Story) -> None:
    release_in_epochs(story, releases_first=True, before=4, after=6)


@case(Outcome.VIOLATION, SHARED, **VIRTUAL)
def a_partition_that_was_given_away_before_a_member_that_is_not_removed_released_it_is_found(story: Story) -> None:
    release_in_epochs(story, releases_first=False, before=4, after=6)


@case(Outcome.PASS, **VIRTUAL)
def a_member_that_is_in_a_later_epoch_next_may_have_been_removed_before_it_released_the_partition(
    story: Story,
) -> None:
    release_in_epochs(story, releases_first=False, before=4, after=7)


@case(Outcome.PASS, **VIRTUAL)
def a_member_that_learns_that_it_has_lost_the_partition_may_join_again_in_that_epoch(story: Story) -> None:
    release_in_epochs(story, releases_first=False, before=4, after=6, change="lost")


@case(Outcome.VIOLATION, SHARED, **VIRTUAL)
def a_member_that_has_it_in_a_later_epoch_than_the_next_owners_is_found(story: Story) -> None:
    release_in_epochs(story, releases_first=False, before=7, after=7)


@case(Outcome.PASS)
def a_heartbeat_of_librdkafka_may_have_overtaken_the_callback_that_gave_the_partition(story: Story) -> None:
    release_in_epochs(story, releases_first=False, before=4, after=6)
