"""What groups commit: who may, that it is stored first, and that the next coordinator finds it in the log."""

from __future__ import annotations

import pytest

from harness.coordination.group_commits import Committer
from harness.coordination.offsets import CommittedOffset
from harness.coordination.ports import ProducerIdentity
from harness.coordination.records import decoded
from harness.error_codes import ErrorCode
from harness.model import TopicPartition
from tests.harness.coordination.groups_alone import SESSION_MS, WHERE, GroupsAlone


def test_a_commit_is_not_acknowledged_and_not_served_before_it_is_stored() -> None:
    alone = GroupsAlone()
    alone.holds_stores = True
    errors = alone.commit(5)
    assert (errors, alone.committed()) == ([], -1)
    alone.store_next()
    assert (errors, alone.committed()) == ([ErrorCode.NONE], 5)


@pytest.mark.parametrize(
    ("code", "told"),
    [(19, 15), (20, 15), (3, 15), (6, 16), (56, 16), (10, 28), (7, 7)],
)
def test_a_commit_that_cannot_be_stored_is_refused_and_not_kept(code: int, told: int) -> None:
    alone = GroupsAlone()
    alone.commit(5)
    alone.sleep()
    alone.holds_stores = True
    errors = alone.commit(6)
    alone.store_next(code)
    assert (errors, alone.committed()) == ([told], 5)


def test_only_a_member_of_the_generation_commits_while_there_are_members() -> None:
    alone = GroupsAlone()
    first, second = alone.stable("a", "b")
    assert alone.commit(1) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert alone.commit(1, "stranger", 1) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert alone.commit(1, first, 0) == [ErrorCode.ILLEGAL_GENERATION]
    assert alone.commit(1, first, 1) == []
    late = alone.join(client="c")
    assert alone.commit(2, first, 1) == []  # a member commits before it joins again
    alone.join(first)
    alone.join(second)
    assert late[0].generation_id == 2
    assert alone.commit(3, first, 1) == [ErrorCode.ILLEGAL_GENERATION]
    assert alone.commit(3, first, 2) == [ErrorCode.REBALANCE_IN_PROGRESS]
    alone.sleep()
    assert alone.committed() == 2


def test_a_commit_shows_that_its_member_is_alive() -> None:
    alone = GroupsAlone()
    (first,) = alone.stable("a")
    for offset in range(4):
        alone.sleep(SESSION_MS // 2)
        assert alone.commit(offset, first, 1) == []
    assert alone.heartbeat(first, 1) == ErrorCode.NONE


def test_a_group_that_never_was_takes_commits_without_a_generation_only() -> None:
    alone = GroupsAlone()
    assert alone.commit(1, "a", 1, group="h") == [ErrorCode.ILLEGAL_GENERATION]
    assert alone.commit(1, group="") == [ErrorCode.INVALID_GROUP_ID]
    assert alone.commit(1, group="h") == []
    alone.sleep()
    assert (alone.committed("h"), alone.committed("g")) == (1, -1)


def test_the_next_coordinator_finds_members_generation_and_offsets_in_the_log() -> None:
    alone = GroupsAlone()
    first, second = alone.stable("a", "b")
    alone.commit(5, first, 1)
    alone.commit(7, group="h")
    alone.sleep()
    following = GroupsAlone(alone.log)
    assert following.groups.describe("g", 5) == alone.groups.describe("g", 5)
    assert (following.committed(), following.committed("h")) == (5, 7)
    assert following.sync(second, 1)[0].assignment == second.encode()
    assert following.heartbeat(first, 1) == ErrorCode.NONE
    following.sleep(SESSION_MS)
    assert following.heartbeat(first, 1) == ErrorCode.UNKNOWN_MEMBER_ID  # silent since


def test_what_was_deleted_stays_deleted_with_the_next_coordinator() -> None:
    alone = GroupsAlone()
    alone.commit(5)
    alone.commit(7, group="h")
    alone.sleep()
    errors: list[int] = []
    for group in ("g", "nowhere"):
        alone.groups.delete(group, errors.append)
    alone.sleep()
    assert sorted(errors) == [ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND]
    following = GroupsAlone(alone.log)
    for one in (alone, following):
        assert (one.committed(), one.committed("h")) == (-1, 7)
        assert [listed.group_id for listed in one.groups.listed((), ())] == ["h"]


def test_a_group_with_members_is_not_deleted() -> None:
    alone = GroupsAlone()
    alone.stable("a")
    errors: list[int] = []
    alone.groups.delete("g", errors.append)
    assert errors == [ErrorCode.NON_EMPTY_GROUP]


def subscription(*topics: str) -> bytes:
    named = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\1" + len(topics).to_bytes(4, "big") + named + b"\xff\xff\xff\xff"


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        (subscription("other"), ErrorCode.NONE),
        (subscription("other", "t"), ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC),
        (b"what is this", ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC),
    ],
)
def test_offsets_are_deleted_unless_a_member_subscribes_to_their_topic(metadata: bytes, told: ErrorCode) -> None:
    alone = GroupsAlone()
    alone.commit(5)
    alone.sleep()
    waiting = alone.join(protocols={"range": metadata})
    alone.sleep(1_000)
    assert waiting
    results: list[tuple[int, dict[TopicPartition, int]]] = []
    alone.groups.commits.delete_offsets("g", [WHERE], lambda error, errors: results.append((error, errors)))
    alone.sleep()
    assert results == [(ErrorCode.NONE, {WHERE: told})]
    assert alone.committed() == (5 if told else -1)
    assert GroupsAlone(alone.log).committed() == (5 if told else -1)


