"""The records that producers had acknowledged, and those that a consumer read."""

from __future__ import annotations

from typing import NamedTuple

from harness.error_codes import NO_ERROR, ErrorCode
from harness.model import Offset
from harness.simulation.witnessed import Produce

ACKS_ALL = -1


class Acknowledged(NamedTuple):
    """A record that a broker has acknowledged, or that was sent with acks=0.

    ``offset`` is -1 where the producer does not know it.
    """

    value: int
    offset: Offset
    acks: int


class ClientRecords:
    """See the module.

    Attributes:
        acknowledged: in the order in which producers got the answers.
        delivered: (offset, value).
    """

    def __init__(self) -> None:
        self.acknowledged: list[Acknowledged] = []
        self.delivered: dict[tuple[Offset, int], None] = {}
        self._newest = -1

    def sent(self, produce: Produce, error: ErrorCode, base_offset: Offset) -> None:
        """A producer has the result of a request."""
        if error is not NO_ERROR:
            return
        for at, value in enumerate(produce.values):
            offset = base_offset + at if base_offset >= 0 else base_offset
            self.acknowledged.append(Acknowledged(value, offset, produce.acks))
            if produce.acks == ACKS_ALL:
                self._newest = max(self._newest, value)

    def polled(self, found: list[tuple[Offset, int, int]]) -> None:
        """The consumer was given records."""
        for offset, value, _ in found:
            self.delivered[offset, value] = None

    def heard_of(self, value: int) -> bool:
        """Whether ``value``, or one sent later, has been acknowledged by all."""
        return self._newest >= value
