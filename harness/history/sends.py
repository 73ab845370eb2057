"""Sends that a client hands over together, and how each of them ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from harness.model import Offset, TopicPartition

Completion = Literal["ok", "fail", "info"]
"""How an operation ended: acknowledged, proven never to have happened, or unknown."""


class Answer(NamedTuple):
    """What became of a record: the kind of completion, its offset if known, the error's name unless ``ok``."""

    kind: Completion
    offset: Offset | None = None
    error: str | None = None


@dataclass(slots=True)
class Sends:
    """Sends to one partition, in the order in which a client hands them over.

    Attributes:
        partition: of all records.
        values: one for each record.
        processes: one for each record, and then each send is an operation of its own; or one for all, and then they are
            one operation, and the client promises to have them stored in this order.
        acks: -1 (all), 1 or 0.
        timestamps_ms: the CreateTime of each record.
        first_op: the number of the first operation; the recorder assigns it.
        is_open: by record, whether its send has not ended.
    """

    partition: TopicPartition
    values: Sequence[int]
    processes: Sequence[int]
    acks: int
    timestamps_ms: Sequence[int]
    first_op: int = -1
    is_open: list[bool] = field(init=False)

    def __post_init__(self) -> None:
        assert len(self.processes) in (1, len(self.values)), "a process for each record, or one for all"
        self.is_open = [True] * len(self.values)

    @property
    def are_one(self) -> bool:
        """Whether they are one operation."""
        return len(self.processes) < len(self.values)
