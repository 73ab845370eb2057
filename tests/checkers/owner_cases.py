"""Stories about two members of a group that are given one partition.

Importing this module adds them to ``CASES``.
"""

from __future__ import annotations

from typing import Any

from harness.checker import Outcome
from tests.checkers.cases import case, write
from tests.checkers.clients import poll
from tests.checkers.excuse_cases import LEAST_2
from tests.checkers.generation_cases import FIRST, SECOND, be_given, begin, end, rebalance, subscribe
from tests.checkers.group_cases import lose_power
from tests.checkers.story import NODES, Row, Story

SHARED = ("two-owners", "VIOLATION", None)
OVERTAKEN = ("two-owners", "DOCUMENTED", None)
VIRTUAL: dict[str, Any] = {"guarantees": {"time": "virtual"}}


def poll_in(story: Story, process: int, epoch: int) -> None:
    """A member of the consumer protocol polls in an epoch; the poll gives it no record."""
    about: Row = {"process": process, "op": next(story.ops), "f": "poll", "group": "g"}
    story.row(**about, type="invoke", generation=epoch, group_protocol="consumer")
    story.row(**about, type="ok")


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


def share_in_one_epoch(story: Story, *, releases_first: bool) -> None:
    """Both members are given the partition in epoch 4; ``releases_first``: the first gives it up before that."""
    write(story, 3)
    for process in (FIRST, SECOND):
        subscribe(story, process)
    be_given(story, FIRST, 4, group_protocol="consumer")
    if releases_first:
        rebalance(story, "revoked", FIRST, 4, group_protocol="consumer")
    be_given(story, SECOND, 4, group_protocol="consumer")
    poll(story, FIRST, [0, 1, 2], group="g")
    end(story)


@case(Outcome.VIOLATION, SHARED, **VIRTUAL)
def a_partition_that_two_members_are_given_in_one_epoch_is_found(story: Story) -> None:
    share_in_one_epoch(story, releases_first=False)


@case(Outcome.VIOLATION, SHARED, **VIRTUAL)
def an_epoch_gives_a_partition_to_one_member_whether_or_not_it_keeps_it(story: Story) -> None:
    share_in_one_epoch(story, releases_first=True)


@case(Outcome.PASS, OVERTAKEN)
def a_client_may_give_its_caller_what_its_heartbeat_has_released(story: Story) -> None:
    share_in_one_epoch(story, releases_first=False)


@case(Outcome.PASS)
def in_real_time_the_epoch_that_a_row_names_may_be_later_than_that_of_the_assignment(story: Story) -> None:
    share_in_one_epoch(story, releases_first=True)


# --------------------------------------------------------------------------------- two owners, of two generations

KEPT: dict[str, Any] = {"guarantees": {"members_kept_ms": 1_000}}
LATE_NS = 1_000_000_000


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
def the_time_to_poll_again_is_counted_from_the_begin_of_the_poll_in_which_it_lost_what_it_had(story: Story) -> None:
    write(story, 3)
    for process in (FIRST, SECOND):
        subscribe(story, process)
    about: Row = {"process": FIRST, "op": next(story.ops), "f": "poll", "group": "g"}
    moved: Row = {**about, "type": "info", "topic": "ledger", "partition": 0}
    story.row(**about, type="invoke")
    story.now += LATE_NS
    story.row(**moved | {"f": "lost"}, generation=-1)
    story.row(**moved | {"f": "assigned"}, generation=4)
    story.row(**about, type="ok")
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


@case(Outcome.PASS, OVERTAKEN)
def in_real_time_a_heartbeat_may_have_released_it_before_its_caller_heard_of_it(story: Story) -> None:
    release_in_epochs(story, releases_first=False, before=4, after=6)
