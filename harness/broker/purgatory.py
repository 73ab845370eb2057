"""The purgatory: requests wait for changes of their partitions, or their timeout.

A waiter that is done, by whatever door, is deregistered everywhere at once; dead entries would otherwise keep
requests alive and be visited at every wake-up. A wake-up costs each waiter one partition, not all that it waits for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from harness.broker.ports import Network, Timer
from harness.model import TopicPartition

MAX_WATCHED = 100_000
"""How many partitions may be watched for all waiters, one that two watch counted twice; more are not taken in."""


class Waiter(Protocol):
    """A parked request."""

    def try_complete(self, partition: TopicPartition) -> bool:
        """``partition`` has changed: answer the request if it can be answered now; True when it was."""
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
        self._watches = 0

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, waiter: Waiter, partitions: Iterable[TopicPartition], timeout_s: float) -> bool:
        """Keep ``waiter`` until one of ``partitions`` wakes it successfully or ``timeout_s`` has passed.

        Returns:
            False where it is not kept, because ``MAX_WATCHED`` would be exceeded.
        """
        keys = tuple(dict.fromkeys(partitions))
        if self._watches + len(keys) > MAX_WATCHED:
            return False
        self._watches += len(keys)
        timer = self._network.call_later(timeout_s, lambda: self._expire(waiter))
        self._parked[waiter] = (keys, timer)
        for key in keys:
            self._watched.setdefault(key, {})[waiter] = None
        return True

    def wake(self, partition: TopicPartition) -> None:
        """Something changed at ``partition``: let every request that waits for it try again."""
        for waiter in list(self._watched.get(partition, ())):
            if waiter in self._parked and waiter.try_complete(partition):
                self.remove(waiter)

    def remove(self, waiter: Waiter) -> None:
        """Forget ``waiter``; harmless when it is not here."""
        keys, timer = self._parked.pop(waiter, ((), None))
        if timer is not None:
            timer.cancel()
        self._watches -= len(keys)
        for key in keys:
            watchers = self._watched[key]
            del watchers[waiter]
            if not watchers:
                del self._watched[key]

    def expire_all(self) -> None:
        """Answer every request now, with what there is."""
        for waiter in list(self._parked):
            self._expire(waiter)

    def _expire(self, waiter: Waiter) -> None:
        if waiter in self._parked:
            self.remove(waiter)
            waiter.expire()
