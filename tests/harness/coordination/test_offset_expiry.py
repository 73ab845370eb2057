"""For how long a coordinator keeps what groups have committed, before KIP-211 and since."""

from __future__ import annotations

from dataclasses import replace

from harness.coordination.consumer_protocol import subscription
from tests.harness.coordination.groups_alone import (
    CHECK_MS,
    LIMITS,
    RETENTION_MS,
    SESSION_MS,
    GroupsAlone,
)

OLD = replace(LIMITS, offsets=LIMITS.offsets._replace(after_commit=True))
BEATS_MS = SESSION_MS // 2


def member_of(alone: GroupsAlone, topic: str = "t") -> str:
    """The only member of a stable group, which subscribes to ``topic``."""
    answers = alone.join(protocols={"range": subscription([topic])})
    alone.sleep(1_000)
    member: str = answers[0].member_id
    alone.sync(member, 1, **{member.replace("-", "_"): b""})
    alone.sleep()
    return member


def live(alone: GroupsAlone, member: str, ms: int) -> None:
    """The only member sends heartbeats, and commits nothing."""
    for _ in range(ms // BEATS_MS):
        assert alone.heartbeat(member, 1) == 0
        alone.sleep(BEATS_MS)


def test_what_a_group_without_members_committed_stays_or_goes_too_early() -> None:
    alone = GroupsAlone()
    alone.commit(5)
    alone.sleep(RETENTION_MS - CHECK_MS)
    assert alone.committed() == 5
    alone.sleep(2 * CHECK_MS)
    assert alone.committed() == -1
    assert GroupsAlone(alone.log).committed() == -1
    assert alone.state == "Dead"


def test_a_quiet_group_with_members_loses_its_offset_since_kip_211() -> None:
    alone = GroupsAlone()
    member = member_of(alone)
    alone.commit(5, member, 1)
    live(alone, member, 2 * RETENTION_MS)
    assert alone.committed() == 5


def test_a_quiet_group_with_members_keeps_its_offset_before_kip_211() -> None:
    alone = GroupsAlone(limits=OLD)
    member = member_of(alone)
    alone.commit(5, member, 1)
    live(alone, member, RETENTION_MS - CHECK_MS)
    assert alone.committed() == 5
    live(alone, member, 3 * CHECK_MS)
    assert alone.committed() == -1
    assert alone.state == "Stable"
    assert GroupsAlone(alone.log, OLD).committed() == -1


def test_an_emptied_group_s_time_counts_from_its_last_commit() -> None:
    alone = GroupsAlone()
    member = member_of(alone)
    alone.commit(5, member, 1)
    live(alone, member, RETENTION_MS)
    alone.leave(member)
    alone.sleep(RETENTION_MS - CHECK_MS)
    assert alone.committed() == 5
    next_one = GroupsAlone(alone.log)
    next_one.time.now_ms = alone.wall_ms()
    for kept in (alone, next_one):
        kept.sleep(2 * CHECK_MS)
        assert kept.committed() == -1


def test_a_commit_to_a_group_that_was_empty_for_long_gets_a_time_of_its_own() -> None:
    alone = GroupsAlone()
    member = member_of(alone)
    alone.commit(5, member, 1)
    alone.leave(member)
    alone.sleep(RETENTION_MS - CHECK_MS)
    alone.commit(3)
    alone.sleep(2 * CHECK_MS)
    assert alone.committed() == -1


def test_a_time_that_a_client_has_asked_for_is_forgotten() -> None:
    alone = GroupsAlone()
    alone.commit(5, keep_ms=3 * CHECK_MS)
    alone.sleep()
    after = GroupsAlone(alone.log)
    for kept in (alone, after):
        kept.sleep(2 * CHECK_MS)
        assert kept.committed() == 5
        kept.sleep(2 * CHECK_MS)
        assert kept.committed() == -1


def test_a_commit_that_is_being_stored_is_deleted_with_the_one_before() -> None:
    alone = GroupsAlone()
    alone.commit(5)
    alone.sleep(RETENTION_MS - CHECK_MS)
    alone.holds_stores = True
    errors = alone.commit(6)
    alone.sleep(3 * CHECK_MS)
    alone.store_next()
    assert (errors, alone.committed()) == ([0], 6)
    assert [one.value is None for one in alone.log] == [False, False]


def test_a_topic_that_no_member_subscribes_to_any_more_keeps_its_offset() -> None:
    alone = GroupsAlone()
    member = member_of(alone, "other")
    alone.commit(5, member, 1)
    live(alone, member, RETENTION_MS + 2 * CHECK_MS)
    assert alone.committed() == -1
    assert alone.state == "Stable"


def test_a_group_of_the_consumer_protocol_loses_the_offset_of_a_topic_that_it_subscribes_to() -> None:
    for topic, kept in (("t", 5), ("other", -1)):
        alone = GroupsAlone()
        alone.topics.counts["other"] = 1
        alone.commit(5)
        alone.sleep()
        alone.member_heartbeat("m", 0, subscribed_topic_names=[topic])
        alone.sleep()
        for _ in range((RETENTION_MS + 2 * CHECK_MS) // BEATS_MS):
            (answer,) = alone.member_heartbeat("m", 1, None)
            assert answer.error_code == 0
            alone.sleep(BEATS_MS)
        assert alone.committed() == kept
