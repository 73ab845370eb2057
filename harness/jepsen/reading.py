"""``seawall import jepsen``: converts a Jepsen Kafka history into a run directory.

Key k becomes partition k of the topic ``jepsen``. The import reads line by line and writes a part at a time, so memory
does not depend on the size of the file.

**Processes.** Every client is a process of its own, and is never used again. Jepsen gives a thread a new number after
an operation that ended ``info``, a crash among them; an assign that starts from the beginning makes a new one too,
since the consumer loses its position.

**The final read.** Jepsen does not mark one, but its generator ends with one: fresh consumers are assigned every key
from the beginning, and poll until they have seen every record that any consumer has seen. So polls count as final when
their process was assigned from the beginning after the last invocation of a send, transaction or subscribe, and after
the last acknowledgement: a record may have been stored as late as it was acknowledged. Completions that are ``fail`` or
``info`` may come later. Without such polls the run has no final read, and what was never read is ``unseen``.

**Operations.** A completion has the same micro-operations as its invocation, and the same keys and values in its sends;
it adds the polled records, and offsets. Anything else is refused, and so is a number out of the range of partitions,
offsets or values. Jepsen's workload sends no value to a key twice; the import refuses one that does, for a polled
record must identify its send.

**What is missing.** There is no evidence from brokers: no timeline, no replicas' logs, no faults. The checker skips the
questions about them; see ``Expected.brokers`` in :mod:`checkers.views.expected`. The import counts operations of the
nemesis and of the admin client and ignores them otherwise.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from os import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from harness import documents
from harness.documents import Unfit
from harness.errors import InvalidRun
from harness.history.arrow import write_file
from harness.history.blocks import Block
from harness.history.run_directory import Manifest, RunDirectory
from harness.history.schema import HISTORY, MOST_OFFSET
from harness.jepsen.edn import Line, keys, micro_operations, read_line, rebalances
from harness.jepsen.sent_values import SentValues
from harness.validation import shortened

TOPIC = "jepsen"
"""The topic of every imported partition."""

PART_ROWS = 100_000
"""Rows per part of the history."""

MOST_LINE_BYTES = 8 << 20
"""The greatest size of a line of a history."""

_BLOCK_BYTES = 1 << 20
_IGNORED = frozenset({"debug-topic-partitions"})
_CLIENT = frozenset({"send", "poll", "txn", "assign", "subscribe", "crash"})
_COMPLETIONS = frozenset({"ok", "fail", "info"})
_BEFORE_THE_END = {"invoke": ("send", "txn", "subscribe"), "ok": ("send", "txn")}
"""By type, the operations that no final read precedes."""

_MOST_PARTITION, _MOST = 2**31 - 1, 2**63 - 1

_MEND = "Mend the line, or what writes it: what is read is what Jepsen's Kafka workload (jepsen.tests.kafka) writes."
_WHOLE = "A part of a history proves nothing: import the file as Jepsen wrote it, whole and in order."
_ONCE = "Let the workload draw a new value for every send: a poll could not be matched with one of the two sends."
_RETIRE = "Give its thread a new process, as Jepsen does: an operation that ended :info may still take effect later."
_EMPTY = "Import the history.edn of a Jepsen Kafka test."


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The settings that a history does not contain; the defaults promise the most.

    Attributes:
        acks: of the producers: -1 (all), 1 or 0.
        isolation: of the consumers.
        idempotent_producers, unclean_election, retention: as in ``run.json``'s guarantees.
    """

    acks: int = -1
    isolation: str = "read_committed"
    idempotent_producers: bool = True
    unclean_election: bool = False
    retention: bool = False


class Imported(NamedTuple):
    """The numbers of client operations, rows and ignored operations, and whether there is a final read."""

    operations: int
    rows: int
    ignored: int
    final_read: bool


_Step = tuple[str, int, int] | tuple[str]
"""A micro-operation: a send with its key and value, or a poll."""


class _Open(NamedTuple):
    """An operation under way: its number, our process, the line of its invocation, and its micro-operations."""

    op: int
    process: int
    line: int
    f: str
    final: bool
    about: tuple[_Step, ...] = ()


