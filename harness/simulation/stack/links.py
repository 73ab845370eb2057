"""The links of a simulated cluster: how each carries frames, and which node listens at which address."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from harness.model import Link

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class LinkConditions:
    """How a link carries frames.

    Attributes:
        delay_ns: the shortest and the longest time that a frame travels; frames of one connection keep their order.
        loss: the probability that a frame takes its connection down instead of arriving.
        late: the probability that a frame travels ``late_factor`` times as long.
    """

    delay_ns: tuple[int, int] = (50_000, 500_000)
    loss: float = 0.0
    late: float = 0.0
    late_factor: int = 1


CALM = LinkConditions(delay_ns=(0, 0))
"""Everything arrives at once."""


class Listener(Protocol):
    """Where a node listens."""

    def __call__(self, near: Any, name: str, /) -> None:
        """Give ``near``, the end of a connection that the node ``name`` has opened, its far end."""
        ...


class Links:
    """See the module.

    Attributes:
        conditions: of every link that has none of its own.
        local: those of single links.
        listeners: who listens where.
        watch: is shown every frame as it is handed over: the link, and the bytes.
    """

    def __init__(self, seed: int, conditions: LinkConditions) -> None:
        self.conditions = conditions
        self.local: dict[Link, LinkConditions] = {}
        self.listeners: dict[Address, Listener] = {}
        self.watch: Callable[[Link, memoryview], None] | None = None
        self._random = random.Random(seed)

    def conditions_of(self, link: Link) -> LinkConditions:
        """How ``link`` carries frames."""
        return self.local.get(link, self.conditions) if self.local else self.conditions

    def travel_ns(self, conditions: LinkConditions) -> int:
        """Draw how long a frame travels."""
        shortest, longest = conditions.delay_ns
        took_ns = shortest if shortest == longest else shortest + int(self._random.random() * (longest - shortest))
        is_late = conditions.late and self._random.random() < conditions.late
        return took_ns * conditions.late_factor if is_late else took_ns

    def is_lost(self, conditions: LinkConditions) -> bool:
        """Draw whether a frame takes its connection down."""
        return conditions.loss > 0 and self._random.random() < conditions.loss
