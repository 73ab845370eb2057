"""Commits to groups of the consumer protocol while it is being stored who is a member, and in which epoch."""

from __future__ import annotations

import pytest

from harness.coordination.group_commits import Committer
from harness.coordination.offsets import CommittedOffset
from harness.coordination.ports import ProducerIdentity
from harness.error_codes import ErrorCode
from tests.harness.coordination.groups_alone import SESSION_MS, WHERE, GroupsAlone


def committing(alone: GroupsAlone, member: str, epoch: int, producer: ProducerIdentity | None = None) -> list[int]:
    """Send a commit, and wait for nothing; returns what will have the answer."""
    errors: list[int] = []
    who, offsets = Committer(member, None, epoch, names_epochs=True), {WHERE: CommittedOffset(5, 3, "", 0)}
    if producer is None:
        alone.groups.commits.commit("g", who, offsets, errors.append)
    else:
        alone.groups.commits.commit_in_transaction("g", who, producer, offsets, errors.append)
    return errors


def fencing() -> GroupsAlone:
    """A group whose member "a" was silent for too long, which is being stored; "b" is a member, too."""
    alone = GroupsAlone()
    alone.member_heartbeat("a", 0)
    alone.member_heartbeat("b", 0)
    alone.sleep(SESSION_MS // 2)
    alone.member_heartbeat("b", 2)
    alone.holds_stores = True
    alone.sleep(SESSION_MS // 2)
    assert len(alone.storing) == 1
    return alone


@pytest.mark.parametrize("producer", [None, ProducerIdentity(100, 4)])
@pytest.mark.parametrize("code", [0, 7, 20])
def test_a_member_commits_in_its_epoch_after_the_record_by_which_it_is_out(
    producer: ProducerIdentity | None, code: int
) -> None:
    alone = fencing()
    errors = committing(alone, "a", 1, producer)
    assert (errors, len(alone.storing)) == ([], 1), "it is not in the log behind that record"
    alone.store_next(code)
    assert (errors, alone.storing) == ([ErrorCode.UNKNOWN_MEMBER_ID], [])


def test_a_member_is_out_for_a_commit_although_that_could_not_be_appended() -> None:
    alone = fencing()
    errors = committing(alone, "a", 1)
    alone.store_next(6)
    alone.store_next()
    assert errors == [ErrorCode.NONE]


def test_a_commit_waits_for_what_is_stored_about_another_member() -> None:
    alone = fencing()
    errors = committing(alone, "b", 2)
    assert len(alone.storing) == 2
    alone.storing.reverse()
    alone.store_next()
    assert errors == [ErrorCode.NONE]


def test_a_commit_that_waits_is_not_answered_by_a_coordinator_that_resigns() -> None:
    alone = fencing()
    errors = committing(alone, "a", 1)
    alone.groups.end()
    assert errors == [ErrorCode.NOT_COORDINATOR]


def test_a_consumer_without_a_group_commits_while_its_first_member_is_being_stored() -> None:
    alone = GroupsAlone()
    alone.holds_stores = True
    alone.member_heartbeat("a", 0)
    errors = committing(alone, "", -1)
    alone.store_next()
    assert (errors, alone.storing) == ([ErrorCode.UNKNOWN_MEMBER_ID], [])
