"""Where requests wait: watched by the partitions they wait for, and by the clock.

A waiter that is done, by whatever door, is deregistered everywhere at once; dead entries would otherwise keep
requests alive and be visited at every wake-up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from harness.broker.ports import Network, Timer
from harness.model import TopicPartition


class Waiter(Protocol):
    """A parked request."""

    def try_complete(self) -> bool:
        """Answer it if it can be answered now; True when it was."""
        ...

    def expire(self) -> None:
        """Answer it with what there is: its time is up."""
        ...


class Purgatory:
    """Parked requests of one kind. Wake-ups visit waiters in the order in which they were parked."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._watched: dict[TopicPartition, dict[Waiter, None]] = {}
        self._parked: dict[Waiter, tuple[tuple[TopicPartition, ...], Timer]] = {}

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, waiter: Waiter, partitions: Iterable[TopicPartition], timeout_s: float) -> None:
        """Keep ``waiter`` until one of ``partitions`` wakes it successfully or ``timeout_s`` has passed."""
        keys = tuple(dict.fromkeys(partitions))
        timer = self._network.call_later(timeout_s, lambda: self._expire(waiter))
        self._parked[waiter] = (keys, timer)
        for key in keys:
            self._watched.setdefault(key, {})[waiter] = None

    def wake(self, partition: TopicPartition) -> None:
        """Something changed at ``partition``: let everyone who waits for it try again."""
        for waiter in list(self._watched.get(partition, ())):
            if waiter in self._parked and waiter.try_complete():
                self.remove(waiter)

    def remove(self, waiter: Waiter) -> None:
        """Forget ``waiter``; harmless when it is not here."""
        keys, timer = self._parked.pop(waiter, ((), None))
        if timer is not None:
            timer.cancel()
        for key in keys:
            watchers = self._watched[key]
            del watchers[waiter]
            if not watchers:
                del self._watched[key]

    def expire_all(self) -> None:
        """Answer everyone now, with what there is."""
        for waiter in list(self._parked):
            self._expire(waiter)

    def _expire(self, waiter: Waiter) -> None:
        if waiter in self._parked:
            self.remove(waiter)
            waiter.expire()
