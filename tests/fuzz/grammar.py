"""Requests that are made up from their declarations: each field has a value of its type, likely a strange one."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from harness.coordination.consumer_protocol import subscription
from harness.wire import batches as wire_batches
from harness.wire.declaration import MAX_ELEMENTS, MESSAGES, Message, Struct, Wire, wire_fields
from harness.wire.frames import RequestHeader, encode_request
from harness.wire.keys import ApiKey
from tests.harness.broker.produced_batches import CASES

TOPICS = ("fuzz-a", "fuzz-b", "fuzz-c")
"""Those that exist. Never that of the known load: a client may delete records, and so may these."""

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_NAMES = (*TOPICS, "", ".", "..", "nothing", "__consumer_offsets", "x" * 249, "x" * 250, "ü" * 99, "a/b", "\0", "g")
_SIZES = (0, 1, 1, 1, 2, 2, 3, 7)
_LARGE_SIZES = (100, 1_000, 5_000, MAX_ELEMENTS + 1)
_MOST_BYTES = 300_000
_RECORDS = [bytes(case.records) for case in CASES.values() if case.records is not None and len(case.records) < 2_000]


class Grammar:
    """Makes requests, as whole frames without their length.

    Args:
        rng: decides everything.
    """

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._room = 0

    def frame(self) -> bytes:
        """One request of any API in any version."""
        key = self._rng.choice(list(ApiKey))
        cls = MESSAGES["request", key]
        version = self._rng.randint(*cls.versions)
        self._room = _MOST_BYTES
        body = self._struct(cls, version)
        assert isinstance(body, Message)
        client_id = self._rng.choice(["fuzz", "", None, "x" * 300])
        header = RequestHeader(key, version, self._rng.getrandbits(31), client_id)
        return b"".join(encode_request(header, body))

    def _struct(self, cls: type[Struct], version: int) -> Struct:
        return cls(**{name: self._value(wire, version) for name, wire in wire_fields(cls, version)})

    def _value(self, wire: Wire, version: int) -> Any:
        self._room -= 8
        if wire.nullable is not None and wire.nullable <= version and self._rng.random() < 0.15:
            return None
        if wire.kind == "array":
            return self._array(wire, version)
        if wire.kind == "struct":
            assert isinstance(wire.element, type)
            return self._struct(wire.element, version)
        return self._scalar(wire.kind)

    def _array(self, wire: Wire, version: int) -> list[Any]:
        size = self._rng.choice(_SIZES if self._rng.random() < 0.98 else _LARGE_SIZES)
        if size > 10:  # as many of one and the same: what is many is not to be slow to make
            before = self._room
            element = self._element(wire, version)
            cost = max(before - self._room, 8)
            count = min(size, max(self._room, 0) // cost)
            self._room -= cost * count
            return [element] * count
        return [self._element(wire, version) for _ in range(size) if self._room > 0]

    def _element(self, wire: Wire, version: int) -> Any:
        if isinstance(wire.element, type):
            return self._struct(wire.element, version)
        return self._scalar(str(wire.element))

    def _scalar(self, kind: str) -> Any:
        makers: dict[str, Callable[[], Any]] = {
            "boolean": lambda: self._rng.random() < 0.5,
            "uint16": lambda: self._rng.choice([0, 1, 9092, 65_535]),
            "uuid": lambda: self._rng.choice([bytes(16), b"\xff" * 16, self._rng.randbytes(16)]),
            "string": lambda: self._rng.choice(_NAMES[:3] if self._rng.random() < 0.6 else _NAMES),
            "records": self._records,
            "bytes": lambda: self._rng.choice(
                [b"", subscription(TOPICS), self._rng.randbytes(self._rng.randrange(40))]
            ),
        }
        return makers[kind]() if kind in makers else self._number(_BITS[kind])

    def _number(self, bits: int) -> int:
        if self._rng.random() < 0.7:
            return self._rng.choice([-1, 0, 0, 0, 1, 1, 2, 3])
        edge = 1 << (bits - 1)
        strange = [-edge, edge - 1, 1 << (bits // 2), -2, 100, self._rng.randrange(-edge, edge)]
        return max(-edge, min(self._rng.choice(strange), edge - 1))

    def _records(self) -> bytes:
        if self._rng.random() < 0.3:
            return self._rng.choice(_RECORDS)
        values = [self._rng.randbytes(self._rng.randrange(40)) for _ in range(self._rng.randint(1, 5))]
        producer = self._rng.choice([-1, -1, -1, 1, 1000])
        return bytes(
            wire_batches.build(
                values,
                codec=self._rng.choice([wire_batches.NONE, wire_batches.GZIP]),
                producer_id=producer,
                producer_epoch=0 if producer >= 0 else -1,
                base_sequence=self._rng.randrange(3) if producer >= 0 else -1,
            )
        )
