"""OffsetCommit and OffsetFetch, as the controller serves them for consumers that assign partitions themselves."""

from __future__ import annotations

from typing import cast

from harness.broker import injected_bugs
from harness.broker.codes import FrontError
from harness.broker.consumer_offsets import CommittedOffset, ConsumerOffsets
from harness.broker.controller_driver import ControllerDriver
from harness.broker.session import Request
from harness.model import TopicPartition
from harness.replication.controller import Controller
from harness.replication.knobs import Knobs
from harness.replication.messages import ErrorCode
from harness.wire.messages.consumers import (
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

_MAX_METADATA_BYTES = 4_096


def offset_commit(
    driver: ControllerDriver, core: Controller, offsets: ConsumerOffsets, knobs: Knobs, request: Request
) -> None:
    """Serve OffsetCommit: the controller makes the offsets durable before it answers."""
    body = cast("OffsetCommitRequest", request.body)
    error = _group_error(body)
    known = {state.topic_partition for state in core.partitions}
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
    kept = injected_bugs.kept(knobs, accepted)
    if not offsets.has_room_for(body.group_id, kept):
        _refuse_all(response)
    elif kept:
        driver.write("the committed offsets", lambda: offsets.commit(body.group_id, kept))
    driver.answer_unless_halted(request, response)


def _refuse_all(response: OffsetCommitResponse) -> None:
    """Refuse every partition that has no error yet, because there is no room for the offsets."""
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


def offset_fetch(offsets: ConsumerOffsets, request: Request) -> None:
    """Serve OffsetFetch."""
    body = cast("OffsetFetchRequest", request.body)
    asked = {one.group_id: one.topics for one in body.groups}  # once each: all of a group's offsets may be asked for
    groups = [OffsetFetchResponseGroup(group, _committed(offsets, group, topics)) for group, topics in asked.items()]
    topics = [] if groups else _committed(offsets, body.group_id, body.topics)
    request.answer(OffsetFetchResponse(topics=topics, groups=groups))


def _committed(
    offsets: ConsumerOffsets, group: str, asked: list[OffsetFetchRequestTopic] | None
) -> list[OffsetFetchResponseTopic]:
    wanted = None
    if asked is not None:
        wanted = [TopicPartition(topic.name, index) for topic in asked for index in topic.partition_indexes]
    topics: dict[str, OffsetFetchResponseTopic] = {}
    for name, kept in offsets.committed(group, wanted).items():
        topic = topics.setdefault(name.topic, OffsetFetchResponseTopic(name.topic))
        topic.partitions.append(OffsetFetchResponsePartition(name.partition, *kept))
    return list(topics.values())
