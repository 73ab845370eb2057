"""The reference: who stood still in an ISR for too long (see :class:`spark_analysis.facts.Lag`), from lists of rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from checkers.row import Row, where
from checkers.rows import RunRows
from harness.model import CONTROLLER_ID, TopicPartition
from spark_analysis.facts import LOOKS, Lag

_SAME_ISR = ("node", "incarnation", "leader_epoch", "partition_epoch")


def lags(rows: RunRows) -> Iterator[Lag]:
    """Every lag of a run that says how long one may last."""
    if rows.lag_ns is None:
        return
    by_place: dict[TopicPartition, dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows.timeline:
        if row["topic"] is not None and row["kind"] != "final" and row["node"] != CONTROLLER_ID:
            by_place[where(row)][row["node"]].append(row)
    for place, replicas in by_place.items():
        leading = [row for ours in replicas.values() for row in ours if _leads(row)]
        for member, ours in replicas.items():
            for last, until_ns in _standstills(ours, rows.lag_ns):
                lacking = [row for row in leading if _lacks(row, member, last, until_ns)]
                yield from _lasting(rows, place, member, last["log_end_offset"], lacking)


def _standstills(ours: Sequence[Row], lag_ns: int) -> Iterator[tuple[Row, int | None]]:
    """Rows of a replica after which it says nothing for so long, and when it does again; None: never."""
    ordered = sorted(ours, key=lambda r: (r["time_ns"], r["incarnation"], r["sequence"]))
    until = [*(row["time_ns"] for row in ordered[1:]), None]
    for row, until_ns in zip(ordered, until, strict=True):
        if row["log_end_offset"] is not None and (until_ns is None or until_ns - row["time_ns"] >= lag_ns):
            yield row, until_ns


def _leads(row: Row) -> bool:
    return row["kind"] == "state" and row["role"] == "leader" and None not in (row["isr"], row["leader_epoch"])


def _lacks(row: Row, member: int, last: Row, until_ns: int | None) -> bool:
    """Whether a leader's row counts the member as in sync while it stands still, and has more than that one."""
    meanwhile = row["time_ns"] >= last["time_ns"] and (until_ns is None or row["time_ns"] < until_ns)
    ahead = row["log_end_offset"] is not None and row["log_end_offset"] > last["log_end_offset"]
    return meanwhile and ahead and row["node"] != member and member in row["isr"]


def _lasting(rows: RunRows, place: TopicPartition, member: int, reached: int, lacking: Sequence[Row]) -> Iterator[Lag]:
    """Of these rows those that follow each other closely, for long enough."""
    assert rows.lag_ns is not None
    by_isr: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in sorted(lacking, key=lambda r: (r["time_ns"], r["sequence"])):
        ours = by_isr[tuple(row[name] for name in _SAME_ISR)]
        if ours and (row["time_ns"] - ours[-1]["time_ns"]) * LOOKS > rows.lag_ns:
            yield from _lag(rows, place, member, reached, ours)
            ours.clear()
        ours.append(row)
    for ours in by_isr.values():
        yield from _lag(rows, place, member, reached, ours)


def _lag(rows: RunRows, place: TopicPartition, member: int, reached: int, ours: Sequence[Row]) -> Iterator[Lag]:
    first, last = ours[0], ours[-1]
    if last["time_ns"] - first["time_ns"] >= (rows.lag_ns or 0):
        yield Lag(
            rows.run, *place, first["node"], first["incarnation"], first["leader_epoch"], member, first["sequence"],
            first["time_ns"], last["sequence"], last["time_ns"], first["log_end_offset"], reached,
        )  # fmt: skip
