"""``seawall export jepsen``: converts a run directory into a history that Jepsen's own checker accepts.

The export avoids what that checker cannot read, without changing what it has to decide:

* A partition is a key; offsets become ranks, since only their order matters and gaps cost it memory.
* Polls omit keys without records, and records that no client sent or that are not intact: the checker throws on both.
  They are counted.
* A process has one operation open at a time: a client that has several is several processes. After an operation that
  ended ``info`` a process does not return.
* An operation without completion ends ``info``: the checker throws where it finds a polled record of a send without an
  end.
* A process of the final read is first assigned everything from the beginning.
* The history ends with a poll.

Jepsen's format has no isolation level, and its checker reports a polled record of an aborted or open transaction. So
the export refuses a run in which a read_uncommitted consumer was given such a record, which is permitted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from harness.errors import EnvironmentFault, UsageError
from harness.history.run_directory import RunDirectory
from harness.history.schema import REBALANCES, TABLES
from harness.history.table_file import read_files
from harness.jepsen.edn import vector, written

Row = Mapping[str, Any]
Place = tuple[str, int]

_STEPS = ("send", "poll")
_MOVES = ("assign", "subscribe")


class Exported(NamedTuple):
    """The numbers of operations, and of deliveries left out because no client sent the record intact."""

    operations: int
    left_out: int


def export_history(directory: RunDirectory, out: Path) -> Exported:
    """Write the client history of ``directory`` to the file ``out``.

    Raises:
        InvalidRun: the history cannot be read.
        TooManyRows: it has more rows than the limit for memory.
        UsageError: a read_uncommitted consumer was given a record that Jepsen's checker would report.
        EnvironmentFault: ``out`` cannot be written.
    """
    directory.manifest()
    known = _Known(_rows(directory))
    _refuse_uncommitted(directory, known)
    try:
        with out.open("w") as file:
            export = _Export(known, file)
            for rows in _groups(_rows(directory)):
                export.take(rows)
            export.end()
    except OSError as error:
        raise EnvironmentFault(f"{out} cannot be written: {error.strerror}.") from error
    return Exported(export.operations, export.left_out)


def _rows(directory: RunDirectory) -> Iterator[Row]:
    for row in read_files(TABLES["history"], directory.table_files("history")):
        yield _alone(row) if row["f"] == "send" and not row["txn"] else row


def _alone(row: Row) -> Row:
    """A send of a burst as an operation of its own: Jepsen's operations end at once. A burst has a number for each."""
    return {**row, "op": row["op"] + row["mop"], "mop": 0}


