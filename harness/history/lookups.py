"""The rows of a lookup by time: a consumer asks for the first offset whose record is as young (ListOffsets)."""

from __future__ import annotations

from dataclasses import replace

from harness.history.recorder import Recorder
from harness.history.rows import Row
from harness.model import Offset, ProcessId, TopicPartition


def begin_lookup(recorder: Recorder, process: ProcessId, where: TopicPartition, timestamp_ms: int) -> int:
    """A consumer is about to ask for ``timestamp_ms``, milliseconds since the Unix epoch; returns the operation."""
    row = Row(recorder.run, process, -1, "invoke", "offset_for_time", timestamp_ms=timestamp_ms)
    row.topic, row.partition = where
    return recorder.begin([row])


def end_lookup(recorder: Recorder, op: int, offset: Offset | None, error: str | None) -> None:
    """The answer to ``op``, None: no record is that young; with an ``error`` there was none."""

    def rows(invoked: list[Row]) -> list[Row]:
        return [replace(row, type="ok" if error is None else "info", offset=offset, error=error) for row in invoked]

    recorder.end(op, rows)
