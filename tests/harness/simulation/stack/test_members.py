"""The simulated members of groups: they act as librdkafka's do when members come, hang and go, and coordinators die."""

from __future__ import annotations

import pytest

from harness.model import NO_GENERATION
from tests.harness.simulation.stack.simulated_group import Group, stand_still_past_the_generation


@pytest.fixture
def group() -> Group:
    return Group()


def test_members_share_what_there_is_as_they_come_and_go(group: Group) -> None:
    group.join(0)
    group.sleep()
    assert group.has == {0: {0, 1, 2, 3}}
    group.join(1)
    group.sleep()
    assert group.has == {0: {0, 1}, 1: {2, 3}}
    group.leave(0)
    group.sleep()
    assert group.has[1] == {0, 1, 2, 3}
    assert group.changes[:3] == [(0, "assigned", [0, 1, 2, 3]), (0, "revoked", [0, 1, 2, 3]), (0, "assigned", [0, 1])]
    assert (0, "revoked", [0, 1]) in group.changes


def test_a_member_that_hangs_loses_what_it_has_and_learns_it_with_its_next_poll(group: Group) -> None:
    group.join(0)
    group.join(1)
    group.sleep()
    shared = group.members[0].generation
    assert shared == group.members[1].generation > NO_GENERATION
    group.hangs.add(0)
    group.sleep(5)
    assert group.has[1] == {0, 1, 2, 3}
    assert group.members[0].generation == NO_GENERATION
    assert group.members[1].generation > shared
    assert group.commit(0, 5) == ["UNKNOWN_MEMBER_ID"]
    group.hangs.clear()
    group.sleep()
    assert (0, "lost", [0, 1]) in group.changes
    assert sorted([*group.has[0], *group.has[1]]) == [0, 1, 2, 3]
    assert len(group.has[0]) == 2


def test_a_member_that_stood_still_does_not_know_that_its_generation_is_over_until_its_commit_is_refused(
    group: Group,
) -> None:
    stand_still_past_the_generation(group)


def test_members_go_on_with_the_next_coordinator(group: Group) -> None:
    group.join(0)
    group.join(1)
    group.sleep()
    assert group.commit(0, 5) == [None]
    group.cluster.kill(0)
    group.sleep(8)
    assert sorted([*group.has[0], *group.has[1]]) == [0, 1, 2, 3]
    owner = next(number for number, has in group.has.items() if 0 in has)
    assert group.commit(owner, 6) == [None]


def test_a_static_member_that_comes_back_has_what_it_had_and_nothing_moves(group: Group) -> None:
    for number in (0, 1):
        group.join(number, instance=f"i{number}")
    group.sleep()
    had = dict(group.has)
    group.leave(0)
    group.cluster.world.sleep(0.3)
    group.join(0, instance="i0")
    group.sleep()
    assert group.has == had
    assert [one for one in group.changes if one[0] == 1] == [(1, "assigned", sorted(had[1]))]


def test_a_static_member_that_was_replaced_is_fenced(group: Group) -> None:
    group.join(0, instance="i")
    group.sleep()
    group.join(1, instance="i")
    group.sleep()
    assert group.has[1] == {0, 1, 2, 3}
    assert (0, "lost", [0, 1, 2, 3]) in group.changes
    assert group.errors == [(0, "FENCED_INSTANCE_ID")]


def test_a_member_that_does_not_know_where_to_begin_says_so(group: Group) -> None:
    group.begins = None
    group.join(0)
    group.sleep()
    assert group.errors == [(0, "_STATE")]
