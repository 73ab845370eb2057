"""Reference: which transactions follow from which others; see :mod:`spark_analysis.dependencies`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from checkers.inconsistent_offsets import sightings
from checkers.views.history import History
from harness.facts import Dependency
from harness.model import TopicPartition


class _Event(NamedTuple):
    """A transaction wrote, or read, the record at an offset; ordered as they follow from each other."""

    offset: int
    reads: bool
    row: int
    value: int
    op: int
    process: int


def dependencies(history: History) -> list[Dependency]:
    """Every edge between two transactions that write, the first of each kind."""
    first: dict[tuple[int, int, str], Dependency] = {}
    for place, events in _events(history).items():
        for edge in _edges(history, place, sorted(events)):
            key = (edge.source, edge.target, edge.kind)
            first[key] = min(first.get(key, edge), edge)
    return sorted(first.values())


def _events(history: History) -> dict[TopicPartition, list[_Event]]:
    found: dict[TopicPartition, list[_Event]] = defaultdict(list)
    offsets: dict[tuple[TopicPartition, int], set[int]] = defaultdict(set)
    for seen in sightings(history):
        offsets[seen.where, seen.value].add(seen.offset)
    writers: set[int] = set()
    for send in history.transactional.values():
        known = offsets[send.where, send.value]
        if not history.is_uncommitted(send):
            writers |= {send.op} if known else set()
            for offset in known:
                found[send.where].append(_Event(offset, False, send.last.row, send.value, send.op, send.last.process))
    for read in history.reads:
        if read.txn and read.value is not None and read.op in writers:
            found[read.where].append(_Event(read.offset, True, read.row, read.value, read.op, read.process))
    return found


def _edges(history: History, place: TopicPartition, events: list[_Event]) -> Iterator[Dependency]:
    source: _Event | None = None
    for event in events:
        if source is not None and source.op != event.op:
            kind = "ww" if not event.reads else "wr" if source.offset == event.offset else "wwr"
            about = (place.topic, place.partition, event.offset, event.value, event.row, event.process)
            yield Dependency(history.run, kind, source.op, event.op, *about)
        source = source if event.reads else event
