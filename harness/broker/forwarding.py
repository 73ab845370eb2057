"""Requests that a broker forwards to the controller, and its answers when the controller does not answer in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from harness.broker.controller_link import ControllerLink
from harness.broker.session import Request
from harness.error_codes import ErrorCode
from harness.wire.declaration import NO_UUID, Message
from harness.wire.messages.topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse

Body = TypeVar("Body", bound=Message)


def forward(silence: Callable[[Body], Message | None]) -> Callable[[ControllerLink, Request], None]:
    """A handler that forwards; ``silence`` makes the answer that leaves open whether the request took effect.

    Each client has one request in flight at a time, so that no more wait for the controller than there are connections.
    """

    def serve(controller: ControllerLink, request: Request) -> None:
        request.session.hold()

        def answered(response: Message | None) -> None:
            request.session.release()
            request.answer(silence(cast("Body", request.body)) if response is None else response)

        controller.call(request.header.api_key, request.version, request.body, answered)

    return serve


def _topics_silence(body: CreateTopicsRequest) -> Message:
    sentence = "The controller did not answer; the topic may or may not have been created."
    return CreateTopicsResponse(
        topics=[CreatableTopicResult(one.name, NO_UUID, ErrorCode.REQUEST_TIMED_OUT, sentence) for one in body.topics]
    )


def _says(error: int) -> Callable[[Message], Message | None]:
    return lambda body: body.error_response(error)


create_topics = forward(_topics_silence)
delete_topics = forward(_says(ErrorCode.REQUEST_TIMED_OUT))
create_partitions = forward(_says(ErrorCode.REQUEST_TIMED_OUT))
alter_configs = forward(_says(ErrorCode.REQUEST_TIMED_OUT))
incremental_alter_configs = forward(_says(ErrorCode.REQUEST_TIMED_OUT))
elect_leaders = forward(_says(ErrorCode.REQUEST_TIMED_OUT))
