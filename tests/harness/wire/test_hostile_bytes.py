"""Whatever bytes arrive, decoding ends in a message or a WireError, without huge allocations."""

from __future__ import annotations

import contextlib
import tracemalloc
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.wire.declaration import MESSAGES, NO_UUID, Message, Struct, Wire, wire_fields
from harness.wire.frames import ApiKey, WireError, decode_request
from harness.wire.messages.metadata import MetadataRequest
from tests.harness.wire.every_message import EVERY, decode, encoded

LARGE = [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\x80\x00\x00\x00", b"\x7f\xff"]

EXAMPLES: dict[str, Any] = {
    "string": "text",
    "records": b"records",
    "bytes": b"bytes",
    "uuid": NO_UUID,
}


def example(cls: type[Struct], version: int) -> Any:
    """A message with one or two of everything in it."""
    return cls(**{name: example_value(wire, version) for name, wire in wire_fields(cls, version)})


def example_value(wire: Wire, version: int) -> Any:
    if isinstance(wire.element, type):
        part = example(wire.element, version)
        return [part, part] if wire.kind == "array" else part
    value = EXAMPLES.get(wire.element or wire.kind, 1)
    return [value, value] if wire.kind == "array" else value


def frame_of(cls: type[Message], version: int) -> bytes:
    return encoded(example(cls, version), version)


@pytest.mark.parametrize(("cls", "version"), EVERY)
def test_a_torn_frame_is_taken_for_whole(cls: type[Message], version: int) -> None:
    frame = frame_of(cls, version)
    for size in range(len(frame)):
        with pytest.raises(WireError):
            decode(cls, version, frame[:size])


@pytest.mark.parametrize(("cls", "version"), EVERY)
def test_only_a_request_may_have_bytes_behind_it(cls: type[Message], version: int) -> None:
    frame = frame_of(cls, version)
    if cls.direction == "request":
        assert decode_request(frame + b"\0\xff") == decode_request(frame)
    else:
        with pytest.raises(WireError):
            decode(cls, version, frame + b"\0")


def test_the_request_for_all_topics_of_librdkafka_is_understood() -> None:
    # MetadataRequest v12 of librdkafka 2.16: the topics are null, and their count has three bytes too many.
    frame = bytes.fromhex("0003000c00000009000772646b61666b610000000000010000")
    header, body = decode_request(frame)
    assert (header.api_key, header.api_version, body) == (ApiKey.METADATA, 12, MetadataRequest(None, False))


@pytest.mark.parametrize(("cls", "version"), EVERY)
def test_changed_bytes_raise_something_else_than_a_wire_error(cls: type[Message], version: int) -> None:
    random = Random(f"{cls.__name__} {version}")
    frame = frame_of(cls, version)
    for _ in range(40):
        changed = bytearray(frame)
        for _ in range(random.randint(1, 3)):
            at = random.randrange(len(changed))
            junk = random.choice([*LARGE, random.randbytes(random.randint(1, 4)), b""])
            changed[at : at + random.randint(0, 4)] = junk
        with contextlib.suppress(WireError):
            decode(cls, version, bytes(changed))


@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(list(ApiKey)), st.integers(0, 13), st.binary(max_size=60))
def test_random_bodies_raise_something_else_than_a_wire_error(key: ApiKey, version: int, junk: bytes) -> None:
    with contextlib.suppress(WireError):
        decode_request(key.to_bytes(2, "big") + version.to_bytes(2, "big") + b"\0\0\0\1\xff\xff" + junk)
    with contextlib.suppress(WireError):
        decode_request(junk)


@pytest.mark.parametrize(
    ("key", "version"),
    [(ApiKey.METADATA, 1), (ApiKey.METADATA, 12), (ApiKey.PRODUCE, 3), (ApiKey.PRODUCE, 11), (ApiKey.FETCH, 4)],
)
@pytest.mark.parametrize("direction", ["request", "response"])
def test_a_claimed_length_allocates_memory(direction: Any, key: ApiKey, version: int) -> None:
    cls = MESSAGES[direction, key]
    frame = frame_of(cls, version)
    decode(cls, version, frame)
    tracemalloc.start()
    try:
        for at in range(4, len(frame)):
            for large in LARGE[:2]:
                with contextlib.suppress(WireError):
                    decode(cls, version, frame[:at] + large + frame[at + len(large) :])
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()
