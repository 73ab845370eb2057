"""OffsetCommit and OffsetFetch, as the controller serves them for consumers that assign partitions themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from harness.broker import injected_bugs
from harness.broker.codes import FrontError
from harness.broker.consumer_offsets import CommittedOffset
from harness.model import TopicPartition
from harness.replication.messages import ErrorCode
from harness.wire.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

if TYPE_CHECKING:
    from harness.broker.controller_node import ControllerNode
    from harness.broker.session import Request

_MAX_METADATA_BYTES = 4_096


def offset_commit(node: ControllerNode, request: Request) -> None:
    """Serve OffsetCommit: durable before it is answered."""
    body = cast("OffsetCommitRequest", request.body)
    error = _group_error(body)
    known = {state.topic_partition for state in node.core.partitions}
    accepted: dict[TopicPartition, CommittedOffset] = {}
    response = OffsetCommitResponse()
    for topic in body.topics:
        results = OffsetCommitResponseTopic(topic.name)
        for one in topic.partitions:
            name = TopicPartition(topic.name, one.partition_index)
            metadata = one.committed_metadata or ""
            refusal = error or _offset_error(metadata, is_known=name in known)
            if not refusal:
                accepted[name] = CommittedOffset(one.committed_offset, one.committed_leader_epoch, metadata)
            results.partitions.append(OffsetCommitResponsePartition(one.partition_index, refusal))
        response.topics.append(results)
    kept = injected_bugs.kept(node.knobs, accepted)
    if not node.consumer_offsets.has_room_for(body.group_id, kept):
        _refuse_all(response)
    elif kept:
        node.write("the committed offsets", lambda: node.consumer_offsets.commit(body.group_id, kept))
    node.answer_unless_halted(request, response)


def _refuse_all(response: OffsetCommitResponse) -> None:
    """There is no room for what was committed; what has an error keeps it."""
    for topic in response.topics:
        for one in topic.partitions:
            one.error_code = one.error_code or FrontError.INVALID_COMMIT_OFFSET_SIZE


def _group_error(body: OffsetCommitRequest) -> int:
    if not body.group_id:
        return FrontError.INVALID_GROUP_ID
    if body.member_id:
        return FrontError.UNKNOWN_MEMBER_ID
    return FrontError.ILLEGAL_GENERATION if body.generation_id_or_member_epoch >= 0 else ErrorCode.NONE


def _offset_error(metadata: str, *, is_known: bool) -> int:
    if not is_known:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    too_large = len(metadata.encode()) > _MAX_METADATA_BYTES
    return FrontError.OFFSET_METADATA_TOO_LARGE if too_large else ErrorCode.NONE


def offset_fetch(node: ControllerNode, request: Request) -> None:
    """Serve OffsetFetch."""
    body = cast("OffsetFetchRequest", request.body)
    asked = {one.group_id: one.topics for one in body.groups}  # once each: all of a group's offsets may be asked for
    groups = [OffsetFetchResponseGroup(group, _committed(node, group, topics)) for group, topics in asked.items()]
    topics = [] if groups else _committed(node, body.group_id, body.topics)
    request.answer(OffsetFetchResponse(topics=topics, groups=groups))


def _committed(
    node: ControllerNode, group: str, asked: list[OffsetFetchRequestTopic] | None
) -> list[OffsetFetchResponseTopic]:
    wanted = None
    if asked is not None:
        wanted = [TopicPartition(topic.name, index) for topic in asked for index in topic.partition_indexes]
    topics: dict[str, OffsetFetchResponseTopic] = {}
    for name, kept in node.consumer_offsets.committed(group, wanted).items():
        topic = topics.setdefault(name.topic, OffsetFetchResponseTopic(name.topic))
        topic.partitions.append(OffsetFetchResponsePartition(name.partition, *kept))
    return list(topics.values())
