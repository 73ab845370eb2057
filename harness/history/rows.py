"""Rows of the history as they are buffered: one by one, or many together that share most of their columns.

A row object for each of tens of thousands of records a second would take most of the harness's time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from harness.history.schema import HISTORY
from harness.history.sends import Answer, Sends

NAMES = tuple(c.name for c in HISTORY.columns)


@dataclass(slots=True)
class Row:
    """A row of ``HISTORY``, with the table's names of columns; it gets index and time when it is buffered."""

    run: str
    process: int
    op: int
    type: str
    f: str
    index: int = -1
    time_ns: int = -1
    txn: bool = False
    mop: int = 0
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    value: int | None = None
    leader_epoch: int | None = None
    acks: int | None = None
    error: str | None = None
    final: bool = False
    intact: bool | None = None
    group: str | None = None
    isolation: str | None = None
    timestamp_ms: int | None = None
    current_leader_epoch: int | None = None


_values = attrgetter(*NAMES)


@dataclass(slots=True)
class Rows:
    """Consecutive rows of ``HISTORY``; they get indexes and a time when they are buffered.

    Attributes:
        like: has the columns that are the same in every row.
        columns: the others, a value for each row.
        index: of the first row.
    """

    like: Row
    columns: Mapping[str, Sequence[Any]]
    count: int
    index: int = -1
    time_ns: int = -1

    def values(self) -> list[Sequence[Any]]:
        """A list for each column."""
        places = range(self.index, self.index + self.count)
        known = {**self.columns, "index": places, "time_ns": [self.time_ns] * self.count}
        same = zip(NAMES, _values(self.like), strict=True)
        return [known[name] if name in known else [value] * self.count for name, value in same]


def rows_of(run: str, sends: Sends, which: Sequence[int], answers: Sequence[Answer] | None) -> Rows:
    """The invocations of those of ``sends`` that ``which`` numbers; with ``answers``, their completions."""
    like = Row(run, sends.processes[0], sends.first_op, "invoke", "send", acks=sends.acks)
    like.topic, like.partition = sends.partition
    columns: dict[str, Sequence[Any]] = {
        "value": [sends.values[place] for place in which],
        "timestamp_ms": [sends.timestamps_ms[place] for place in which],
    }
    if sends.are_one:
        columns["mop"] = which
    else:
        columns["process"] = [sends.processes[place] for place in which]
        columns["op"] = [sends.first_op + place for place in which]
    if answers is not None:
        columns["type"], columns["offset"], columns["error"] = zip(*answers, strict=True)
    return Rows(like, columns, len(which))


def columns_of(buffered: Sequence[Row | Rows]) -> list[list[Any]]:
    """What is buffered, as one list for each column of ``HISTORY``."""
    columns: list[list[Any]] = [[] for _ in NAMES]
    for _, of_one_type in groupby(buffered, type):
        rows = list(of_one_type)
        many = [one.values() for one in rows if isinstance(one, Rows)]
        for part in many or [list(zip(*map(_values, rows), strict=True))]:
            for column, values in zip(columns, part, strict=True):
                column.extend(values)
    return columns
