"""Single rows of the tables, and the sends and reads that rows of the history make up."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from harness.model import TopicPartition

Row = Mapping[str, Any]

ALL = -1
"""``acks`` of a sender that waits for every in-sync replica."""
NO_ACKS = 0
"""``acks`` of a sender that waits for no answer."""


class RowPosition(NamedTuple):
    """A row's position in the history, its time and its process; of several rows the minimum of each."""

    row: int
    time_ns: int
    process: int


class Send(NamedTuple):
    """One send: its invocation and how it ended.

    A send is identified by its value. Where a history has several sends of one value, they count as one; of two rows
    that end it the more certain counts (``ok``, then ``fail``). A value that was acknowledged at several offsets makes
    several sends.

    Attributes:
        type: ``info`` while nothing is known of its end.
        offset: where it was acknowledged; None: it was not, or the row has no offset.
        row: where it was acknowledged first, else its last row; ``completed_ns`` and ``process`` likewise.
        txn: whether it belongs to a transaction, ``op``.
        last: its last row, acknowledged or not.
    """

    where: TopicPartition
    op: int
    process: int
    value: int
    acks: int
    type: str
    offset: int | None
    row: int
    invoked_ns: int
    completed_ns: int
    txn: bool
    invoked_row: int
    last: RowPosition


class Read(NamedTuple):
    """One record that a poll delivered, however the poll ended.

    ``sound``: it is a workload's record and intact. ``named``: the leader epoch that the fetch named; None: not known.
    """

    where: TopicPartition
    offset: int
    value: int | None
    leader_epoch: int | None
    final: bool
    sound: bool
    row: int
    time_ns: int
    process: int
    op: int
    type: str
    read_committed: bool
    txn: bool
    named: int | None
    timestamp_ms: int | None


def is_malformed(row: Row) -> bool:
    """Whether a row of the history lacks what identifies its send or its delivery."""
    place = [row["topic"], row["partition"]]
    match row["f"]:
        case "send":
            return None in (*place, row["value"], row["acks"])
        case "commit":
            return None in (*place, row["offset"])
        case "poll":
            place.append(row["offset"])
    return None in place and any(known is not None for known in place)


def where(row: Row) -> TopicPartition:
    """The row's partition."""
    return TopicPartition(row["topic"], row["partition"])


def detail(row: Row) -> dict[str, Any]:
    """The row's ``detail``; empty where it has none."""
    found: dict[str, Any] = json.loads(row["detail"] or "{}")
    return found


_KNOWS = ("info", "fail", "ok")
"""How a send ends, the most certain last; an invocation counts like ``info``."""


def sends(place: TopicPartition, rows: list[Row]) -> Iterator[Send]:
    """The sends of these rows: one for each offset at which it was acknowledged."""
    ended = max((row["type"] for row in rows if row["type"] != "invoke"), key=_KNOWS.index, default="info")
    transactions = [row["op"] for row in rows if row["txn"]]
    op = min(transactions or [row["op"] for row in rows])
    begun_ns, begun = min(row["time_ns"] for row in rows), min(row["index"] for row in rows)
    last = RowPosition(*(max(row[name] for row in rows) for name in ("index", "time_ns", "process")))
    acked: dict[int | None, list[Row]] = defaultdict(list)
    for row in rows:
        if row["type"] == "ok":
            acked[row["offset"]].append(row)
    for offset, group in acked.items() or [(None, [])]:
        end = (
            RowPosition(*(min(row[name] for row in group) for name in ("index", "time_ns", "process")))
            if group
            else last
        )
        yield Send(
            place, op, end.process, rows[0]["value"], min(row["acks"] for row in group or rows), ended, offset,
            end.row, begun_ns, end.time_ns, bool(transactions), begun, last,
        )  # fmt: skip


def read_of(row: Row) -> Read:
    """The record that this row of a poll delivered."""
    sound = row["value"] is not None and row["intact"] is not False
    return Read(
        where(row), row["offset"], row["value"], row["leader_epoch"], row["final"], sound,
        row["index"], row["time_ns"], row["process"], row["op"], row["type"], row["isolation"] != "read_uncommitted",
        row["txn"], row["current_leader_epoch"], row["timestamp_ms"],
    )  # fmt: skip
