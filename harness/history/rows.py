"""Rows of the history as they are buffered: one by one, or many together as a :class:`.blocks.Block`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Any

from harness.history.blocks import Block
from harness.history.schema import HISTORY
from harness.history.sends import Answer, Completion, Sends
from harness.model import Acknowledgement, GroupProtocol, Offset, TopicPartition

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
    generation: int | None = None
    group_protocol: GroupProtocol | None = None
    delivery_count: int | None = None
    acknowledgement: Acknowledgement | None = None


_values = attrgetter(*NAMES)


def alike(row: Row, columns: Mapping[str, Sequence[Any]], count: int) -> Block:
    """``count`` rows like ``row`` but for ``columns``, without index and time."""
    return Block(dict(zip(NAMES, _values(row), strict=True)), columns, count)


def sent(run: str, sends: Sends, which: Sequence[int], answers: Sequence[Answer] | None) -> Block:
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
        for place, name in enumerate(("type", "offset", "error")):
            columns[name] = [answer[place] for answer in answers]
    return alike(like, columns, len(which))


def placed(block: Block, index: int, time_ns: int) -> Block:
    """The rows of ``block`` from ``index`` on, at that time."""
    return Block(
        {**block.same, "time_ns": time_ns}, {**block.columns, "index": range(index, index + block.count)}, block.count
    )


def blocks_of(buffered: Sequence[Row | Block]) -> list[Block]:
    """What is buffered, with neighbouring rows in one block."""
    blocks: list[Block] = []
    for _, of_one_type in groupby(buffered, type):
        together = list(of_one_type)
        values = [_values(one) for one in together if isinstance(one, Row)]
        if values:
            blocks.append(Block({}, dict(zip(NAMES, zip(*values, strict=True), strict=True)), len(values)))
        blocks += [one for one in together if isinstance(one, Block)]
    return blocks


def sole(f: str, invoked: Sequence[Row]) -> Row:
    """The invocation of an operation that has one, and is an ``f``."""
    [row] = invoked
    assert row.f == f, f"operation {row.op} is a {row.f}"
    return row


def polled(invoked: Sequence[Row]) -> Row:
    """The invocation of a poll without what it alone says: the generation in which it began."""
    return replace(sole("poll", invoked), generation=None, group_protocol=None)


def ended(row: Row, kind: Completion, error: str | None, offset: Offset | None = None) -> Row:
    """The row that ends an operation, made of its invocation."""
    return replace(row, type=kind, error=error, offset=offset)


def per_partition(bare: Row, partitions: Sequence[TopicPartition]) -> list[Row]:
    """A row for each partition, or the bare one where none is known."""
    return [replace(bare, topic=p.topic, partition=p.partition) for p in partitions] or [bare]
