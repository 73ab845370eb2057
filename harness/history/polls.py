"""Rows about consumers that have learned from a broker's answers that their position is not in its log."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from harness.history.recorder import Recorder
from harness.history.rows import Row
from harness.model import Offset, TopicPartition


class OutOfRange(NamedTuple):
    """A consumer's position, the offset of the next record, of which it learned that it is not in the log."""

    partition: TopicPartition
    position: Offset


def record_out_of_range(recorder: Recorder, op: int, error: str, found: OutOfRange | None) -> None:
    """The poll ``op`` learned by ``error`` what it ``found``; None: its client does not say of which partition."""

    def rows(bare: Row) -> list[Row]:
        row = replace(bare, f="out_of_range", error=error)
        return [row if found is None else replace(row, **found.partition._asdict(), offset=found.position)]

    recorder.note(op, rows)
