"""The offsets that consumers commit: what is kept, what is refused, and that it is durable before it is answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.broker.codes import FrontError
from harness.broker.consumer_offsets import CommittedOffset, ConsumerOffsets
from harness.broker.files import Disk
from harness.model import CONTROLLER_ID, TopicPartition
from harness.replication.messages import ErrorCode
from harness.wire.keys import ApiKey
from harness.wire.messages.consumers import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from tests.harness.broker.virtual_cluster import VirtualCluster


@pytest.fixture
def cluster() -> VirtualCluster:
    cluster = VirtualCluster()
    cluster.create_topic()
    return cluster


def commit(cluster: VirtualCluster, offset: int, version: int = 8, **fields: Any) -> list[int]:
    topic, group = fields.pop("topic", "t"), fields.pop("group", "g")
    metadata = fields.pop("metadata", "mine")
    partitions = [OffsetCommitRequestPartition(0, offset, 3, metadata)]
    body = OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(topic, partitions)], **fields)
    return [
        one.error_code
        for answer in cluster.call(1, ApiKey.OFFSET_COMMIT, version, body)
        for one in answer.topics[0].partitions
    ]


def committed(cluster: VirtualCluster, group: str = "g", version: int = 7) -> list[tuple[int, int, str | None, int]]:
    topics = [OffsetFetchRequestTopic("t", [0])]
    body = OffsetFetchRequest(group, topics, [OffsetFetchRequestGroup(group, topics)])
    (answer,) = cluster.call(2, ApiKey.OFFSET_FETCH, version, body)
    found = answer.groups[0].topics if version >= 8 else answer.topics
    return [
        (one.committed_offset, one.committed_leader_epoch, one.metadata, one.error_code) for one in found[0].partitions
    ]


@pytest.mark.parametrize("version", range(1, 9))
def test_what_one_broker_was_told_another_one_tells(cluster: VirtualCluster, version: int) -> None:
    assert commit(cluster, 5, max(version, 2)) == [ErrorCode.NONE]
    knows_epochs = version >= 6
    assert committed(cluster) == [(5, 3 if knows_epochs else -1, "mine", ErrorCode.NONE)]
    assert committed(cluster, version=version)[0][0] == 5


def test_a_commit_keeps_what_else_the_group_and_others_have_committed(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "data")
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    for group, where in (("g", first), ("h", first), ("g", second)):
        ConsumerOffsets(disk).commit(group, {where: CommittedOffset(5, 3, "mine")})
    assert list(ConsumerOffsets(disk).committed("g", None)) == [first, second]
    assert list(ConsumerOffsets(disk).committed("h", None)) == [first]
    assert ConsumerOffsets(disk).committed("h", [first, second]) == {
        first: CommittedOffset(5, 3, "mine"),
        second: CommittedOffset(-1, -1, ""),
    }


def test_nothing_committed_is_minus_one(cluster: VirtualCluster) -> None:
    commit(cluster, 5)
    assert committed(cluster, "another") == [(-1, -1, "", ErrorCode.NONE)]


def test_a_later_commit_replaces_an_earlier_one_even_if_it_goes_back(cluster: VirtualCluster) -> None:
    for offset in (5, 2):
        commit(cluster, offset)
        assert committed(cluster)[0][0] == offset


def test_a_group_has_a_word_about_what_it_committed_only(cluster: VirtualCluster) -> None:
    commit(cluster, 5)
    (answer,) = cluster.call(0, ApiKey.OFFSET_FETCH, 7, OffsetFetchRequest("g", None))
    assert [(topic.name, len(topic.partitions)) for topic in answer.topics] == [("t", 1)]
    (answer,) = cluster.call(0, ApiKey.OFFSET_FETCH, 7, OffsetFetchRequest("another", None))
    assert answer.topics == []


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"group": ""}, FrontError.INVALID_GROUP_ID),
        ({"generation_id_or_member_epoch": 0}, FrontError.ILLEGAL_GENERATION),
        ({"member_id": "somebody"}, FrontError.UNKNOWN_MEMBER_ID),
        ({"topic": "nowhere"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"metadata": "x" * 4_097}, FrontError.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_what_a_simple_consumer_would_not_say_is_refused(
    cluster: VirtualCluster, fields: dict[str, Any], error: int
) -> None:
    assert commit(cluster, 5, **fields) == [error]
    assert committed(cluster) == [(-1, -1, "", ErrorCode.NONE)]


def test_a_commit_survives_the_controller_and_its_power(cluster: VirtualCluster) -> None:
    commit(cluster, 5)
    assert cluster.node(CONTROLLER_ID).lose_power() == []
    cluster.node(CONTROLLER_ID).start()
    cluster.world.sleep(3)
    assert committed(cluster)[0][0] == 5


def test_a_commit_that_cannot_be_written_is_not_acknowledged_and_not_kept(cluster: VirtualCluster) -> None:
    commit(cluster, 5)
    cluster.disk(CONTROLLER_ID).free_bytes = 0
    body = OffsetCommitRequest(
        "g", topics=[OffsetCommitRequestTopic("t", [OffsetCommitRequestPartition(0, 123_456_789, 3, "")])]
    )
    answers = cluster.call(1, ApiKey.OFFSET_COMMIT, 8, body)
    cluster.world.sleep(3)
    assert cluster.exit_codes == {CONTROLLER_ID: 1}
    assert [one.error_code for a in answers for one in a.topics[0].partitions] == [ErrorCode.REQUEST_TIMED_OUT]
    cluster.disk(CONTROLLER_ID).free_bytes = None
    cluster.node(CONTROLLER_ID).start()
    cluster.world.sleep(3)
    assert committed(cluster)[0][0] == 5


def test_a_broker_whose_controller_is_gone_says_that_it_does_not_know(cluster: VirtualCluster) -> None:
    cluster.kill(CONTROLLER_ID)
    topics = [OffsetFetchRequestTopic("t", [0])]
    old = cluster.call(0, ApiKey.OFFSET_FETCH, 1, OffsetFetchRequest("g", topics))
    new = cluster.call(0, ApiKey.OFFSET_FETCH, 8, OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics)]))
    cluster.world.sleep(3)
    assert old[0].topics[0].partitions[0].error_code == FrontError.COORDINATOR_NOT_AVAILABLE
    assert new[0].groups[0].error_code == FrontError.COORDINATOR_NOT_AVAILABLE
