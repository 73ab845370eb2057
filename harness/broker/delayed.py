"""Requests that a broker answers once each of their partitions is decided, or at their timeout."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

from harness.broker.partition import Partition
from harness.broker.ports import Network, Timer
from harness.broker.session import Request
from harness.replication.messages import ReplicaEvent


class Slot(Protocol):
    """One partition's part of a request: the core's token for it; ``partition`` is None where the broker hosts none."""

    partition: Partition | None


SomeSlot = TypeVar("SomeSlot", bound=Slot)


class Delayed(ABC, Generic[SomeSlot]):
    """One request until its answer, as Kafka's ``DelayedOperation``."""

    def __init__(self, network: Network, request: Request) -> None:
        self._network = network
        self._request = request
        self._waiting: dict[SomeSlot, None] = {}
        self._timer: Timer | None = None

    def slot_done(self, slot: SomeSlot) -> None:
        """One partition is decided; the last one answers the request."""
        del self._waiting[slot]
        if not self._waiting:
            if self._timer is not None:
                self._timer.cancel()
            self._answer()

    def _wait_for(self, slots: Iterable[SomeSlot]) -> None:
        """Before any of them can be decided."""
        self._waiting = dict.fromkeys(slots)
        if not self._waiting:
            self._answer()

    def _wait_at_most(self, timeout_ms: int) -> None:
        """After what can be decided at once has been. A client that has hung up waits for nothing."""
        if not self._waiting:
            return
        if self._request.session.is_abandoned:
            self._expire()
        else:
            self._request.abandon = self._expire
            self._timer = self._network.call_later(max(timeout_ms, 0) / 1000, self._expire)

    def _expire(self) -> None:
        with self._request.surviving():
            for slot in list(self._waiting):
                if slot.partition is not None:
                    slot.partition.handle(self._expiry(slot))

    @abstractmethod
    def _expiry(self, slot: SomeSlot) -> ReplicaEvent:
        """The event for the core when the timeout of the slot has passed."""

    @abstractmethod
    def _answer(self) -> None:
        """Answer the request."""
