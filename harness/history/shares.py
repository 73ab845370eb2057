"""Records what the consumers of share groups are given, and what they say of it (KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from harness.history.recorder import PolledRecord, Recorder
from harness.history.rows import Row
from harness.history.sends import Answer
from harness.model import Acknowledgement, Offset, ProcessId, TopicPartition


class SharedRecord(NamedTuple):
    """A record that a share consumer was given; ``delivery_count``: how often by then, None: it is not told."""

    record: PolledRecord
    delivery_count: int | None


class Acknowledging(NamedTuple):
    """What a share consumer says of a record that it was given. ``value``: as in :class:`PolledRecord`."""

    topic: str
    partition: int
    offset: Offset
    value: int | None
    acknowledgement: Acknowledgement


class Shares:
    """Writes the rows of the share groups of one run; any thread may use it.

    Args:
        recorder: of the history.
        most_deliveries: how often a group delivers a record at most.
    """

    def __init__(self, recorder: Recorder, most_deliveries: int) -> None:
        self._recorder = recorder
        self._most_deliveries = most_deliveries

    def invoke_acquire(self, process: ProcessId, group: str) -> int:
        """A consumer is about to poll; returns the number for :meth:`complete_acquire`."""
        row = Row(self._recorder.run, process, -1, "invoke", "acquire", group=group)
        row.delivery_count = self._most_deliveries
        return self._recorder.begin([row])

    def complete_acquire(self, op: int, given: Sequence[SharedRecord], error: str | None) -> None:
        """The poll ``op`` delivered ``given``; or nothing, because of ``error`` if there is one."""

        def rows(invoked: list[Row]) -> list[Row]:
            [row] = invoked
            bare = replace(row, delivery_count=None)
            if not given:
                return [replace(bare, type="ok" if error is None else "fail", error=error)]
            ended = replace(bare, type="ok")
            return [replace(ended, **one.record._asdict(), delivery_count=one.delivery_count) for one in given]

        self._recorder.end(op, rows)

    def invoke_acknowledge(self, process: ProcessId, group: str, said: Sequence[Acknowledging]) -> int:
        """A consumer is about to acknowledge records; returns the number for :meth:`complete_acknowledge`."""
        bare = Row(self._recorder.run, process, -1, "invoke", "acknowledge", group=group)
        return self._recorder.begin([replace(bare, **one._asdict()) for one in said])

    def complete_acknowledge(self, op: int, answers: Sequence[Answer]) -> None:
        """What came of ``op``, by record: ``ok``: confirmed; ``fail``: it was never sent; else ``info``."""

        def rows(invoked: list[Row]) -> list[Row]:
            return [
                replace(row, type=answer.kind, error=answer.error) for row, answer in zip(invoked, answers, strict=True)
            ]

        self._recorder.end(op, rows)

    def invoke_drain(self, process: ProcessId, group: str, partitions: Sequence[TopicPartition]) -> int:
        """A drain of ``group`` begins: what is acknowledged before is to be delivered in it, unless it is done with."""
        bare = Row(self._recorder.run, process, -1, "invoke", "drain", group=group)
        return self._recorder.begin([replace(bare, topic=name.topic, partition=name.partition) for name in partitions])

    def complete_drain(self, op: int, drained: frozenset[TopicPartition]) -> None:
        """The drain ended: of ``drained`` no more came for longer than a consumer may hold a record."""

        def rows(invoked: list[Row]) -> list[Row]:
            return [
                replace(row, type="ok" if TopicPartition(row.topic or "", row.partition or 0) in drained else "info")
                for row in invoked
            ]

        self._recorder.end(op, rows)
