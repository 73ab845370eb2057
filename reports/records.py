"""Lists every finding of a run in ``findings.csv``, beside the report: a row for each record, or range of offsets."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.anomaly import LOST_WRITE
from harness.checker import Anomaly
from harness.model import TopicPartition
from harness.scratch import unfinished
from reports.incidents import Incident, Piece
from reports.lost_records import Acknowledged
from reports.rows import Send
from reports.run import Run
from reports.scale import NS

FILE: Final = "findings.csv"


@dataclass(frozen=True, slots=True)
class Record:
    """A row: a record, or a range of offsets of which single records are not known.

    Attributes:
        count: how many findings it stands for.
        end_offset: exclusive.
        send: its acknowledged send; None: it is not known.
    """

    incident: int
    kind: str
    verdicts: str
    partition: TopicPartition | None
    offset: int | None
    end_offset: int | None
    count: int
    value: int | None
    send: Send | None


_Sends = Callable[[TopicPartition], Acknowledged]


def records(incident: Incident, sends_of: _Sends) -> Iterator[Record]:
    """Every finding of an incident, those of its own kind first."""
    own = [piece for piece in incident.roots if piece.kind == incident.kind]
    for piece in (*own, *(piece for found in incident.by_kind().values() for piece in found)):
        yield from _of_piece(incident.number, piece, sends_of)


def _of_piece(number: int, piece: Piece, sends_of: _Sends) -> Iterator[Record]:
    verdicts = " or ".join(piece.verdicts)
    sends = [] if piece.partition is None else sends_of(piece.partition).of(piece)
    if piece.kind == LOST_WRITE and len(sends) == piece.count:
        for send in sends:
            end = None if send.offset is None else send.offset + 1
            yield Record(number, piece.kind, verdicts, piece.partition, send.offset, end, 1, send.value, send)
    elif len(piece.examples) >= piece.count:
        by_value = {send.value: send for send in sends}
        for a in piece.examples:
            yield _of_example(number, piece, a, by_value.get(a.value))
    else:
        value = piece.lowest_value if piece.lowest_value == piece.highest_value else None
        end = piece.end_offset if piece.is_listed else None
        yield Record(number, piece.kind, verdicts, piece.partition, piece.offset, end, piece.count, value, None)


def _of_example(number: int, piece: Piece, a: Anomaly, send: Send | None) -> Record:
    end = None if a.offset is None else a.offset + 1
    return Record(number, a.kind, a.verdict.value, piece.partition, a.offset, end, min(1, piece.count), a.value, send)


_COLUMNS: Final = (
    "incident", "kind", "verdict", "topic", "partition", "offset", "end_offset", "findings", "value", "record",
    "process", "acknowledged_s", "history_index",
)  # fmt: skip


def write(run: Run, found: Sequence[Incident], sends_of: _Sends, path: Path) -> None:
    """Write ``findings.csv``; remove an older one where there is no finding.

    Raises:
        EnvironmentFault: it cannot be written.
    """
    if not found:
        path.unlink(missing_ok=True)
        return
    with unfinished(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(_COLUMNS)
        rows.writerows(_row(run, one) for incident in found for one in records(incident, sends_of))


def _row(run: Run, one: Record) -> Sequence[object]:
    place = one.partition or (None, None)
    name = None if one.value is None else run.names.long(one.value)
    told = (one.incident, one.kind, one.verdicts, *place, one.offset, one.end_offset, one.count, one.value, name)
    if one.send is None:
        return (*told, None, None, None)
    return (*told, one.send.process, f"{(one.send.time_ns - run.start_ns) / NS:.6f}", one.send.index)
