"""A process of a simulated run: it has an address, can be paused and can die."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Receiver(Protocol):
    """What a message can be sent to; attributes as of :class:`Process`."""

    index: int
    life: int
    paused: bool
    waiting: list[tuple[Callable[[Any], object], Any]]


class Process:
    """One end of links.

    Attributes:
        index: its row and column in the network's matrix.
        name: in traces.
        life: how often it has been started, so that nothing meant for an earlier life reaches a later one.
        alive: whether there is a process now.
        paused: whether it is stopped (SIGSTOP); what arrives meanwhile waits in ``waiting``.
    """

    __slots__ = ("alive", "index", "life", "name", "paused", "waiting")

    def __init__(self, index: int, name: str) -> None:
        self.index = index
        self.name = name
        self.life = 0
        self.alive = True
        self.paused = False
        self.waiting: list[tuple[Callable[[Any], object], Any]] = []
