"""Every message in every version, as a whole frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.wire.declaration import MESSAGES, Message
from harness.wire.frames import RequestHeader, decode_request, decode_response, encode_request, encode_response

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

LATE = pytest.mark.nightly("a version between; by day a message has its first and its last, and its first flexible one")


def sampled(cls: type[Message], version: int) -> ParameterSet:
    """A version of a message as a parameter: by day those whose encoding differs in kind."""
    by_day = version in (*cls.versions, cls.flexible)
    return pytest.param(cls, version, id=f"{cls.__name__}-v{version}", marks=[] if by_day else [LATE])


VERSIONS = [(cls, version) for cls in MESSAGES.values() for version in range(cls.versions[0], cls.versions[1] + 1)]
EVERY = [pytest.param(cls, version, id=f"{cls.__name__}-v{version}") for cls, version in VERSIONS]
SAMPLED = [sampled(cls, version) for cls, version in VERSIONS]
"""The same for tests that draw many messages of each."""


def encoded(body: Message, version: int) -> bytes:
    """The frame of a message, without its length."""
    if body.direction == "request":
        return b"".join(encode_request(RequestHeader(body.api_key, version, 7, "me"), body))
    return b"".join(encode_response(body.api_key, version, 7, body))


def decode(cls: type[Message], version: int, frame: bytes) -> Any:
    """What a frame says, which should be such a message.

    Raises:
        WireError: it is none.
    """
    if cls.direction == "request":
        return decode_request(frame)
    return decode_response(cls.api_key, version, frame)
