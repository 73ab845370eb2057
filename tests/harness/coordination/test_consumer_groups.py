"""Groups of the consumer protocol (KIP-848): who has which partitions, and what requests out of turn are answered."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest

from harness.coordination.group_commits import Committer
from harness.coordination.offsets import CommittedOffset
from harness.coordination.ports import ProducerIdentity
from harness.error_codes import ErrorCode
from harness.wire.messages.groups import HeartbeatRequest, LeaveGroupRequest, MemberIdentity, SyncGroupRequest
from tests.harness.coordination.groups_alone import REBALANCE_MS, SESSION_MS, WHERE, GroupsAlone


class Member:
    """A client that does what it is told: it gives up at once what it has to, and says so with its next heartbeat."""

    def __init__(self, alone: GroupsAlone, name: str, **fields: Any) -> None:
        self.alone, self.name, self.fields = alone, name, fields
        self.epoch, self.has = 0, frozenset[int]()
        self.errors: list[int] = []

    def beat(self, owned: Iterable[int] | None = None) -> None:
        """Send a heartbeat and take the answer; ``owned``: what it says that it owns."""
        said = self.has if owned is None else owned
        fields = (
            self.fields
            if self.epoch == 0
            else {name: self.fields[name] for name in self.fields if name == "instance_id"}
        )
        answers = self.alone.member_heartbeat(self.name, self.epoch, said, **fields)
        self.alone.sleep()
        (answer,) = answers
        self.errors.append(answer.error_code)
        if answer.error_code:
            self.epoch, self.has = 0, frozenset()
            return
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.has = frozenset(one for part in answer.assignment.topic_partitions for one in part.partitions)

    def leave(self, epoch: int = -1) -> int:
        answers = self.alone.member_heartbeat(
            self.name, epoch, None, **{k: v for k, v in self.fields.items() if k == "instance_id"}
        )
        self.alone.sleep()
        return int(answers[0].error_code)


def settled(alone: GroupsAlone, *members: Member) -> list[list[int]]:
    """What each has once all have sent a few heartbeats."""
    for _ in range(4):
        for member in members:
            member.beat()
    assert state(alone) == "Stable"
    return [sorted(member.has) for member in members]


def state(alone: GroupsAlone) -> str:
    return alone.groups.describe_consumer_group("g").group_state


def commit(alone: GroupsAlone, member: str, epoch: int, *, names_epochs: bool = True, offset: int = 5) -> int:
    errors: list[int] = []
    who = Committer(member, None, epoch, names_epochs)
    alone.groups.commits.commit("g", who, {WHERE: CommittedOffset(offset, 3, "", 0)}, errors.append)
    alone.sleep()
    return errors[0]


def test_the_first_member_has_everything_and_a_second_one_half_of_it() -> None:
    alone = GroupsAlone()
    first, second = Member(alone, "a"), Member(alone, "b")
    first.beat()
    assert (first.epoch, sorted(first.has), state(alone)) == (1, [0, 1, 2, 3], "Stable")
    second.beat()
    assert (second.epoch, second.has, state(alone)) == (2, frozenset(), "Reconciling")
    assert settled(alone, first, second) == [[0, 1], [2, 3]]
    assert (first.epoch, second.epoch) == (2, 2)


def test_a_partition_is_given_away_only_when_its_owner_has_released_it() -> None:
    alone = GroupsAlone()
    first, second = Member(alone, "a"), Member(alone, "b")
    first.beat()
    second.beat()
    first.beat()
    assert (first.epoch, sorted(first.has)) == (1, [0, 1]), "it stays in its epoch until it has given them up"
    for _ in range(3):
        second.beat()
        first.beat(owned=[0, 1, 2, 3])
        assert (second.has, first.epoch) == (frozenset(), 1)
    first.beat(owned=[0, 1, 2])
    second.beat()
    assert second.has == frozenset(), "one of the two is not given up yet, and both go at once"
    first.beat()
    second.beat()
    assert (first.epoch, sorted(second.has)) == (2, [2, 3])


def test_a_heartbeat_without_news_says_nothing_of_partitions_and_a_full_one_is_told_all() -> None:
    alone = GroupsAlone()
    Member(alone, "a").beat()
    (answer,) = alone.member_heartbeat("a", 1, None)
    assert (answer.assignment, answer.heartbeat_interval_ms) == (None, 1_000)
    full: dict[str, Any] = {"rebalance_timeout_ms": 5, "subscribed_topic_names": ["t"]}
    answers = alone.member_heartbeat("a", 1, [0, 1, 2, 3], **full)
    alone.sleep()
    assert answers[0].assignment.topic_partitions[0].partitions == [0, 1, 2, 3]


def test_an_answer_waits_until_what_it_says_is_stored_and_the_next_request_for_its_turn() -> None:
    alone = GroupsAlone()
    alone.holds_stores = True
    first = alone.member_heartbeat("a", 0)
    second = alone.member_heartbeat("b", 0)
    assert (first, second, len(alone.storing)) == ([], [], 1)
    alone.store_next()
    assert (first[0].member_epoch, second, len(alone.storing)) == (1, [], 1)
    alone.store_next()
    assert second[0].member_epoch == 2


@pytest.mark.parametrize(("code", "error"), [(19, 15), (6, 16), (10, -1)])
def test_what_could_not_be_appended_has_not_happened(code: int, error: int) -> None:
    alone = GroupsAlone()
    alone.holds_stores = True
    refused = alone.member_heartbeat("a", 0)
    alone.store_next(code)
    assert (refused[0].error_code, state(alone)) == (error, "Empty" if code else "Stable")


@pytest.mark.parametrize("code", [7, 20])
def test_what_was_appended_counts_though_it_is_not_certain_that_others_have_it(code: int) -> None:
    alone = GroupsAlone()
    alone.holds_stores = True
    refused = alone.member_heartbeat("a", 0)
    alone.store_next(code)
    assert (refused[0].error_code, state(alone)) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "Stable")
    again = alone.member_heartbeat("a", 0)
    assert (again[0].member_epoch, again[0].assignment.topic_partitions[0].partitions) == (1, [0, 1, 2, 3])


def test_a_member_that_leaves_frees_its_partitions_and_one_that_is_silent_does_later() -> None:
    alone = GroupsAlone()
    first, second, third = (Member(alone, name) for name in "abc")
    settled(alone, first, second, third)
    assert third.leave() == ErrorCode.NONE
    assert settled(alone, first, second) == [[0, 1], [2, 3]]
    alone.sleep(SESSION_MS - 1)
    first.beat()
    alone.sleep(1)
    first.beat()
    assert (sorted(first.has), first.epoch) == ([0, 1, 2, 3], 5)
    second.beat()
    assert second.errors[-1] == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_up_its_partitions_in_time_is_out() -> None:
    alone = GroupsAlone()
    first, second = Member(alone, "a"), Member(alone, "b")
    first.beat()
    second.beat()
    for _ in range(REBALANCE_MS // 1_000):
        first.beat(owned=[0, 1, 2, 3])
        second.beat()
        alone.sleep(1_000)
    first.beat(owned=[0, 1, 2, 3])
    second.beat()
    assert (first.errors[-1], sorted(second.has)) == (ErrorCode.UNKNOWN_MEMBER_ID, [0, 1, 2, 3])


def test_a_member_in_another_epoch_is_fenced_unless_it_may_have_missed_the_last_answer() -> None:
    alone = GroupsAlone()
    first, second = Member(alone, "a"), Member(alone, "b")
    settled(alone, first, second)
    third = Member(alone, "c")
    for member in (third, second, second):
        member.beat()
    epoch = second.epoch
    assert epoch == 3
    for told, owned, error in [
        (epoch + 1, [], 110), (epoch - 2, [], 110), (epoch - 1, None, 110), (epoch - 1, [0, 3], 110),
        (epoch - 1, sorted(second.has), 0), (epoch, None, 0),
    ]:  # fmt: skip
        assert alone.member_heartbeat("b", told, owned)[0].error_code == error, (told, owned)
        alone.sleep()


def test_a_member_that_joins_again_owns_nothing_and_is_told_all() -> None:
    alone = GroupsAlone()
    first = Member(alone, "a")
    first.beat()
    again = Member(alone, "a")
    again.beat()
    assert (again.epoch, again.has) == (first.epoch, first.has)


def test_a_static_member_that_comes_back_has_what_it_had_and_no_epoch_begins() -> None:
    alone = GroupsAlone()
    first, second = Member(alone, "a", instance_id="i"), Member(alone, "b", instance_id="j")
    before = settled(alone, first, second)
    early = Member(alone, "early", instance_id="j")
    early.beat()
    assert early.errors == [ErrorCode.UNRELEASED_INSTANCE_ID]
    assert second.leave(-2) == ErrorCode.NONE
    alone.sleep(SESSION_MS // 2)
    first.beat()
    assert (sorted(first.has), first.epoch) == (before[0], 2)
    again = Member(alone, "c", instance_id="j")
    again.beat()
    assert (sorted(again.has), again.epoch, state(alone)) == (before[1], 2, "Stable")
    second.epoch = 2
    second.beat()
    assert second.errors[-1] == ErrorCode.FENCED_INSTANCE_ID
    assert commit(alone, "b", 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_does_not_come_back_in_time_is_out() -> None:
    alone = GroupsAlone()
    first, second = Member(alone, "a", instance_id="i"), Member(alone, "b", instance_id="j")
    settled(alone, first, second)
    second.leave(-2)
    alone.sleep(SESSION_MS - 1)
    first.beat()
    alone.sleep(1)
    assert settled(alone, first) == [[0, 1, 2, 3]]


def test_only_a_member_in_its_epoch_commits_and_asks() -> None:
    alone = GroupsAlone()
    assert commit(alone, "a", 1) == ErrorCode.GROUP_ID_NOT_FOUND
    assert commit(alone, "a", 1, names_epochs=False) == ErrorCode.ILLEGAL_GENERATION
    settled(alone, Member(alone, "a"), Member(alone, "b"))
    assert commit(alone, "a", 2) == ErrorCode.NONE
    assert commit(alone, "a", 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(alone, "stranger", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(alone, "", -1) == ErrorCode.UNKNOWN_MEMBER_ID, "the group has members"
    assert commit(alone, "a", 2, names_epochs=False) == ErrorCode.UNSUPPORTED_VERSION
    ask = alone.groups.commits.fetch_error
    assert [ask("g", "a", 2), ask("g", "a", 1), ask("g", "stranger", 2)] == [0, 113, 25]


def test_a_transaction_commits_by_member_epoch_and_hears_of_it_as_of_a_generation() -> None:
    alone = GroupsAlone()
    Member(alone, "a").beat()
    found = []
    for member, epoch in [("a", 1), ("a", 7), ("stranger", 1), ("", -1)]:
        errors: list[int] = []
        offsets = {WHERE: CommittedOffset(5, 3, "", 0)}
        who, producer = Committer(member, None, epoch), ProducerIdentity(100, 0)
        alone.groups.commits.commit_in_transaction("g", who, producer, offsets, errors.append)
        alone.sleep()
        found += errors
    assert found == [0, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, 0]


def test_a_group_without_members_takes_up_the_other_protocol_with_its_offsets_and_one_with_members_does_not() -> None:
    alone = GroupsAlone()
    (classic,) = alone.stable("c")
    alone.commit(7, classic, 1)
    alone.sleep()
    refused = alone.member_heartbeat("a", 0)
    assert refused[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    alone.leave(classic)
    member = Member(alone, "a")
    member.beat()
    assert (sorted(member.has), alone.committed()) == ([0, 1, 2, 3], 7)
    assert alone.join()[0].error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    member.leave()
    assert len(alone.stable("c")) == 1
    assert alone.committed() == 7
    following = GroupsAlone(alone.log)
    assert (following.state, following.committed()) == ("Stable", 7)


def test_requests_of_the_classic_protocol_know_no_member_of_the_other_one() -> None:
    alone = GroupsAlone()
    Member(alone, "a").beat()
    answers: list[Any] = []
    alone.groups.sync(SyncGroupRequest("g", 1, "a"), answers.append)
    alone.groups.heartbeat(HeartbeatRequest("g", 1, "a"), answers.append)
    alone.groups.leave(LeaveGroupRequest("g", members=[MemberIdentity("a")]), 5, answers.append)
    errors = [answers[0].error_code, answers[1].error_code, answers[2].members[0].error_code]
    assert errors == [ErrorCode.UNKNOWN_MEMBER_ID] * 3
    assert (alone.state, alone.groups.describe("g", 6).error_code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)


def test_the_next_coordinator_goes_on_from_the_log() -> None:
    alone = GroupsAlone()
    first, second = Member(alone, "a"), Member(alone, "b")
    settled(alone, first, second)
    third = Member(alone, "c")
    third.beat()
    first.beat()
    following = GroupsAlone(alone.log)
    before, after = (one.groups.describe_consumer_group("g") for one in (alone, following))
    assert before == after
    for member in (first, second, third):
        member.alone = following
    assert sorted(one for share in settled(following, first, second, third) for one in share) == [0, 1, 2, 3]
    assert {*first.errors, *second.errors, *third.errors} == {0}
    silent = GroupsAlone(alone.log)
    silent.sleep(SESSION_MS)
    assert state(silent) == "Empty"


def test_what_waits_for_its_turn_hears_that_the_broker_has_resigned() -> None:
    alone = GroupsAlone()
    alone.holds_stores = True
    answers = [alone.member_heartbeat(name, 0) for name in "ab"]
    alone.groups.end()
    alone.store_next(6)
    assert [answer[0].error_code for answer in answers] == [ErrorCode.NOT_COORDINATOR] * 2


def test_a_group_that_could_not_be_stored_as_a_member_was_removed_tries_again() -> None:
    alone = GroupsAlone()
    Member(alone, "a").beat()
    alone.holds_stores = True
    alone.sleep(SESSION_MS)
    alone.store_next(19)
    alone.sleep(500)
    alone.store_next()
    assert state(alone) == "Empty"


def test_members_follow_new_topics_and_new_partitions() -> None:
    alone = GroupsAlone()
    member = Member(alone, "a", subscribed_topic_names=None, subscribed_topic_regex="t|u.*")
    member.beat()
    assert len(member.has) == 4
    alone.topics.counts |= {"t": 6, "users": 2, "x": 2}
    member.beat()
    described = alone.groups.describe_consumer_group("g").members[0]
    assert {one.topic_name: one.partitions for one in described.assignment.topic_partitions} == {
        "t": [0, 1, 2, 3, 4, 5], "users": [0, 1],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("error", "epoch", "fields"),
    [
        (42, 0, {"rebalance_timeout_ms": -1}),
        (42, 0, {"subscribed_topic_names": None}),
        (42, 0, {"owned": [1]}),
        (42, 0, {"owned": None}),
        (42, 0, {"instance_id": ""}),
        (42, 0, {"member_id": ""}),
        (42, 0, {"group_id": ""}),
        (42, -3, {}),
        (42, -2, {}),
        (112, 0, {"server_assignor": "mine"}),
        (128, 0, {"subscribed_topic_regex": "a{3}"}),
        (69, 1, {}),
        (69, -1, {}),
    ],
)
def test_nonsense_is_answered_with_its_error(error: int, epoch: int, fields: dict[str, Any]) -> None:
    alone = GroupsAlone()
    told: dict[str, Any] = {"member_id": "a", "owned": [], **fields}
    answers = alone.member_heartbeat(told.pop("member_id"), epoch, told.pop("owned"), **told)
    alone.sleep()
    assert answers[0].error_code == error, answers


def test_a_full_group_takes_no_more_members() -> None:
    alone = GroupsAlone()
    members = [Member(alone, f"m{number}") for number in range(11)]
    for member in members:
        member.beat()
    assert [member.errors[0] for member in members] == [0] * 10 + [ErrorCode.GROUP_MAX_SIZE_REACHED]


def test_operators_see_the_group_its_type_and_its_members() -> None:
    alone = GroupsAlone()
    settled(alone, Member(alone, "a"), Member(alone, "b", server_assignor="range"))
    (listed,) = alone.groups.listed(["stable"], ["consumer"])
    assert (listed.group_id, listed.protocol_type, listed.group_type) == ("g", "consumer", "consumer")
    assert alone.groups.listed([], ["classic"]) == []
    described = alone.groups.describe_consumer_group("g")
    assert (described.group_epoch, described.assignment_epoch, described.assignor_name) == (2, 2, "range")
    assert [one.member_epoch for one in described.members] == [2, 2]
    assert described.members[0].assignment == described.members[0].target_assignment
    assert alone.groups.describe_consumer_group("h").error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_without_members_can_be_deleted_and_leaves_nothing() -> None:
    alone = GroupsAlone()
    member = Member(alone, "a")
    member.beat()
    errors: list[int] = []
    alone.groups.delete("g", errors.append)
    member.leave()
    alone.groups.delete("g", errors.append)
    alone.sleep()
    assert errors == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.NONE]
    assert GroupsAlone(alone.log).groups.listed([], []) == []


def test_no_partition_has_two_owners_whatever_members_do() -> None:
    for seed in range(30):
        drawn = random.Random(seed)
        alone = GroupsAlone()
        members = {name: Member(alone, name) for name in "abcd"}
        for _ in range(120):
            member = drawn.choice(list(members.values()))
            match drawn.randrange(8):
                case 0 if member.epoch:
                    member.leave()
                    member.epoch, member.has = 0, frozenset()
                case 1:
                    alone.sleep(drawn.randrange(SESSION_MS))
                case 2:
                    alone = GroupsAlone(alone.log)
                    for one in members.values():
                        one.alone = alone
                case _:
                    member.beat()
            described = alone.groups.describe_consumer_group("g")
            held = [n for one in described.members for part in one.assignment.topic_partitions for n in part.partitions]
            assert len(held) == len(set(held)), seed
        for member in members.values():
            member.beat()
        assert sorted(one for share in settled(alone, *members.values()) for one in share) == [0, 1, 2, 3], seed
        assert {110} & {error for one in members.values() for error in one.errors} == set()


@pytest.mark.parametrize("bug", ["partitions_given_before_release", "stale_member_epochs_obeyed"])
def test_a_bug_breaks_what_it_says(bug: str) -> None:
    alone = GroupsAlone(bugs=[bug])
    first, second = Member(alone, "a"), Member(alone, "b")
    first.beat()
    second.beat()
    second.beat()
    assert bool(second.has & first.has) == (bug == "partitions_given_before_release")
    assert commit(alone, "gone", 0) == (0 if bug == "stale_member_epochs_obeyed" else ErrorCode.UNKNOWN_MEMBER_ID)


def test_what_members_say_takes_room_until_they_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.coordination.kept_groups.MAX_KEPT_BYTES", 10_000)
    alone = GroupsAlone()
    wide = {"subscribed_topic_names": [f"{number}{'x' * 248}" for number in range(10)]}
    first, second, third = (Member(alone, name, **wide) for name in "abc")
    for member in (first, second, third):
        member.beat()
    assert [member.errors for member in (first, second, third)] == [[0], [0], [ErrorCode.GROUP_MAX_SIZE_REACHED]]
    first.leave()
    third.beat()
    assert third.errors[-1] == ErrorCode.NONE
