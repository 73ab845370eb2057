"""Producer ids for idempotent producers, handed out of blocks that the controller reserves."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from harness.broker.controller_link import ControllerLink

Allocated = Callable[[int | None], None]
"""Takes a producer id that is new, or None when the controller cannot be reached."""


class ProducerIds:
    """One broker's supply."""

    def __init__(self, controller: ControllerLink) -> None:
        self._controller = controller
        self._block: deque[int] = deque()
        self._waiting: deque[Allocated] = deque()

    def next(self, allocated: Allocated) -> None:
        """Hand out one id, now or later."""
        if self._block:
            allocated(self._block.popleft())
            return
        self._waiting.append(allocated)
        if len(self._waiting) == 1:
            self._controller.allocate_producer_ids(self._refill)

    def _refill(self, block: range) -> None:
        self._block.extend(block)
        waiting, self._waiting = self._waiting, deque()
        for allocated in waiting:
            allocated(self._block.popleft() if self._block else None)
