"""What the controller's request handlers ask of the node that drives the controller core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from harness.broker.session import Request
from harness.replication.controller_messages import ControllerEffect, ControllerEvent
from harness.wire.declaration import Message

Token = Callable[[ControllerEffect], None]
"""The ``token`` of every request to the core: takes the core's answer to it."""


class ControllerDriver(Protocol):
    """The controller node, as its request handlers see it."""

    def handle(self, event: ControllerEvent) -> None:
        """Hand ``event`` to the core and perform its effects in order; none after a failed write."""
        ...

    def write(self, what: str, write: Callable[[], None]) -> None:
        """Call ``write`` to make ``what`` durable; if storage refuses, the controller halts."""
        ...

    def answer_unless_halted(self, request: Request, body: Message) -> None:
        """Answer ``request``, unless the controller has halted because a write failed."""
        ...

    def later(self, act: Callable[[], None]) -> None:
        """Call ``act`` after the requests that already wait."""
        ...
