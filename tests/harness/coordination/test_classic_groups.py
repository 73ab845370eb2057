"""Groups of the classic protocol: who is in which generation, and what requests out of turn are answered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.error_codes import ErrorCode
from harness.wire.messages.groups import LeaveGroupRequest, MemberIdentity
from tests.harness.coordination.groups_alone import LIMITS, REBALANCE_MS, SESSION_MS, GroupsAlone


def error(answers: list[Any]) -> int:
    (answer,) = answers
    return int(answer.error_code)


def test_members_that_come_at_once_are_one_generation_and_the_oldest_assigns() -> None:
    alone = GroupsAlone()
    first, second = alone.join(client="a"), alone.join(client="b")
    assert first == second == []
    alone.sleep(1_000)
    assert [one.member_id for one in first[0].members] == ["a-1", "b-2"]
    assert second[0].members == []
    assert {(one.generation_id, one.leader, one.protocol_name) for one in first + second} == {(1, "a-1", "range")}
    waiting = alone.sync("b-2", 1)
    leader = alone.sync("a-1", 1, a_1=b"0", b_2=b"1")
    assert waiting == leader == []  # not before it is stored
    alone.sleep()
    assert (leader[0].assignment, waiting[0].assignment) == (b"0", b"1")
    assert alone.state == "Stable"


def test_a_first_member_waits_for_others_as_long_as_they_keep_coming() -> None:
    alone = GroupsAlone()
    answers = []
    for _ in range(4):
        answers.append(alone.join())
        alone.sleep(60)
    alone.sleep(200)
    assert [one[0].generation_id for one in answers] == [1, 1, 1, 1]


def test_a_late_member_begins_a_rebalance_that_waits_for_the_others() -> None:
    alone = GroupsAlone()
    (first,) = alone.stable("a")
    late = alone.join(client="b")
    assert alone.heartbeat(first, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert error(alone.sync(first, 1)) == ErrorCode.REBALANCE_IN_PROGRESS
    again = alone.join(first)
    assert (again[0].generation_id, late[0].generation_id) == (2, 2)
    assert alone.state == "CompletingRebalance"
    assert alone.heartbeat(first, 1) == ErrorCode.ILLEGAL_GENERATION
    assert alone.heartbeat(first, 2) == ErrorCode.NONE


@pytest.mark.parametrize("bug", ["", "rebalance_cut_short"])
def test_a_bug_removes_members_before_their_time_to_join_again_is_over(bug: str) -> None:
    alone = GroupsAlone(bugs=[bug])
    (first,) = alone.stable("a")
    late = alone.join(client="b")
    alone.sleep(REBALANCE_MS // 10)
    assert bool(late) == bool(bug)
    assert alone.heartbeat(first, 1) == (ErrorCode.UNKNOWN_MEMBER_ID if bug else ErrorCode.REBALANCE_IN_PROGRESS)


def test_a_member_that_does_not_join_again_in_time_is_out() -> None:
    alone = GroupsAlone()
    first, second = alone.stable("a", "b")
    late = alone.join(client="c")
    for _ in range(3):
        alone.sleep(REBALANCE_MS // 4)
        assert alone.heartbeat(first, 1) == alone.heartbeat(second, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert alone.join(second) == []
    alone.sleep(REBALANCE_MS // 4)
    assert [one.member_id for one in late[0].members] == []
    assert late[0].leader == second
    assert alone.heartbeat(first, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_out_after_its_session_and_one_that_waits_is_not() -> None:
    alone = GroupsAlone()
    first, second = alone.stable("a", "b")
    alone.sleep(SESSION_MS // 2)
    assert alone.heartbeat(first, 1) == ErrorCode.NONE
    alone.sleep(SESSION_MS // 2)
    assert alone.heartbeat(first, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert alone.heartbeat(second, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    (again,) = alone.join(first)
    assert [one.member_id for one in again.members] == [first]


def test_the_group_is_empty_once_all_have_left_and_keeps_its_generation() -> None:
    alone = GroupsAlone()
    first, second = alone.stable("a", "b")
    assert alone.leave(first) == alone.leave(second) == ErrorCode.NONE
    assert alone.leave(first) == ErrorCode.UNKNOWN_MEMBER_ID
    assert alone.state == "Empty"
    third = alone.join()
    alone.sleep(1_000)
    assert third[0].generation_id == 3


def test_from_version_4_on_a_member_has_to_ask_for_its_id_first() -> None:
    alone = GroupsAlone()
    asked = alone.join(version=4)
    assert error(asked) == ErrorCode.MEMBER_ID_REQUIRED
    named = alone.join(asked[0].member_id, version=4)
    alone.sleep(1_000)
    assert named[0].generation_id == 1


def test_a_rebalance_waits_for_a_member_that_has_asked_for_its_id() -> None:
    alone = GroupsAlone()
    (first,) = alone.stable("a")
    asked = alone.join(version=4)
    late = alone.join(client="b")
    again = alone.join(first)
    assert again == late == []
    alone.sleep(SESSION_MS)
    assert again[0].generation_id == late[0].generation_id == 2
    assert error(alone.join(asked[0].member_id, version=4)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_answer_that_was_lost_is_given_again_without_a_rebalance() -> None:
    alone = GroupsAlone()
    first, second = alone.stable("a", "b")
    assert alone.join(second)[0].generation_id == 1
    assert alone.sync(second, 1)[0].assignment == second.encode()
    assert alone.join(first) == []  # a leader that joins again wants a rebalance
    assert alone.state == "PreparingRebalance"


def test_a_request_that_waits_is_answered_when_its_client_repeats_it() -> None:
    alone = GroupsAlone()
    first, _ = alone.stable("a", "b")
    given_up, waiting = alone.join(first), alone.join(first)
    assert (error(given_up), waiting) == (ErrorCode.REBALANCE_IN_PROGRESS, [])


def test_the_protocol_is_one_that_all_know_and_most_prefer() -> None:
    alone = GroupsAlone()
    waiting = [
        alone.join(protocols=protocols)
        for protocols in ({"a": b"1", "b": b"", "c": b""}, {"b": b"2", "c": b""}, {"c": b"3", "b": b""}, {"b": b"4"})
    ]
    alone.sleep(1_000)
    assert {answers[0].protocol_name for answers in waiting} == {"b"}
    assert [one.metadata for one in waiting[0][0].members] == [b"", b"2", b"", b"4"]
    assert error(alone.join(protocols={"a": b""})) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert error(alone.join(protocol_type="connect")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 499}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 60_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocols": {}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": {"range": bytes(17 * 1_048_576)}}, ErrorCode.GROUP_MAX_SIZE_REACHED),
    ],
)
def test_a_member_that_cannot_join_is_told_why(fields: dict[str, Any], refusal: ErrorCode) -> None:
    alone = GroupsAlone()
    assert error(alone.join(**fields)) == refusal


def test_a_full_group_takes_no_further_member_and_keeps_those_that_it_has() -> None:
    alone = GroupsAlone(limits=replace(LIMITS, max_size=2))
    first, second = alone.stable("a", "b")
    assert error(alone.join()) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert alone.join(first) == []
    assert alone.join(second)[0].generation_id == 2


def test_ids_that_were_only_asked_for_count_and_the_one_that_comes_back_is_let_in() -> None:
    alone = GroupsAlone(limits=replace(LIMITS, max_size=2))
    first, second = alone.join(version=4)[0], alone.join(version=4)[0]
    assert error(alone.join(version=4)) == ErrorCode.GROUP_MAX_SIZE_REACHED
    joined = [alone.join(one.member_id, version=4) for one in (first, second)]
    alone.sleep(1_000)
    assert [answers[0].generation_id for answers in joined] == [1, 1]


def test_groups_of_ids_that_were_only_asked_for_are_bounded_and_forgotten() -> None:
    alone = GroupsAlone()
    errors = [error(alone.join(version=4, group_id=f"g-{number}")) for number in range(10_000)]
    assert errors == sorted(errors)
    assert set(errors) == {ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.GROUP_MAX_SIZE_REACHED}
    alone.sleep(SESSION_MS)
    assert error(alone.join(version=4, group_id="late")) == ErrorCode.MEMBER_ID_REQUIRED
    assert [one.group_id for one in alone.groups.listed((), ())] == ["late"]


def test_joins_that_are_refused_or_given_up_take_no_room() -> None:
    alone = GroupsAlone()
    for number in range(17_000):
        (asked,) = alone.join(version=4, group_id=f"g-{number % 5}")
        left: list[Any] = []
        leaving = LeaveGroupRequest(f"g-{number % 5}", members=[MemberIdentity(asked.member_id)])
        alone.groups.leave(leaving, 5, left.append)
    for _ in range(40):
        assert error(alone.join("stranger", group_id="g-0", protocols={"range": bytes(1_000_000)}))
    assert error(alone.join(version=4)) == ErrorCode.MEMBER_ID_REQUIRED


def test_members_that_join_again_and_again_take_no_more_room() -> None:
    alone = GroupsAlone()
    (first,) = alone.stable("a")
    for _ in range(40):
        (again,) = alone.join(first, protocols={"range": bytes(1_000_000)})
        assert again.error_code == 0
    assert error(alone.join(client="b", protocols={"range": bytes(16_000_000)})) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert alone.join(client="b", protocols={"range": bytes(15_000_000)}) == []


def test_a_member_that_joins_and_never_asks_for_its_assignment_is_out() -> None:
    alone = GroupsAlone()
    first, second = alone.join(client="a"), alone.join(client="b")
    alone.sleep(1_000)
    alone.sync(first[0].member_id, 1, a_1=b"0", b_2=b"1")
    for _ in range(4):
        alone.sleep(REBALANCE_MS // 4)
        alone.heartbeat(first[0].member_id, 1)
        alone.heartbeat(second[0].member_id, 1)
    assert alone.heartbeat(first[0].member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert alone.heartbeat(second[0].member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (19, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (20, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (6, ErrorCode.NOT_COORDINATOR),
        (56, ErrorCode.NOT_COORDINATOR),
        (7, ErrorCode.REBALANCE_IN_PROGRESS),
        (10, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_generation_that_cannot_be_stored_is_no_generation(code: int, told: ErrorCode) -> None:
    alone = GroupsAlone()
    alone.holds_stores = True
    first = alone.join(client="a")
    alone.sleep(1_000)
    synced = alone.sync("a-1", 1, a_1=b"0")
    alone.store_next(code)
    assert error(synced) == told
    assert alone.state == "PreparingRebalance"
    assert first[0].generation_id == 1
    assert alone.join("a-1")[0].generation_id == 2


def test_what_is_stored_late_does_not_end_a_rebalance_that_has_begun_since() -> None:
    alone = GroupsAlone()
    alone.holds_stores = True
    alone.join(client="a")
    alone.sleep(1_000)
    synced = alone.sync("a-1", 1, a_1=b"0")
    late = alone.join(client="b")
    assert error(synced) == ErrorCode.REBALANCE_IN_PROGRESS
    alone.store_next()
    assert (alone.state, late) == ("PreparingRebalance", [])


def static(alone: GroupsAlone, instance: str, **fields: Any) -> list[Any]:
    return alone.join(client=instance, group_instance_id=instance, version=fields.pop("version", 9), **fields)


def stable_static(alone: GroupsAlone) -> list[str]:
    waiting = [static(alone, "i"), static(alone, "j")]
    alone.sleep(1_000)
    alone.sync("i-1", 1, i_1=b"0", j_2=b"1")
    alone.sync("j-2", 1)
    alone.sleep()
    return [answers[0].member_id for answers in waiting]


@pytest.mark.parametrize(("version", "leader", "skips"), [(9, "i-3", True), (8, "i-1", False)])
def test_a_static_member_that_starts_again_keeps_its_partitions(version: int, leader: str, skips: bool) -> None:
    alone = GroupsAlone()
    former, other = stable_static(alone)
    again = static(alone, "i", version=version)
    alone.sleep()
    assert (again[0].member_id, again[0].generation_id) == ("i-3", 1)
    assert (again[0].leader, again[0].skip_assignment) == (leader, skips)
    assert alone.sync("i-3", 1)[0].assignment == b"0"
    assert alone.heartbeat(former, 1, "i") == ErrorCode.FENCED_INSTANCE_ID
    assert alone.heartbeat(former, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert alone.heartbeat(other, 1, "j") == ErrorCode.NONE


def test_of_two_that_start_as_one_static_member_the_first_is_fenced() -> None:
    alone = GroupsAlone()
    stable_static(alone)
    alone.holds_stores = True
    first, second = static(alone, "i"), static(alone, "i")
    alone.store_next()
    alone.store_next()
    assert error(first) == ErrorCode.FENCED_INSTANCE_ID
    assert (second[0].error_code, second[0].member_id) == (0, "i-4")


def test_a_static_member_whose_return_cannot_be_stored_keeps_its_former_self() -> None:
    alone = GroupsAlone()
    former, _ = stable_static(alone)
    alone.holds_stores = True
    again = static(alone, "i", session_timeout_ms=9_000)
    alone.store_next(6)
    assert error(again) == ErrorCode.NOT_COORDINATOR
    assert alone.heartbeat(former, 1, "i") == ErrorCode.NONE
    alone.holds_stores = False
    third = static(alone, "i")
    alone.sleep()
    assert third[0].generation_id == 1


@pytest.mark.parametrize("stored", [0, 6])
def test_a_static_member_whose_session_ends_before_its_return_is_stored_is_refused(stored: int) -> None:
    alone = GroupsAlone()
    stable_static(alone)
    alone.holds_stores = True
    again = static(alone, "i", session_timeout_ms=6_000)
    alone.sleep(7_000)
    alone.store_next(stored)
    assert error(again) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_wants_another_protocol_begins_a_rebalance() -> None:
    alone = GroupsAlone()
    _, other = stable_static(alone)
    assert alone.leave(other, "j") == ErrorCode.NONE
    alone.join("i-1", group_instance_id="i", version=9)
    alone.sync("i-1", 2, i_1=b"0")
    alone.sleep()
    (again,) = static(alone, "i", protocols={"sticky": b"", "range": b""})
    assert (again.generation_id, again.protocol_name, again.leader) == (3, "sticky", "i-3")


def test_a_rebalance_does_not_wait_for_ever_and_does_not_remove_a_static_member() -> None:
    alone = GroupsAlone()
    former, other = stable_static(alone)
    late = alone.join(client="c")
    assert alone.join(other, group_instance_id="j", version=9) == []
    for _ in range(4):
        alone.sleep(REBALANCE_MS // 4)
        alone.heartbeat(former, 1, "i")
    assert late[0].generation_id == 2
    assert [one.group_instance_id for one in alone.groups.describe("g", 5).members] == ["i", "j", None]


def test_a_static_member_leaves_by_its_name() -> None:
    alone = GroupsAlone()
    former, _ = stable_static(alone)
    assert alone.leave("other", "i") == ErrorCode.FENCED_INSTANCE_ID
    assert alone.leave("", "k") == ErrorCode.UNKNOWN_MEMBER_ID
    assert alone.leave(former, "i") == ErrorCode.NONE
    assert alone.heartbeat(former, 1, "i") == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_coordinator_that_has_resigned_answers_all_that_wait() -> None:
    alone = GroupsAlone()
    first, second = alone.stable("a", "b")
    joining = alone.join(client="c")
    again = alone.join(first)
    alone.groups.end()
    assert error(joining) == error(again) == ErrorCode.NOT_COORDINATOR
    alone.sleep(10 * REBALANCE_MS)
    assert second