def import_history(path: Path, out: Path, assumptions: Assumptions) -> Imported:
    """Read the history ``path`` into the new run directory ``out``.

    Raises:
        InvalidRun: the history cannot be read, has a gap, is truncated, or is no Kafka history; names the file and the
            line.
        EnvironmentFault: the run directory cannot be written.
    """
    try:
        end_phase = _end_phase(path)
    except (OSError, Unfit) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidRun(f"{path} cannot be read: {reason}.", _EMPTY) from error
    guarantees = {name: value for name, value in asdict(assumptions).items() if name not in ("acks", "isolation")}
    configuration = {"imported": {"from": "jepsen", "acks": assumptions.acks, "isolation": assumptions.isolation}}
    directory = RunDirectory.create(
        out,
        Manifest(
            out.name, "jepsen", 0, datetime.now(UTC).isoformat(), configuration=configuration, guarantees=guarantees
        ),
    )
    try:
        rows = _Rows(directory, assumptions)
        history = _Import(rows, end_phase)
        history.read(path)
        rows.close()
    except BaseException:
        shutil.rmtree(out)
        raise
    for table in ("timeline", "replica_logs", "faults"):
        directory.write_table(table, [])
    directory.finish("complete", rows.time_ns / 1e9)
    return Imported(history.operations, rows.written, history.ignored, history.read_finally)


def _end_phase(path: Path) -> int:
    """The position, in bytes, of the last line that no final read precedes; -1 for none.

    It searches from the end, so that it reads only the final phase twice.
    """
    with documents.opened(path) as file:
        if not file.seek(0, SEEK_END):
            raise InvalidRun(f"{path} is empty.", _EMPTY)
        return next((at for at, line in _lines_from_the_end(file) if _is_before_the_end(line)), -1)


