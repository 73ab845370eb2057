"""Whatever bytes stand for a message or a log: they are one, or decoding raises the declared error and nothing else."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.wire.batches import CorruptBatch, complete_size, headers, legacy, records, stored
from harness.wire.batches.record import inflate
from harness.wire.declaration import Message
from harness.wire.frames import WireError
from tests.harness.wire.every_message import SAMPLED, decode, encoded

few = settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
many = settings(max_examples=400, deadline=None)


def is_decoded_or_refused(cls: type[Message], version: int, frame: bytes) -> None:
    with contextlib.suppress(WireError):
        decode(cls, version, frame)


@pytest.mark.parametrize(("cls", "version"), SAMPLED)
@few
@given(junk=st.binary(max_size=200))
def test_any_bytes_in_place_of_a_body_are_a_message_or_a_wire_error(
    cls: type[Message], version: int, junk: bytes
) -> None:
    head = cls.api_key.to_bytes(2, "big") + version.to_bytes(2, "big") + b"\0\0\0\7\xff\xff"
    is_decoded_or_refused(cls, version, (head if cls.direction == "request" else b"\0\0\0\7") + junk)


@pytest.mark.parametrize(("cls", "version"), SAMPLED)
@few
@given(data=st.data())
def test_one_changed_byte_leaves_a_message_or_a_wire_error(
    bodies: Any, cls: type[Message], version: int, data: st.DataObject
) -> None:
    frame = bytearray(encoded(data.draw(bodies(cls, version)), version))
    frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    is_decoded_or_refused(cls, version, bytes(frame))


@many
@given(st.binary(max_size=300))
def test_any_bytes_as_a_log_are_batches_or_corrupt(junk: bytes) -> None:
    for piece in stored.pieces(memoryview(junk)):
        with contextlib.suppress(CorruptBatch):
            list(stored.records(piece, stored.header(piece, inflate), inflate))
    with contextlib.suppress(CorruptBatch):
        complete_size(junk)
    with contextlib.suppress(CorruptBatch):
        for header in headers(junk):
            list(records(junk, header))
    with contextlib.suppress(CorruptBatch):
        list(legacy.records(junk, inflate))
