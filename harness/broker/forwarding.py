"""Requests that a broker only carries to the controller, and what it says when the controller is silent."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from harness.broker.codes import FrontError
from harness.broker.refusals import refusal
from harness.replication.messages import ErrorCode
from harness.wire.declaration import NO_UUID, Message
from harness.wire.messages import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse

if TYPE_CHECKING:
    from harness.broker.broker import Broker
    from harness.broker.session import Request

Body = TypeVar("Body", bound=Message)


def forward(silence: Callable[[Body], Message | None]) -> Callable[[Broker, Request], None]:
    """Serve a request by forwarding it; ``silence`` makes the answer that leaves open whether it took effect.

    Each client has one under way at a time, so that no more wait for the controller than there are connections.
    """

    def serve(broker: Broker, request: Request) -> None:
        request.session.hold()

        def answered(response: Message | None) -> None:
            request.session.release()
            request.answer(silence(cast("Body", request.body)) if response is None else response)

        broker.controller.call(request.header.api_key, request.version, request.body, answered)

    return serve


def _topics_silence(body: CreateTopicsRequest) -> Message:
    sentence = "The controller did not answer; the topic may or may not have been created."
    return CreateTopicsResponse(
        topics=[CreatableTopicResult(one.name, NO_UUID, ErrorCode.REQUEST_TIMED_OUT, sentence) for one in body.topics]
    )


create_topics = forward(_topics_silence)
elect_leaders = forward(partial(refusal, error=ErrorCode.REQUEST_TIMED_OUT))
offset_commit = forward(partial(refusal, error=ErrorCode.REQUEST_TIMED_OUT))
offset_fetch = forward(partial(refusal, error=FrontError.COORDINATOR_NOT_AVAILABLE))
