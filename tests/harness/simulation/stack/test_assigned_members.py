"""Simulated members of the consumer protocol (KIP-848): they act as librdkafka's do, and follow their coordinator."""

from __future__ import annotations

import pytest

from harness.model import NO_GENERATION
from tests.harness.simulation.stack.simulated_group import Group, stand_still_past_the_generation


@pytest.fixture
def group() -> Group:
    return Group("consumer")


def test_members_give_up_only_what_another_one_is_given(group: Group) -> None:
    group.join(0)
    group.sleep()
    assert group.has == {0: {0, 1, 2, 3}}
    group.join(1)
    group.sleep()
    assert group.has == {0: {0, 1}, 1: {2, 3}}
    assert group.changes == [(0, "assigned", [0, 1, 2, 3]), (0, "revoked", [2, 3]), (1, "assigned", [2, 3])]
    group.leave(0)
    group.sleep()
    assert group.has[1] == {0, 1, 2, 3}


def test_a_member_that_does_not_poll_leaves_and_learns_it_with_its_next_poll(group: Group) -> None:
    group.join(0)
    group.join(1)
    group.sleep()
    assert group.members[0].generation == group.members[1].generation > NO_GENERATION
    group.hangs.add(0)
    group.sleep(5)
    assert group.has[1] == {0, 1, 2, 3}
    assert group.members[0].generation == NO_GENERATION
    assert group.commit(0, 5) == ["UNKNOWN_MEMBER_ID"]
    group.hangs.clear()
    group.sleep()
    assert (0, "lost", [0, 1]) in group.changes
    assert sorted([*group.has[0], *group.has[1]]) == [0, 1, 2, 3]


def test_a_member_that_stood_still_names_an_epoch_that_is_over_until_its_commit_is_refused(group: Group) -> None:
    stand_still_past_the_generation(group)


def test_members_go_on_with_the_next_coordinator_and_lose_nothing(group: Group) -> None:
    group.join(0)
    group.join(1)
    group.sleep()
    assert group.commit(0, 5) == [None]
    before = dict(group.has)
    group.cluster.kill(0)
    group.sleep(8)
    assert group.has == before
    assert [change for _, change, _ in group.changes if change == "lost"] == []
    assert group.commit(0, 6) == [None]


def test_a_static_member_that_comes_back_has_what_it_had_and_nothing_moves(group: Group) -> None:
    for number in (0, 1):
        group.join(number, instance=f"i{number}")
    group.sleep()
    had, moved = dict(group.has), len([one for one in group.changes if one[0] == 1])
    group.leave(0)
    group.cluster.world.sleep(0.3)
    group.join(0, instance="i0")
    group.sleep()
    assert group.has == had
    assert len([one for one in group.changes if one[0] == 1]) == moved


def test_a_member_whose_name_another_one_has_not_released_is_refused_for_good(group: Group) -> None:
    group.join(0, instance="i")
    group.sleep()
    group.join(1, instance="i")
    group.sleep(1)
    assert group.errors == [(1, "UNRELEASED_INSTANCE_ID")]
    assert group.has[0] == {0, 1, 2, 3}


def test_a_member_that_does_not_know_where_to_begin_says_so(group: Group) -> None:
    group.begins = None
    group.join(0)
    group.sleep()
    assert group.errors == [(0, "_STATE")]
