"""Records the client history: the only place that assigns a row its index and its time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from harness.clock import Clock
from harness.history.arrow import write_file
from harness.history.blocks import Block
from harness.history.delete_records_log import DeleteRecordsLog
from harness.history.rows import Row, alike, blocks_of, ended, per_partition, placed, polled, sent, sole
from harness.history.schema import HISTORY
from harness.history.sends import Answer, Completion, Sends
from harness.model import GroupProtocol, Offset, ProcessId, TopicPartition

NO_PROCESS = ProcessId(-1)
"""The process of the ``close`` row, which no client wrote."""

_ALL = -1
"""``acks=all``."""


class PolledRecord(NamedTuple):
    """One record that a poll delivered.

    Attributes:
        value: None where the bytes are no record of a workload.
        leader_epoch: None where the client does not report it.
        intact: whether every part of it is as it was sent to that partition; see :func:`harness.payload.judge`.
        timestamp_ms: None where it has none (message format v0).
        current_leader_epoch: the leader epoch in the fetch request; None: there was none, or it is unknown.
    """

    topic: str
    partition: int
    offset: Offset
    value: int | None
    leader_epoch: int | None
    intact: bool
    timestamp_ms: int | None = None
    current_leader_epoch: int | None = None


class Sending(NamedTuple):
    """An operation, or a micro-operation of a transaction: send ``value`` with the CreateTime ``timestamp_ms``."""

    topic: str
    partition: int
    value: int
    acks: int = -1
    timestamp_ms: int | None = None


class Polling(NamedTuple):
    """A micro-operation of a transaction: poll. ``isolation``: None is read_committed."""

    group: str | None = None
    isolation: str | None = None


class Output(NamedTuple):
    """A record that a user's program has put out.

    Attributes:
        topic: with ``partition`` where; None: in no topic.
        offset: in the partition, or its position among those of the process that read it.
        value: that of the record of the input which it holds; None: of none.
    """

    topic: str | None
    partition: int | None
    offset: Offset
    value: int | None


Answered = Offset | Sequence[PolledRecord] | None
"""The result of a micro-operation: of a send its offset (None: unknown), of a poll its records (None: none)."""

Change = Literal["assigned", "revoked", "lost"]
"""The kinds of changes by a rebalance."""


class Recorder:
    """Writes the client history of one run as ``history/part-00000.parquet``, ``part-00001.parquet`` ...

    Thread-safe. It buffers rows, and writes a part when it is full or its first row is older than ``part_seconds``. A
    killed run therefore leaves every part but the last, gapless from index 0, and no ``close`` row. If a part cannot be
    written, the call that completed it raises ``EnvironmentFault``, and its rows go into the next part.

    Attributes:
        run: the run's id.
        orders: the DeleteRecords of the run, which are no rows of the history.
        operations: how many operations have been invoked.
        acknowledged: how many sends were acknowledged.
        errors: how many operations ended without success: failed, or with an unknown outcome.
        acknowledged_to: by partition, one more than the highest offset that was acknowledged with acks=all.
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
        self.orders = DeleteRecordsLog(clock.monotonic_ns)
        self.acknowledged = 0
        self.errors = 0
        self.acknowledged_to: dict[TopicPartition, Offset] = {}
        self.run = run
        self._directory = directory
        self._clock = clock
        self._part_rows = part_rows
        self._part_ns = int(part_seconds * 1e9)
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._buffered: list[Row | Block] = []
        self._since_ns = 0
        self._written = 0
        self._open: dict[int, list[Row]] = {}
        self._index = 0
        self._op = 0
        self._part = 0
        self._closed = False

    @property
    def operations(self) -> int:
        """See the class."""
        return self._op

    def invoke_send(self, process: ProcessId, send: Sending) -> int:
        """A client is about to send a value; returns the operation's number for :meth:`complete_send`."""
        return self.begin([self._send_row(process, send)])

    def complete_send(self, op: int, kind: Completion, offset: Offset | None = None, error: str | None = None) -> None:
        """The send ``op`` ended.

        Args:
            op: what :meth:`invoke_send` returned.
            kind: ``fail`` only with proof that the record was never appended; when in doubt ``info``.
            offset: of the record, if the acknowledgement has it (acks=0 does not).
            error: the error's name, for ``fail`` and ``info``.
        """
        self.end(op, lambda invoked: [ended(sole("send", invoked), kind, error, offset)])

    def invoke_sends(self, sends: Sends) -> None:
        """A client is about to hand over ``sends``, for :meth:`complete_sends`."""
        with self._lock:
            sends.first_op = self._op
            self._op += len(sends.values)
        self._record(sent(self.run, sends, range(len(sends.values)), None))

    def complete_sends(self, sends: Sends, which: Sequence[int], answers: Sequence[Answer]) -> None:
        """Those of ``sends`` that ``which`` numbers, from 0, ended with ``answers``; see :meth:`complete_send`.

        The calls for the same ``sends`` come one after the other.
        """
        for place in which:
            assert sends.is_open[place], f"send {place} of operation {sends.first_op} has already completed"
            sends.is_open[place] = False
        rows = sent(self.run, sends, which, answers)
        acknowledged = sum(answer.kind == "ok" for answer in answers)
        with self._lock:
            self.acknowledged += acknowledged
            self.errors += len(answers) - acknowledged
            if sends.acks == _ALL:
                self._note_end(sends.partition, (answer.offset for answer in answers if answer.kind == "ok"))
        self._record(rows)

    def invoke_poll(
        self, process: ProcessId, final: bool, group: str | None = None, isolation: str | None = None,
        *, generation: int | None = None, protocol: GroupProtocol | None = None,
    ) -> int:  # fmt: skip
        """A client is about to poll; ``final`` marks the final read. Returns the operation's number.

        ``generation``: the one that a member of the group is in; None: it is none. ``protocol``: of its group.
        """
        row = self._poll_row(process, Polling(group, isolation))
        return self.begin([replace(row, final=final, generation=generation, group_protocol=protocol)])

    def complete_poll(self, op: int, records: Sequence[PolledRecord]) -> None:
        """The poll ``op`` delivered ``records``: one row each, in this order, or one bare row for none."""
        if not records:
            self.end(op, lambda invoked: [ended(polled(invoked), "ok", None)])
            return
        with self._lock:
            like = ended(polled(self._closing(op)), "ok", None)
        columns = dict(zip(PolledRecord._fields, zip(*records, strict=True), strict=True))
        self._record(alike(like, columns, len(records)))

    def poll_failed(self, op: int, error: str) -> None:
        """The poll ``op`` delivered nothing because of ``error``."""
        self.end(op, lambda invoked: [ended(polled(invoked), "fail", error)])

    def invoke_txn(self, process: ProcessId, steps: Sequence[Sending | Polling]) -> int:
        """A client is about to run a transaction of ``steps``; returns its number for :meth:`complete_txn`."""
        return self.begin(self._step_rows(process, steps, 0))

    def extend_txn(self, op: int, steps: Sequence[Sending | Polling]) -> None:
        """The transaction ``op`` is about to run these ``steps``, too, after those before."""
        with self._lock:
            assert op in self._open, f"operation {op} was never invoked or has already completed"
            known = self._open[op]
            rows = self._step_rows(ProcessId(known[0].process), steps, len(known))
            for row in rows:
                row.op = op
            known += rows
            due = self._append(rows)
        if due:
            self._write_part()

    def complete_txn(self, op: int, kind: Completion, answers: Sequence[Answered], error: str | None = None) -> None:
        """The transaction ``op`` ended.

        Args:
            op: what :meth:`invoke_txn` returned.
            kind: ``ok`` when it was committed; ``fail`` only with proof that it never will be; else ``info``.
            answers: by step, the results known when the transaction ended.
            error: the error's name, for ``fail`` and ``info``.
        """

        def rows(invoked: list[Row]) -> list[Row]:
            pairs = zip(invoked, answers, strict=True)
            return [row for step, answer in pairs for row in _answered(step, kind, error, answer)]

        self.end(op, rows)

    def invoke(
        self, process: ProcessId, f: Literal["assign", "subscribe", "auto_commit"],
        partitions: Sequence[TopicPartition], group: str | None = None, *, final: bool = False,
    ) -> int:  # fmt: skip
        """A client is about to be assigned ``partitions`` (empty: not known), to subscribe, or to commit by itself.

        Returns:
            the operation's number for :meth:`complete`.
        """
        bare = Row(self.run, process, -1, "invoke", f, group=group, final=final)
        return self.begin(per_partition(bare, partitions))

    def invoke_commit(
        self, process: ProcessId, group: str, offsets: Mapping[TopicPartition, Offset], generation: int | None = None,
        protocol: GroupProtocol | None = None,
    ) -> int:  # fmt: skip
        """A client is about to commit ``offsets``, the next ones to be read; see :meth:`complete`.

        ``generation``: the one that it is in as a member; None: it is no member. ``protocol``: of its group.
        """
        bare = Row(
            self.run, process, -1, "invoke", "commit", group=group, generation=generation, group_protocol=protocol
        )  # fmt: skip
        rows = per_partition(bare, list(offsets))
        return self.begin([replace(r, offset=o) for r, o in zip(rows, offsets.values(), strict=True)])

    def complete(self, op: int, kind: Completion, error: str | None = None, generation: int | None = None) -> None:
        """The operation ``op`` ended; ``generation``: the one that a committing member is in then."""

        def rows(invoked: list[Row]) -> list[Row]:
            return [replace(ended(row, kind, error, row.offset), generation=generation) for row in invoked]

        self.end(op, rows)

    def invoke_committed(self, process: ProcessId, group: str, partitions: Sequence[TopicPartition]) -> int:
        """A client is about to ask what ``group`` has committed; see :meth:`complete_committed`."""
        bare = Row(self.run, process, -1, "invoke", "committed", group=group)
        return self.begin(per_partition(bare, partitions))

    def complete_committed(
        self, op: int, kind: Completion, offsets: Sequence[Offset | None] | None = None, error: str | None = None
    ) -> None:
        """The request ``op`` was answered with ``offsets``, by partition; None where nothing was committed."""

        def rows(invoked: list[Row]) -> list[Row]:
            known = [None] * len(invoked) if offsets is None else offsets
            return [ended(row, kind, error, offset) for row, offset in zip(invoked, known, strict=True)]

        self.end(op, rows)

    def outputs(self, process: ProcessId, found: Sequence[Output], *, final: bool) -> None:
        """A reader has read what a user's program has put out; ``final``: after the program's end."""
        if not found:
            return
        op = self.begin([Row(self.run, process, -1, "invoke", "output", final=final)])
        with self._lock:
            like = ended(sole("output", self._closing(op)), "ok", None)
        columns = dict(zip(Output._fields, zip(*found, strict=True), strict=True))
        self._record(alike(like, columns, len(found)))

    def invoke_put(self, process: ProcessId, where: TopicPartition, value: int) -> int:
        """A client is about to send a record to the compacted topic, with acks=all; see :meth:`complete_put`."""
        row = Row(self.run, process, -1, "invoke", "put", value=value, acks=-1)
        row.topic, row.partition = where
        return self.begin([row])

    def complete_put(self, op: int, kind: Completion, offset: Offset | None = None, error: str | None = None) -> None:
        """The put ``op`` ended: see :meth:`complete_send`."""
        self.end(op, lambda invoked: [ended(sole("put", invoked), kind, error, offset)])

    def invoke_scan(self, process: ProcessId, where: TopicPartition, end_offset: Offset, *, final: bool) -> int:
        """A client is about to read a compacted log from its beginning to ``end_offset``, exclusive."""
        row = Row(self.run, process, -1, "invoke", "scan", offset=end_offset, final=final)
        row.topic, row.partition = where
        return self.begin([row])

    def complete_scan(self, op: int, records: Sequence[PolledRecord], error: str | None) -> None:
        """The scan ``op`` delivered ``records``; with an ``error`` it did not come to its end."""

        def rows(invoked: list[Row]) -> list[Row]:
            empty = ended(sole("scan", invoked), "ok" if error is None else "info", error)
            return [replace(empty, **record._asdict()) for record in records] or [empty]

        self.end(op, rows)

    def invoke_reached(self, process: ProcessId, group: str | None, partitions: Sequence[TopicPartition]) -> int:
        """A client asks up to where a user's program is done with its input; see :meth:`complete_reached`."""
        bare = Row(self.run, process, -1, "invoke", "reached", group=group)
        return self.begin(per_partition(bare, partitions))

    def complete_reached(self, op: int, offsets: Mapping[TopicPartition, Offset], error: str | None = None) -> None:
        """The answer to ``op``: ``offsets``, 0 where nothing is done; with an ``error`` it is not known."""

        def rows(invoked: list[Row]) -> list[Row]:
            if error is not None:
                return [ended(row, "info", error) for row in invoked]
            return [ended(row, "ok", None, offsets.get(TopicPartition(row.topic or "", row.partition or 0), 0))
                    for row in invoked]  # fmt: skip

        self.end(op, rows)

    def crash(self, process: ProcessId) -> None:
        """A client crashes without leaving its group; its process never returns."""
        op = self.begin([Row(self.run, process, -1, "invoke", "crash")])
        self.end(op, lambda invoked: [ended(row, "info", None) for row in invoked])

    def rebalance(
        self, op: int, change: Change, partitions: Sequence[TopicPartition], generation: int | None = None,
        protocol: GroupProtocol | None = None,
    ) -> None:  # fmt: skip
        """A rebalance during the operation ``op`` assigned or revoked ``partitions``.

        ``generation``: the one that the client is in then; None: it does not say. ``protocol``: of its group.
        """
        named: dict[str, Any] = {"f": change, "generation": generation, "group_protocol": protocol}
        self.note(op, lambda bare: per_partition(replace(bare, **named), partitions))

    def note(self, op: int, rows: Callable[[Row], list[Row]]) -> None:
        """Add rows about what happened during the operation ``op``, made of one that has its columns and no more."""
        with self._lock:
            assert op in self._open, f"operation {op} was never invoked or has already completed"
            first = self._open[op][0]
            bare = Row(self.run, first.process, op, "info", "", txn=first.txn, final=first.final, group=first.group)
            due = self._append(rows(bare))
        if due:
            self._write_part()

    def begin(self, rows: list[Row]) -> int:
        """An operation begins with these invocations; returns its number for :meth:`end`."""
        with self._lock:
            op = self._op
            self._op += 1
            for row in rows:
                row.op = op
            self._open[op] = rows
            due = self._append(rows)
        if due:
            self._write_part()
        return op

    def end(self, op: int, rows: Callable[[list[Row]], list[Row]]) -> None:
        """The operation ``op`` ends with the ``rows`` that are made of its invocations."""
        with self._lock:
            completed = rows(self._closing(op))
            self._count(completed)
            due = self._append(completed)
        if due:
            self._write_part()

    def flush(self) -> None:
        """Write all buffered rows without a ``close`` row, as for an interrupted run."""
        self._write_part()

    def close(self) -> None:
        """Write the ``close`` row and all buffered rows. Idempotent; nothing may be recorded afterwards."""
        with self._lock:
            if not self._closed:
                self._append([Row(self.run, NO_PROCESS, self._op, "ok", "close")])
                self._closed = True
        self._write_part()

    # ------------------------------------------------------------------------------------------------ internals

    def _send_row(self, process: ProcessId, send: Sending) -> Row:
        return Row(
            self.run, process, -1, "invoke", "send", topic=send.topic, partition=send.partition, value=send.value,
            acks=send.acks, timestamp_ms=send.timestamp_ms,
        )  # fmt: skip

    def _step_rows(self, process: ProcessId, steps: Sequence[Sending | Polling], first: int) -> list[Row]:
        """What a transaction is about to do; ``first``: how many steps there are before."""
        rows = [
            self._send_row(process, step) if isinstance(step, Sending) else self._poll_row(process, step)
            for step in steps
        ]
        return [replace(row, txn=True, mop=mop) for mop, row in enumerate(rows, start=first)]

    def _poll_row(self, process: ProcessId, poll: Polling) -> Row:
        return Row(self.run, process, -1, "invoke", "poll", group=poll.group, isolation=poll.isolation)

    def _closing(self, op: int) -> list[Row]:
        assert op in self._open, f"operation {op} was never invoked or has already completed"
        return self._open.pop(op)

    def _record(self, block: Block) -> None:
        with self._lock:
            now = self._now()
            self._buffered.append(placed(block, self._index, now))
            self._index += block.count
            due = self._is_due(now)
        if due:
            self._write_part()

    def _count(self, completed: list[Row]) -> None:
        first = completed[0]
        for row in completed:
            if row.type == "ok" and row.acks == _ALL and row.topic is not None and row.partition is not None:
                self._note_end(TopicPartition(row.topic, row.partition), [row.offset])
        if first.type != "ok":
            self.errors += first.f != "crash"
        elif first.txn:
            self.acknowledged += sum(row.f == "send" for row in completed)
        else:
            self.acknowledged += first.f == "send"

    def _note_end(self, where: TopicPartition, offsets: Iterable[Offset | None]) -> None:
        highest = max((offset for offset in offsets if offset is not None), default=-1)
        if highest >= self.acknowledged_to.get(where, 0):
            self.acknowledged_to[where] = highest + 1

    def _append(self, rows: list[Row]) -> bool:
        """Give ``rows`` their indexes and the time, and buffer them; returns whether a part is due."""
        now = self._now()
        for row in rows:
            row.index, row.time_ns = self._index, now
            self._index += 1
        self._buffered += rows
        return self._is_due(now)

    def _now(self) -> int:
        assert not self._closed, "the history is closed"
        now = self._clock.monotonic_ns()
        if not self._buffered:
            self._since_ns = now
        return now

    def _is_due(self, now: int) -> bool:
        is_full = self._index - self._written >= self._part_rows
        return is_full or now - self._since_ns >= self._part_ns

    def _write_part(self) -> None:
        with self._writing:
            with self._lock:
                buffered, self._buffered = self._buffered, []
                before, self._written = self._written, self._index
            if buffered:
                try:
                    self._write(blocks_of(buffered))
                except BaseException:
                    with self._lock:
                        self._buffered = buffered + self._buffered  # later rows must not be written without them
                        self._written = before
                    raise

    def _write(self, blocks: Sequence[Block]) -> None:
        write_file(HISTORY, self._directory / f"part-{self._part:05d}.parquet", blocks)
        self._part += 1


def _delivered(row: Row, kind: Completion, error: str | None, records: Sequence[PolledRecord]) -> list[Row]:
    empty = ended(row, kind, error)
    return [replace(empty, **record._asdict()) for record in records] or [empty]


def _answered(row: Row, kind: Completion, error: str | None, answer: Answered) -> list[Row]:
    if row.f == "send":
        assert answer is None or isinstance(answer, int), f"step {row.mop} of operation {row.op} is a send"
        return [ended(row, kind, error, answer)]
    assert not isinstance(answer, int), f"step {row.mop} of operation {row.op} is a poll"
    return _delivered(row, kind, error, answer or ())