def test_groups_are_listed_by_state_and_type() -> None:
    alone = GroupsAlone()
    alone.stable("a")
    alone.commit(5, group="h")
    alone.sleep()

    def names(states: list[str], types: list[str]) -> list[str]:
        return [one.group_id for one in alone.groups.listed(states, types)]

    assert names([], []) == ["g", "h"]
    assert (names(["stable"], []), names(["Empty"], ["Classic"])) == (["g"], ["h"])
    assert names([], ["consumer"]) == []
    assert (alone.groups.describe("x", 5).group_state, alone.groups.describe("x", 5).error_code) == ("Dead", 0)
    assert alone.groups.describe("x", 6).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_commit_for_which_there_is_no_room_is_refused() -> None:
    alone = GroupsAlone()
    refused = []
    for number in range(40_000):
        errors = alone.commit(1, group=f"group-{number}")
        alone.sleep()
        if errors != [ErrorCode.NONE]:
            refused.append(number)
            assert errors == [ErrorCode.INVALID_COMMIT_OFFSET_SIZE]
        if len(refused) == 10:
            break
    assert refused == list(range(refused[0], refused[0] + 10))
    assert alone.commit(2, group="group-0") == []  # it takes no more room than before
    alone.groups.delete("group-1", lambda _: None)
    assert alone.commit(1, group="group-40000") == []


def test_commits_that_could_not_be_stored_take_no_room() -> None:
    alone = GroupsAlone()
    alone.holds_stores = True
    for _ in range(40_000):
        assert alone.commit(5) == []
        alone.store_next(19)
    assert alone.commit(6) == []


@pytest.mark.parametrize("bug", ["commit_forgotten", "commits_swapped"])
def test_an_injected_bug_acknowledges_what_it_does_not_store(bug: str) -> None:
    alone = GroupsAlone(bugs=(bug,))
    errors = alone.commit(5)
    alone.sleep()
    assert errors == [ErrorCode.NONE]
    assert alone.committed() == (-1 if bug == "commit_forgotten" else 5)


# ------------------------------------------------------------------------------------------------ transactions

PRODUCER = ProducerIdentity(100, 4)
OUTSIDE = Committer("", None, -1)


def committed_in(
    alone: GroupsAlone, offset: int, producer: ProducerIdentity = PRODUCER, who: Committer = OUTSIDE, group: str = "g"
) -> list[int]:
    errors: list[int] = []
    offsets = {WHERE: CommittedOffset(offset, 3, "mine", alone.wall_ms())}
    alone.groups.commits.commit_in_transaction(group, who, producer, offsets, errors.append)
    alone.sleep()
    return errors


@pytest.mark.parametrize(("commits", "offset"), [(True, 9), (False, 5)])
def test_what_a_transaction_commits_counts_from_its_marker_on(commits: bool, offset: int) -> None:
    alone = GroupsAlone()
    committed_in(alone, 5)
    alone.groups.commits.transaction_ended(PRODUCER.producer_id, commits=True)
    assert committed_in(alone, 9) == [0]
    assert alone.transactional == [PRODUCER, PRODUCER]
    assert (alone.committed(), alone.groups.commits.is_stable("g", WHERE)) == (5, False)
    alone.groups.commits.transaction_ended(101, commits=True)
    assert alone.committed() == 5
    alone.groups.commits.transaction_ended(PRODUCER.producer_id, commits=commits)
    assert (alone.committed(), alone.groups.commits.is_stable("g", WHERE)) == (offset, True)


def test_what_a_transaction_could_not_commit_is_not_kept() -> None:
    alone = GroupsAlone()
    alone.holds_stores = True
    errors = committed_in(alone, 5)
    assert not alone.groups.commits.is_stable("g", WHERE), "it may be in the log"
    alone.store_next(19)
    alone.groups.commits.transaction_ended(PRODUCER.producer_id, commits=True)
    assert (errors, alone.committed(), alone.groups.commits.is_stable("g", WHERE)) == ([15], -1, True)


def test_a_transaction_commits_as_the_member_that_it_names() -> None:
    alone = GroupsAlone()
    (member,) = alone.stable("a")
    assert committed_in(alone, 5, who=Committer(member, None, 1)) == [0]
    assert committed_in(alone, 6, who=Committer(member, None, 0)) == [22]
    assert committed_in(alone, 6, who=Committer("stranger", None, 1)) == [25]
    assert committed_in(alone, 7) == [0], "a producer of before KIP-447 does not say"
    assert committed_in(alone, 7, who=Committer("", None, 1), group="new") == [22]


def test_the_next_coordinator_knows_the_commits_of_open_transactions() -> None:
    alone = GroupsAlone()
    committed_in(alone, 5)
    (record,) = alone.log
    said = decoded(*record)
    assert said is not None
    following = GroupsAlone()
    following.groups.replay(*said, PRODUCER.producer_id)
    assert (following.committed(), following.groups.commits.is_stable("g", WHERE)) == (-1, False)
    following.groups.commits.transaction_ended(PRODUCER.producer_id, commits=True)
    assert following.committed() == 5


def test_a_pending_commit_takes_room_until_its_transaction_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.coordination.kept_groups.MAX_KEPT_BYTES", 2_400)
    alone = GroupsAlone()
    assert committed_in(alone, 5) == [0]
    assert committed_in(alone, 6, ProducerIdentity(101, 0)) == [0]
    assert committed_in(alone, 7, ProducerIdentity(102, 0)) == [28]
    alone.groups.commits.transaction_ended(101, commits=False)
    assert committed_in(alone, 7, ProducerIdentity(102, 0)) == [0]
