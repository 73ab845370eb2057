"""What the groups of a coordinator need of their broker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from harness.wire.declaration import Message

Answer = Callable[[Message], None]
"""Answers a request, once."""

Stored = Callable[[int], None]
"""Takes Kafka's error code: 0 once all in-sync replicas have the records, otherwise why this is not certain."""


class GroupRecord(NamedTuple):
    """A record of ``__consumer_offsets``; ``value`` None is a tombstone."""

    key: bytes
    value: bytes | None


class Timer(Protocol):
    """A pending :meth:`Surroundings.call_later`."""

    def cancel(self) -> None:
        """Make sure that the callback will not run; harmless when it already has."""
        ...


class Caller(NamedTuple):
    """The client of a request: its name for itself, and its address."""

    client_id: str
    host: str


class Surroundings(Protocol):
    """A broker, as the groups of one partition of ``__consumer_offsets`` see it."""

    def wall_ms(self) -> int:
        """The broker's wall clock, milliseconds since the Unix epoch."""
        ...

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        """Run ``callback`` once, ``delay_ms`` monotonic milliseconds from now."""
        ...

    def store(self, records: Sequence[GroupRecord], stored: Stored) -> None:
        """Append ``records`` to the partition with acks=all; calls ``stored`` once, later, never within this call."""
        ...

    def new_member_id(self, prefix: str) -> str:
        """An id that no member has had, which begins with ``prefix``."""
        ...
