"""The recorder: the only place that gives a row of the client history its index and its time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from harness.clock import Clock
from harness.history.arrow import write_columns
from harness.history.schema import HISTORY
from harness.model import Offset, ProcessId

Completion = Literal["ok", "fail", "info"]
"""How an operation ended: acknowledged, proven never to have happened, or unknown."""

NO_PROCESS = ProcessId(-1)
"""The process of the ``close`` row, which no client wrote."""


class PolledRecord(NamedTuple):
    """One record that a poll delivered.

    Attributes:
        value: None where the bytes are not a record of a workload at all.
        leader_epoch: None where the client does not report it.
        intact: whether the payload's hash, topic and partition check out.
    """

    topic: str
    partition: int
    offset: Offset
    value: int | None
    leader_epoch: int | None
    intact: bool


@dataclass(slots=True)
class _Row:
    """A row of ``HISTORY``, its columns in the table's order; index and time are given when it is buffered."""

    run: str
    process: int
    op: int
    type: str
    f: str
    index: int = -1
    time_ns: int = -1
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    value: int | None = None
    leader_epoch: int | None = None
    acks: int | None = None
    error: str | None = None
    final: bool = False
    intact: bool | None = None


_NAMES = tuple(c.name for c in HISTORY.columns)


@dataclass(frozen=True, slots=True)
class _Send:
    process: ProcessId
    topic: str
    partition: int
    value: int
    acks: int


@dataclass(frozen=True, slots=True)
class _Poll:
    process: ProcessId
    final: bool


class Recorder:
    """Writes the client history of one run as ``history/part-00000.parquet``, ``part-00001.parquet`` ...

    Any number of threads may call it. Rows are buffered; a part is written when it is full or when its first row
    is older than ``part_seconds``, whichever a new row finds first. A run that is killed therefore leaves every
    part but the last, gapless from index 0, and no ``close`` row.
    """

    def __init__(
        self, run: str, directory: Path, clock: Clock, *, part_rows: int = 20_000, part_seconds: float = 5.0
    ) -> None:
        """Record the run with id ``run`` into ``directory``, which must exist.

        Args:
            run: the run's id, written into every row.
            directory: the directory of the table's parts.
            clock: whose monotonic time the rows carry.
            part_rows: rows per part.
            part_seconds: how long the first row of a part may wait to be written.
        """
        self._run = run
        self._directory = directory
        self._clock = clock
        self._part_rows = part_rows
        self._part_ns = int(part_seconds * 1e9)
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._rows: list[_Row] = []
        self._open: dict[int, _Send | _Poll] = {}
        self._index = 0
        self._op = 0
        self._part = 0
        self._closed = False

    def invoke_send(self, process: ProcessId, topic: str, partition: int, value: int, acks: int) -> int:
        """A client is about to send ``value``; returns the operation's number for :meth:`complete_send`."""
        send = _Send(process, topic, partition, value, acks)
        return self._invoke(send, lambda op: self._send_row(op, send, "invoke"))

    def complete_send(self, op: int, kind: Completion, offset: Offset | None = None, error: str | None = None) -> None:
        """The send ``op`` ended.

        Args:
            op: what :meth:`invoke_send` returned.
            kind: ``fail`` only with proof that the record was never appended; when in doubt ``info``.
            offset: where it was appended, if the acknowledgement says so (acks=0 does not).
            error: the error's name, for ``fail`` and ``info``.
        """

        def rows(send: _Send | _Poll) -> list[_Row]:
            assert isinstance(send, _Send), f"operation {op} is a poll"
            return [self._send_row(op, send, kind, offset, error)]

        self._complete(op, rows)

    def invoke_poll(self, process: ProcessId, final: bool) -> int:
        """A client is about to poll; ``final`` marks the final read. Returns the operation's number."""
        poll = _Poll(process, final)
        return self._invoke(poll, lambda op: self._poll_row(op, poll, "invoke"))

    def complete_poll(self, op: int, records: Sequence[PolledRecord]) -> None:
        """The poll ``op`` delivered ``records``: one row each, in this order, or one bare row for none."""

        def rows(poll: _Send | _Poll) -> list[_Row]:
            assert isinstance(poll, _Poll), f"operation {op} is a send"
            empty = self._poll_row(op, poll, "ok")
            return [replace(empty, **record._asdict()) for record in records] or [empty]

        self._complete(op, rows)

    def poll_failed(self, op: int, error: str) -> None:
        """The poll ``op`` delivered nothing because of ``error``."""

        def rows(poll: _Send | _Poll) -> list[_Row]:
            assert isinstance(poll, _Poll), f"operation {op} is a send"
            return [replace(self._poll_row(op, poll, "fail"), error=error)]

        self._complete(op, rows)

    def flush(self) -> None:
        """Write everything still buffered, without a ``close`` row: what an interrupted run leaves behind."""
        self._write_part()

    def close(self) -> None:
        """Write the ``close`` row and everything still buffered. Idempotent; nothing may be recorded afterwards."""
        with self._lock:
            if not self._closed:
                self._append([_Row(self._run, NO_PROCESS, self._op, "ok", "close")])
                self._closed = True
        self._write_part()

    # ------------------------------------------------------------------------------------------------ internals

    def _send_row(
        self, op: int, send: _Send, kind: str, offset: Offset | None = None, error: str | None = None
    ) -> _Row:
        return _Row(
            self._run, send.process, op, kind, "send", topic=send.topic, partition=send.partition,
            offset=offset, value=send.value, acks=send.acks, error=error,
        )  # fmt: skip

    def _poll_row(self, op: int, poll: _Poll, kind: str) -> _Row:
        return _Row(self._run, poll.process, op, kind, "poll", final=poll.final)

    def _invoke(self, opened: _Send | _Poll, row: Callable[[int], _Row]) -> int:
        with self._lock:
            op = self._op
            self._op += 1
            self._open[op] = opened
            due = self._append([row(op)])
        if due:
            self._write_part()
        return op

    def _complete(self, op: int, rows: Callable[[_Send | _Poll], list[_Row]]) -> None:
        with self._lock:
            assert op in self._open, f"operation {op} was never invoked or has already completed"
            due = self._append(rows(self._open.pop(op)))
        if due:
            self._write_part()

    def _append(self, rows: list[_Row]) -> bool:
        """Give ``rows`` their indexes and the time, and buffer them; returns whether a part is due."""
        assert not self._closed, "the history is closed"
        now = self._clock.monotonic_ns()
        for row in rows:
            row.index, row.time_ns = self._index, now
            self._index += 1
        self._rows += rows
        return len(self._rows) >= self._part_rows or now - self._rows[0].time_ns >= self._part_ns

    def _write_part(self) -> None:
        with self._writing:
            with self._lock:
                rows, self._rows = self._rows, []
            if rows:
                columns = [[getattr(row, name) for row in rows] for name in _NAMES]
                write_columns(HISTORY, self._directory / f"part-{self._part:05d}.parquet", columns)
                self._part += 1


class KeptRecorder(Recorder):
    """A recorder that writes no files: the rows are kept in memory, for runs that are checked at once.

    Attributes:
        rows: the rows of ``HISTORY`` up to the last :meth:`flush` or :meth:`close`.
    """

    def __init__(self, run: str, clock: Clock) -> None:
        super().__init__(run, Path(), clock)
        self.rows: list[dict[str, Any]] = []

    def _write_part(self) -> None:
        with self._writing:
            with self._lock:
                rows, self._rows = self._rows, []
            self.rows += [{name: getattr(row, name) for name in _NAMES} for row in rows]
