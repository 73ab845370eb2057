"""The time by which a broker measures how far its followers lag."""

from __future__ import annotations

from harness.clock import Clock


def kafka_time_ns(clock: Clock) -> int:
    """The node's wall clock in nanoseconds: what Kafka calls ``time.milliseconds()``.

    For the ``now_ns`` of a replica's events (see :mod:`harness.replication.messages`), and for nothing else: timers,
    sessions and the history run on the monotonic clock.
    """
    return clock.wall_ms() * 1_000_000