def _groups(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The rows of each invocation, of each completion, and of each rebalance."""
    for _, group in groupby(rows, key=lambda row: (row["op"], row["type"], row["f"] in REBALANCES)):
        yield list(group)


class _Open(NamedTuple):
    """An open operation: Jepsen's process, and the value of its invocation."""

    process: int
    f: str
    value: str


class _Known:
    """What the export needs of the whole history before it writes any of it.

    Attributes:
        keys: the number of each partition: its own, when there is one topic only.
        ranks: by partition, the rank of every offset.
        sent: every sent value, by partition.
        uncommitted: a poll of a read_uncommitted consumer with a record of a transaction that is not known to be
            committed, or, within a transaction itself, of any; None: there is none.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        offsets: dict[Place, set[int]] = defaultdict(set)
        self.sent: set[tuple[Place, int]] = set()
        transactions = _Transactions()
        for row in rows:
            if row["topic"] is None:
                continue
            transactions.take(row)
            place = (row["topic"], row["partition"])
            found = offsets[place]
            if row["f"] in _STEPS and row["offset"] is not None:
                found.add(row["offset"])
            if row["f"] == "send":
                self.sent.add((place, row["value"]))
        one_topic = len({topic for topic, _ in offsets}) == 1
        self.keys = {place: place[1] if one_topic else n for n, place in enumerate(sorted(offsets))}
        self.uncommitted = transactions.uncommitted()
        self.ranks = {place: {o: rank for rank, o in enumerate(sorted(found))} for place, found in offsets.items()}


class _Transactions:
    """The values that transactions have sent, and which of them read_uncommitted consumers were given."""

    def __init__(self) -> None:
        self._senders: dict[tuple[Place, int], int] = {}
        self._committed: set[int] = set()
        self._given: dict[tuple[Place, int], Row] = {}

    def take(self, row: Row) -> None:
        """A row about a partition."""
        record = ((row["topic"], row["partition"]), row["value"])
        if row["f"] == "send" and row["txn"]:
            self._senders[record] = row["op"]
            if row["type"] == "ok":
                self._committed.add(row["op"])
        elif row["f"] == "poll" and row["isolation"] == "read_uncommitted" and row["type"] != "invoke":
            known = self._given.get(record)
            if known is None or row["txn"]:
                self._given[record] = row

    def uncommitted(self) -> Row | None:
        """The first delivery that Jepsen's checker would report although it is permitted; None: there is none."""
        for record, row in self._given.items():
            sender = self._senders.get(record)
            if sender is not None and (row["txn"] or sender not in self._committed):
                return row
        return None


def _refuse_uncommitted(directory: RunDirectory, known: _Known) -> None:
    row = known.uncommitted
    if row is None:
        return
    what = f"value {row['value']} of {row['topic']}-{row['partition']}"
    raise UsageError(
        f"{directory.path} is no history for Jepsen: process {row['process']} reads uncommitted records and was given "
        f"{what}, of a transaction, which Jepsen's checker would report although it is permitted.",
        "Export a run whose consumers read committed records only (isolation: read_committed).",
    )


class _Export:
    """Writes a history, operation by operation."""

    def __init__(self, known: _Known, file: TextIO) -> None:
        self._known = known
        self._file = file
        self._index = 0
        self._time = 0
        self._first_ns: int | None = None
        self._processes = 0
        self._idle: dict[int, list[int]] = defaultdict(list)
        self._busy: dict[int, _Open] = {}
        self._rebalances: dict[int, list[str]] = defaultdict(list)
        self._final: set[int] = set()
        self._last = ""
        self.operations = 0
        self.left_out = 0

    def take(self, rows: Sequence[Row]) -> None:
        """The rows of an invocation, of a completion or of a rebalance."""
        first = rows[0]
        self._first_ns = first["time_ns"] if self._first_ns is None else self._first_ns
        self._time = first["time_ns"] - self._first_ns
        if first["f"] in REBALANCES:
            for change, moved in groupby(rows, key=lambda row: row["f"]):
                keys = vector([self._key(row) for row in moved])
                self._rebalances[first["op"]].append(f"{{:type :{change}, :keys {keys}}}")
        elif first["f"] in (*_STEPS, *_MOVES, "crash"):
            if first["type"] == "invoke":
                self._invoke(rows)
            elif first["op"] in self._busy:
                self._complete(rows)

    def end(self) -> None:
        """Complete open operations, and end the history with a poll."""
        for op, open_ in self._busy.items():
            self._line("info", str(open_.process), open_.f, open_.value, **self._rebalanced(op))
        if self._last != "poll":
            process = str(self._fresh())
            self._line("invoke", process, "poll", "[[:poll]]")
            self._line("ok", process, "poll", "[[:poll {}]]")

    def _invoke(self, rows: Sequence[Row]) -> None:
        first = rows[0]
        ours = first["process"]
        begins = first["final"] and first["f"] == "poll" and ours not in self._final
        process = self._idle[ours].pop() if self._idle[ours] else self._fresh()
        self._final |= {ours} if first["final"] else set()
        if begins:
            every = vector(sorted(self._known.keys.values()))
            for kind in ("invoke", "ok"):
                self._line(kind, str(process), "assign", every, **{"seek-to-beginning?": "true"})
        open_ = self._busy[first["op"]] = _Open(process, _f(rows), self._value(rows))
        self.operations += 1
        seek = {"seek-to-beginning?": "true"} if first["f"] == "assign" and first["final"] else {}
        self._line("invoke", str(process), open_.f, open_.value, **seek)

    def _complete(self, rows: Sequence[Row]) -> None:
        first = rows[0]
        process = self._busy.pop(first["op"]).process
        if first["type"] != "info":
            self._idle[first["process"]].append(process)
        extra = {} if first["error"] is None else {"error": _quoted(first["error"])}
        extra |= self._rebalanced(first["op"])
        if first["f"] == "assign" and first["final"]:
            extra["seek-to-beginning?"] = "true"
        self._line(first["type"], str(process), _f(rows), self._value(rows), **extra)

    def _rebalanced(self, op: int) -> dict[str, str]:
        log = self._rebalances.pop(op, None)
        return {"rebalance-log": vector(log)} if log else {}

    def _fresh(self) -> int:
        self._processes += 1
        return self._processes - 1

    def _line(self, kind: str, process: str, f: str, value: str, **extra: str) -> None:
        fields = {"index": str(self._index), "time": str(self._time), "type": f":{kind}", "process": process}
        self._file.write(written({**fields, "f": f":{f}", "value": value, **extra}))
        self._index += 1
        self._last = f

    # ------------------------------------------------------------------------------------------------------- values

    def _value(self, rows: Sequence[Row]) -> str:
        if rows[0]["f"] == "crash":
            return "nil"
        if rows[0]["f"] in _MOVES:
            return vector([self._key(row) for row in rows if row["topic"] is not None])
        steps = groupby(rows, key=lambda row: row["mop"])
        return vector([self._step(list(step)) for _, step in steps])

    def _step(self, rows: Sequence[Row]) -> str:
        first = rows[0]
        if first["f"] == "poll":
            return "[:poll]" if first["type"] == "invoke" else f"[:poll {self._records(rows)}]"
        value = first["value"]
        if first["type"] == "ok" or first["offset"] is not None:
            value = vector(["nil" if first["offset"] is None else self._rank(first), value])
        return vector([":send", self._key(first), value])

    def _records(self, rows: Sequence[Row]) -> str:
        found: dict[int, list[str]] = defaultdict(list)
        for row in rows:
            if row["topic"] is None:
                continue
            place = (row["topic"], row["partition"])
            if row["intact"] is False or (place, row["value"]) not in self._known.sent:
                self.left_out += 1
            else:
                found[self._key(row)].append(vector([self._rank(row), row["value"]]))
        return "{" + ", ".join(f"{key} {vector(records)}" for key, records in found.items()) + "}"

    def _key(self, row: Row) -> int:
        return self._known.keys[row["topic"], row["partition"]]

    def _rank(self, row: Row) -> int:
        return self._known.ranks[row["topic"], row["partition"]][row["offset"]]


def _f(rows: Sequence[Row]) -> str:
    return "txn" if rows[0]["txn"] else str(rows[0]["f"])


def _quoted(error: str) -> str:
    """The error as it was imported, or as a string."""
    if error.startswith((":", "[", '"')):
        return error
    return '"' + error.replace("\\", "\\\\").replace('"', '\\"') + '"'
