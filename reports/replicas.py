"""Replica logs side by side around an offset: its acknowledgements, what each disk holds, and what was read last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from reports.naming import Names
from reports.rows import ACKNOWLEDGED, LogEntry, State
from reports.run import PartitionRows, Run

_CONTEXT: Final = 3
"""How many offsets are shown before and after the place."""
_WIDEST: Final = 12
"""How many offsets a table shows; of a longer range, its two ends."""


Content = tuple[int, int | None] | None
"""A record's leader epoch and value; None where there is no record."""


class Marks(NamedTuple):
    """A replica's last high watermark and the end of its log on disk, both exclusive; None where not known.

    ``checkpointed``: the watermark was read from the disk, where it may lag behind the broker's own.
    """

    high_watermark: int | None
    log_end_offset: int | None
    checkpointed: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """The content of a log at an offset.

    Attributes:
        odd: whether it differs from what most replicas hold there.
        beyond: whether the offset is at or above the replica's own high watermark.
        edge: whether it is the last one below: the watermark's line is drawn after it.
        title: what stands behind a short name.
    """

    words: str
    odd: bool = False
    beyond: bool = False
    edge: bool = False
    title: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: a broker's log, or what clients saw. ``marks`` are its watermark and log end in words."""

    name: str
    cells: Sequence[Cell]
    marks: str


@dataclass(frozen=True, slots=True)
class LogTable:
    """Logs side by side.

    Attributes:
        offsets: the columns; None where offsets are left out.
        accused: those of them that are in question.
        clients: what was acknowledged; ``final_read``: what was read last. None: the history is not in the report.
    """

    offsets: Sequence[int | None]
    accused: Sequence[int]
    clients: Row | None
    replicas: Sequence[Row]
    final_read: Row | None


def table(run: Run, rows: PartitionRows, offset: int, end_offset: int) -> LogTable:
    """The logs around ``offset..end_offset`` (exclusive)."""
    columns = _columns(offset, end_offset)
    low, high = columns[0] or 0, (columns[-1] or 0) + 1
    entries = run.log(rows.partition, low, high)
    by_offset = {o: [e for e in entries if e.offset == o] for o in columns if o is not None}
    usual = {o: _usual(found) for o, found in by_offset.items()}
    ends = run.log_ends(rows.partition)
    lasts = {b: states[-1] for b, states in rows.states.items() if states}
    acknowledged = _values_at([(s.offset, s.value) for s in rows.sends if s.type == ACKNOWLEDGED])
    told = "history" not in run.left_out
    read = _values_at([(p.offset, p.value) for p in run.polls(rows.partition, low, high) if p.final])
    return LogTable(
        columns,
        [o for o in by_offset if offset <= o < end_offset],
        _plain("acknowledged", columns, acknowledged, run.names) if told else None,
        [_replica(f"broker {node}", _marks(lasts.get(node), ends.get(node)),
                  partial(_cells, columns, [e for e in entries if e.node == node], usual, run.names))
         for node in run.brokers if node in ends or node in lasts],
        _plain("final read", columns, read, run.names) if told else None,
    )  # fmt: skip


def _columns(offset: int, end_offset: int) -> Sequence[int | None]:
    low = max(0, offset - _CONTEXT)
    high = max(low, end_offset) + _CONTEXT  # a broken log's offset may be below 0
    if high - low <= _WIDEST:
        return range(low, high)
    half = _WIDEST // 2
    return [*range(low, low + half), None, *range(high - half, high)]


def _usual(entries: Sequence[LogEntry]) -> Content:
    """What most replicas hold; the lowest broker's where they are evenly divided."""
    contents = Counter((e.leader_epoch, e.value) for e in sorted(entries, key=lambda e: e.node))
    return contents.most_common(1)[0][0] if contents else None


def _replica(name: str, marks: Marks, cells: Callable[[int | None], Sequence[Cell]]) -> Row:
    known = "unknown" if marks.high_watermark is None else f"{marks.high_watermark:,}"
    end = "no record on disk" if marks.log_end_offset is None else f"log end {marks.log_end_offset:,}"
    where = " in its checkpoint" if marks.checkpointed else ""
    return Row(name, cells(marks.high_watermark), f"hw {known}{where}, {end}")


def _cells(
    columns: Sequence[int | None],
    entries: Sequence[LogEntry],
    usual: Mapping[int, Content],
    names: Names,
    mark: int | None,
) -> Sequence[Cell]:
    here = {e.offset: e for e in entries}
    return [Cell("…") if o is None else _cell(o, here.get(o), mark, usual[o], names) for o in columns]


def _marks(last: State | None, log_end_offset: int | None) -> Marks:
    if last is None:
        return Marks(None, log_end_offset)
    return Marks(last.high_watermark, log_end_offset, last.source == "disk")


def _cell(offset: int, entry: LogEntry | None, mark: int | None, usual: Content, names: Names) -> Cell:
    beyond = mark is not None and offset >= mark
    edge = mark is not None and offset == mark - 1
    if entry is None:
        return Cell("-", odd=usual is not None, beyond=beyond, edge=edge)
    value = "foreign" if entry.value is None else names.short(entry.value)
    damaged = "" if entry.intact else " CORRUPT"
    odd = (entry.leader_epoch, entry.value) != usual or not entry.intact
    return Cell(f"{value}@e{entry.leader_epoch}{damaged}", odd, beyond, edge, names.title(entry.value))


def _values_at(pairs: Sequence[tuple[int | None, int | None]]) -> Mapping[int, Sequence[int | None]]:
    found: dict[int, list[int | None]] = {}
    for offset, value in pairs:
        if offset is not None and value not in found.setdefault(offset, []):
            found[offset].append(value)
    return found


def _plain(name: str, columns: Sequence[int | None], values: Mapping[int, Sequence[int | None]], names: Names) -> Row:
    def cell(offset: int | None) -> Cell:
        if offset is None:
            return Cell("…")
        here = values.get(offset, ())
        words = ", then ".join("foreign" if value is None else names.short(value) for value in here)
        return Cell(words or "-", title="; ".join(filter(None, map(names.title, here))))

    return Row(name, [cell(offset) for offset in columns], "")