def _lines_from_the_end(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Each line with its position in bytes, from the last to a line that is too long."""
    at, rest = file.seek(0, SEEK_END), b""
    while at > 0:
        size = min(at, _BLOCK_BYTES)
        at = file.seek(at - size)
        first, *lines = (file.read(size) + rest).split(b"\n")
        begin = at + len(first) + sum(len(line) + 1 for line in lines)
        for line in reversed(lines):
            begin -= len(line)
            yield begin, line
            begin -= 1
        rest = first
        if len(rest) > MOST_LINE_BYTES:
            return
    yield 0, rest


def _is_before_the_end(raw: bytes) -> bool:
    if not any(name.encode() in raw for name in _BEFORE_THE_END["invoke"]):
        return False
    try:
        line = read_line(raw.decode(errors="replace"), 0)
        return line.f in _BEFORE_THE_END.get(line.type, ())
    except InvalidRun:
        return False  # reading from the beginning reports the line


class _Rows:
    """The rows of the history, written a part at a time."""

    def __init__(self, directory: RunDirectory, assumptions: Assumptions) -> None:
        self._run = directory.manifest().run
        self._directory = directory.path / HISTORY.path
        self._assumptions = assumptions
        self._rows: list[tuple[Any, ...]] = []
        self._part = 0
        self.written = 0
        self.time_ns = 0

    def add(
        self, op: _Open, kind: str, f: str, place: tuple[int, int | None, int | None] | None = None,
        *, txn: bool = False, mop: int = 0, error: str | None = None,
    ) -> None:  # fmt: skip
        """One row; ``place`` is partition, offset and value."""
        self._rows.append((self.time_ns, op.process, op.op, txn, mop, kind, f, *(place or _NOWHERE), error, op.final))

    def flush(self, least: int) -> None:
        """Write the rows, if there are at least so many."""
        rows, number = self._rows, len(self._rows)
        if number < least:
            return
        times, processes, ops, txns, mops, types, fs, partitions, offsets, values, errors, finals = zip(
            *rows, strict=True
        )
        sends, polls = [f == "send" for f in fs], [f == "poll" for f in fs]
        columns: dict[str, Any] = {
            "run": [self._run] * number,
            "index": range(self.written, self.written + number),
            "time_ns": times, "process": processes, "op": ops, "txn": txns, "mop": mops, "type": types, "f": fs,
            "topic": [None if partition is None else TOPIC for partition in partitions],
            "partition": partitions, "offset": offsets, "value": values, "error": errors, "final": finals,
            "acks": [self._assumptions.acks if send else None for send in sends],
            "isolation": [self._assumptions.isolation if poll else None for poll in polls],
            # Jepsen's client has decoded the records, and writes no hashes.
            "intact": [
                True if poll and kind != "invoke" and partition is not None else None
                for poll, kind, partition in zip(polls, types, partitions, strict=True)
            ],
        }  # fmt: skip
        path = self._directory / f"part-{self._part:05d}.parquet"
        write_file(HISTORY, path, [Block({}, columns, number)])
        self._rows, self._part, self.written = [], self._part + 1, self.written + number

    def close(self) -> None:
        """Write the ``close`` row and everything that is left."""
        self.add(_Open(-1, -1, 0, "close", False), "ok", "close")
        self.flush(1)


_NOWHERE = (None, None, None)


class _Import:
    """Reads a history, one line after the other."""

    def __init__(self, rows: _Rows, end_phase: int) -> None:
        self._rows = rows
        self._end_phase = end_phase
        self._next_index = 0
        self._processes: dict[str, int] = {}
        self._retired: dict[str, int] = {}
        self._sent_values = SentValues()
        self._lives = 0
        self._final: set[int] = set()
        self._polled: set[int] = set()
        self._open: dict[str, _Open] = {}
        self.operations = 0
        self.ignored = 0
        self.read_finally = False

    def read(self, path: Path) -> None:
        """Read it all."""
        lines = 0
        try:
            for line, at in _lines(path):
                self._take(line, late=at > self._end_phase)
                self._rows.flush(PART_ROWS)
                lines += 1
        except InvalidRun as error:
            raise InvalidRun(f"{path}, {error.sentence}", error.remedy or _MEND) from error
        if not lines:
            raise InvalidRun(f"{path} has only blank lines.", _EMPTY)

    def _take(self, line: Line, *, late: bool) -> None:
        self._count(line)
        if not line.process.lstrip("-").isdigit() or line.f in _IGNORED:
            self.ignored += line.type == "invoke" or line.f not in _IGNORED
            return
        if line.f not in _CLIENT:
            raise InvalidRun(f"line {line.number}: :f :{line.f} is no operation of a Kafka history.")
        if line.type == "invoke":
            self._invoke(line, late=late)
        elif line.type in _COMPLETIONS:
            self._complete(line)
        else:
            raise InvalidRun(f"line {line.number}: :type :{line.type} is none of invoke, ok, fail and info.")

    def _count(self, line: Line) -> None:
        """Check that the index rises, if there is one. A time that falls counts as the one before."""
        if line.position is not None:
            if line.position > self._next_index:
                gap = f"{self._next_index} to {line.position - 1}"
                raise InvalidRun(f"line {line.number}: the history has a gap: operations {gap} are missing.", _WHOLE)
            if line.position < self._next_index:
                raise InvalidRun(f"line {line.number}: :index {line.position} is there twice, or out of order.", _WHOLE)
            self._next_index += 1
        time_ns = line.number if line.time is None else _number(line, "time", line.time, _MOST)
        self._rows.time_ns = max(self._rows.time_ns, time_ns)

    # ------------------------------------------------------------------------------------------------- invocations

    def _invoke(self, line: Line, *, late: bool) -> None:
        if line.process in self._open:
            open_line = self._open[line.process].line
            raise InvalidRun(
                f"line {line.number}: process {line.process} begins an operation before that of line {open_line} ends."
            )
        process = self._process(line, late=late)
        op = _Open(self.operations, process, line.number, line.f, process in self._final)
        self.operations += 1
        self._open[line.process] = op
        if line.f in ("send", "poll", "txn"):
            self._open[line.process] = op._replace(about=self._steps(line, op))
        elif line.f == "crash":
            self._rows.add(op, "invoke", "crash")
        else:
            self._assigned(line, op)

    def _process(self, line: Line, *, late: bool) -> int:
        """Our process for the line's; a new one when it is new, or starts over."""
        if line.process in self._retired:
            ended = f"goes on after its operation that line {self._retired[line.process]} ended :info"
            raise InvalidRun(f"line {line.number}: process {line.process} {ended}.", _RETIRE)
        known = self._processes.get(line.process)
        if known is None or (line.f == "assign" and line.seeks):
            known = self._processes[line.process] = self._lives
            self._lives += 1
            if late and line.f == "assign" and line.seeks:
                self._final.add(known)
        elif line.f in ("assign", "subscribe"):
            self._final.discard(known)  # it may drop some of its partitions
        return known

    # ------------------------------------------------------------------------------------------------- completions

    def _complete(self, line: Line) -> None:
        op = self._open.pop(line.process, None)
        if op is None:
            begun = f"an operation of process {line.process} that never began"
            raise InvalidRun(f"line {line.number} completes {begun}.", _WHOLE)
        if line.type == "info":
            self._processes.pop(line.process)
            self._retired[line.process] = line.number
        if op.f != line.f:
            raise InvalidRun(f"line {line.number} is a {line.f}, and completes the {op.f} of line {op.line}.")
        for change, moved in rebalances(line):
            for key in moved:
                self._rows.add(op, "info", change, (_partition(line, key), None, None), txn=line.f == "txn")
        match line.f:
            case "crash":
                self._rows.add(op, line.type, "crash", error=line.error)
            case "assign" | "subscribe":
                self._assigned(line, op)
            case _:
                _require_same(line, op, self._steps(line, op))
                self.read_finally |= op.final and line.f == "poll" and line.type == "ok"

    def _assigned(self, line: Line, op: _Open) -> None:
        named = keys(line)
        for key in named:
            self._rows.add(op, line.type, line.f, (_partition(line, key), None, None), error=line.error)
        if not named:
            self._rows.add(op, line.type, line.f, error=line.error)

    def _steps(self, line: Line, op: _Open) -> tuple[_Step, ...]:
        """Write the rows of a line; returns its micro-operations."""
        steps = micro_operations(line)
        txn = line.f == "txn" or len(steps) > 1
        return tuple(self._step(line, op, step, txn=txn, mop=mop) for mop, step in enumerate(steps))

    def _step(self, line: Line, op: _Open, step: list[Any], *, txn: bool, mop: int) -> _Step:
        match step:
            case ["send", int(key), int(value)]:
                return self._sent(line, op, (key, None, value), txn=txn, mop=mop)
            case ["send", int(key), [int() | None as offset, int(value)]]:
                known = None if line.type == "invoke" else offset
                return self._sent(line, op, (key, known, value), txn=txn, mop=mop)
            case ["poll"] | ["poll", None]:
                self._row(line, op, "poll", None, txn=txn, mop=mop)
            case ["poll", [*polled]]:
                found = list(_polled(line, polled)) if line.type != "invoke" else []
                for place in found or (None,):
                    self._row(line, op, "poll", place, txn=txn, mop=mop)
            case _:
                raise InvalidRun(f"line {line.number}: {shortened(step)} is neither a send nor a poll.")
        return ("poll",)

    def _sent(self, line: Line, op: _Open, what: tuple[int, int | None, int], *, txn: bool, mop: int) -> _Step:
        key, offset, value = what
        _partition(line, key)
        if offset is not None:
            _number(line, "offset", offset, MOST_OFFSET)
        _number(line, "value", value, _MOST, least=-_MOST)
        if line.type == "invoke" and not self._sent_values.add(key, value):
            raise InvalidRun(
                f"line {line.number} sends value {value} to key {key}, which was sent there before.", _ONCE
            )
        self._row(line, op, "send", what, txn=txn, mop=mop)
        return "send", key, value

    def _row(
        self, line: Line, op: _Open, f: str, place: tuple[int, int | None, int | None] | None, *, txn: bool, mop: int
    ) -> None:
        self._rows.add(op, line.type, f, place, txn=txn, mop=mop, error=line.error)


def _lines(path: Path) -> Iterator[tuple[Line, int]]:
    """Every line that is not blank, with its position in bytes."""
    at = number = 0
    with documents.opened(path) as file:
        while raw := file.readline(MOST_LINE_BYTES + 1):
            number += 1
            if len(raw) > MOST_LINE_BYTES:
                raise InvalidRun(f"line {number} has more than {MOST_LINE_BYTES:,} bytes.")
            if raw.strip():
                yield read_line(raw.decode(errors="replace"), number), at
            at += len(raw)


def _polled(line: Line, polled: list[Any]) -> Iterator[tuple[int, int, int]]:
    """Partition, offset and value of everything that a poll delivered."""
    if len(polled) % 2:
        raise InvalidRun(f"line {line.number}: a poll has {shortened(polled[-1])} without its records.")
    for key, records in zip(polled[::2], polled[1::2], strict=True):
        if not isinstance(records, list):
            raise InvalidRun(f"line {line.number}: {shortened(records)} is no list of records.")
        for record in records:
            match record:
                case [int(offset), int(value)]:
                    _number(line, "offset", offset, MOST_OFFSET)
                    yield _partition(line, key), offset, _number(line, "value", value, _MOST, least=-_MOST)
                case _:
                    raise InvalidRun(f"line {line.number}: {shortened(record)} is no record with its offset.")


def _require_same(line: Line, op: _Open, about: tuple[_Step, ...]) -> None:
    """Check that a completion has the micro-operations of its invocation."""
    if about == op.about:
        return
    if len(about) != len(op.about):
        ours, whose = f"{len(about)} micro-operations", f"line {op.line}, which has {len(op.about)}"
        raise InvalidRun(f"line {line.number} has {ours}, and completes {whose}.")
    mine, theirs = next(pair for pair in zip(about, op.about, strict=True) if pair[0] != pair[1])
    raise InvalidRun(
        f"line {line.number} says {_text(mine)}, and completes line {op.line}, which says {_text(theirs)}."
    )


def _text(step: _Step) -> str:
    return f"[:{' '.join(map(str, step))}]"


def _partition(line: Line, key: Any) -> int:
    return _number(line, "key", key, _MOST_PARTITION)


def _number(line: Line, what: str, number: Any, most: int, least: int = 0) -> int:
    """``number``, if it is one that a ``what`` may be."""
    if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most:
        raise InvalidRun(f"line {line.number}: {what} {shortened(number)} is no number from {least} to {most}.")
    return number
