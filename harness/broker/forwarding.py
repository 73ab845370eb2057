"""Requests that a broker only carries to the controller, and what it says when the controller is silent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from harness.broker.codes import FrontError
from harness.model import NO_EPOCH, NO_OFFSET
from harness.replication.messages import ErrorCode
from harness.wire.declaration import NO_UUID, Message
from harness.wire.messages import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
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
    from harness.broker.broker import Broker
    from harness.broker.session import Request

Body = TypeVar("Body", bound=Message)


def forward(silence: Callable[[Body], Message]) -> Callable[[Broker, Request], None]:
    """Serve a request by forwarding it; ``silence`` makes the answer that leaves open whether it took effect."""

    def serve(broker: Broker, request: Request) -> None:
        def answered(response: Message | None) -> None:
            request.answer(silence(cast("Body", request.body)) if response is None else response)

        broker.controller.call(request.header.api_key, request.version, request.body, answered)

    return serve


def _topics_silence(body: CreateTopicsRequest) -> Message:
    sentence = "The controller did not answer; the topic may or may not have been created."
    return CreateTopicsResponse(
        topics=[CreatableTopicResult(one.name, NO_UUID, ErrorCode.REQUEST_TIMED_OUT, sentence) for one in body.topics]
    )


def _elections_silence(_: ElectLeadersRequest) -> Message:
    return ElectLeadersResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)


def _commit_silence(body: OffsetCommitRequest) -> Message:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                topic.name,
                [
                    OffsetCommitResponsePartition(one.partition_index, ErrorCode.REQUEST_TIMED_OUT)
                    for one in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _committed_silence(body: OffsetFetchRequest) -> Message:
    error = FrontError.COORDINATOR_NOT_AVAILABLE
    return OffsetFetchResponse(
        topics=_nothing_committed(body.topics, error),
        error_code=error,
        groups=[OffsetFetchResponseGroup(group.group_id, error_code=error) for group in body.groups],
    )


def _nothing_committed(topics: list[OffsetFetchRequestTopic] | None, error: int) -> list[OffsetFetchResponseTopic]:
    return [
        OffsetFetchResponseTopic(
            topic.name,
            [OffsetFetchResponsePartition(index, NO_OFFSET, NO_EPOCH, "", error) for index in topic.partition_indexes],
        )
        for topic in topics or ()
    ]


create_topics = forward(_topics_silence)
elect_leaders = forward(_elections_silence)
offset_commit = forward(_commit_silence)
offset_fetch = forward(_committed_silence)
