"""What the producers of a run send: values that none has sent yet, until the load ends."""

from __future__ import annotations

from collections.abc import Callable


class Load:
    """See the module.

    Args:
        records_per_send: how many values a batch has at most.
        random: what the number of values is drawn from.

    Attributes:
        goes_on: whether producers send.
        next_value: the first that no producer has sent.
    """

    def __init__(self, records_per_send: int, random: Callable[[], float]) -> None:
        self.goes_on = True
        self.next_value = 0
        self._most = records_per_send
        self._random = random

    def next_values(self) -> tuple[int, ...]:
        """The values of one batch."""
        first = self.next_value
        self.next_value += 1 if self._most == 1 else 1 + int(self._random() * self._most)
        return tuple(range(first, self.next_value))
