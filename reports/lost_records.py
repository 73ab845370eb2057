"""Which acknowledged records are gone, and which sends take part in anomalies: all of them, not only the examples."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from harness.anomaly import LOST_WRITE
from harness.checker import RunVerdict
from harness.model import TopicPartition
from reports.glossary import is_gone
from reports.incidents import Incident, Piece
from reports.lanes.sends import Charges
from reports.rows import ACKNOWLEDGED, Send
from reports.run import PartitionRows, Run, partition_of


@dataclass(frozen=True, slots=True)
class Lost:
    """Consecutive offsets at which records are gone, by whatever kind of anomaly."""

    partition: TopicPartition
    offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The acknowledged sends of a partition.

    Attributes:
        placed: by offset.
        nowhere: those whose acknowledgement named no offset (acks=0).
        final: offset and value of each record of the final read.
    """

    placed: Sequence[Send]
    nowhere: Sequence[Send]
    final: Collection[tuple[int, int | None]]

    def at(self, offset: int, end_offset: int) -> Sequence[Send]:
        """Those at the offsets ``offset..end_offset`` (exclusive)."""
        first, end = (bisect_left(self.placed, o, key=lambda s: s.offset or 0) for o in (offset, end_offset))
        return self.placed[first:end]

    def of(self, piece: Piece) -> Sequence[Send]:
        """Those that a piece is about; where it is a loss, without those that the final read delivers."""
        if piece.offset is None:
            values = {value for _, value in self.final}
            return [s for s in self.nowhere if s.value not in values] if piece.kind == LOST_WRITE else []
        found = self.at(piece.offset, piece.end_offset or 0)
        return [s for s in found if (s.offset, s.value) not in self.final] if is_gone(piece.kind) else found


def acknowledged(run: Run, rows: PartitionRows) -> Acknowledged:
    """The acknowledged sends of a partition, and what its final read delivered."""
    done = [s for s in rows.sends if s.type == ACKNOWLEDGED]
    placed = sorted((s for s in done if s.offset is not None), key=lambda s: s.offset or 0)
    return Acknowledged(placed, [s for s in done if s.offset is None], run.final_read(rows.partition))


def lost(incident: Incident) -> Sequence[Lost]:
    """The ranges of an incident's records that are gone and whose offsets are known: those with a story."""
    places: dict[TopicPartition, list[tuple[int, int]]] = defaultdict(list)
    for piece in (*incident.roots, *incident.consequences):
        if is_gone(piece.kind) and piece.is_listed and piece.partition is not None:
            places[piece.partition].append((piece.offset or 0, piece.end_offset or 0))
    return [Lost(place, *span) for place, spans in sorted(places.items()) for span in merged(spans)]


def merged(spans: Sequence[tuple[int, int]], near: int = 0) -> Iterator[tuple[int, int]]:
    """Ranges of offsets, ends exclusive, as few as possible: joined where at most ``near`` offsets lie between."""
    joined: list[tuple[int, int]] = []
    for first, end in sorted(spans):
        if joined and first <= joined[-1][1] + near:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((first, end))
    yield from joined


def charges(run: Run, rows: PartitionRows, found: Sequence[Incident]) -> Charges:
    """The sends of a partition that take part in anomalies.

    An example names its value. Of the other anomalies the offset is known, so there it is what was acknowledged at that
    offset; where a record is gone, unless the final read delivers it there.
    """
    kinds: dict[int, set[str]] = defaultdict(set)
    incidents: dict[int, int] = {}
    sends = acknowledged(run, rows)
    for incident in reversed(found):
        for piece in (*incident.roots, *incident.consequences):
            if piece.partition == rows.partition:
                for value in _values(piece, sends):
                    kinds[value].add(piece.kind)
                    incidents[value] = incident.number
    return Charges({value: sorted(named) for value, named in kinds.items()}, incidents, run.names)


def _values(piece: Piece, sends: Acknowledged) -> Collection[int]:
    named = {a.value for a in piece.examples if a.value is not None}
    is_known = piece.is_listed or (piece.offset is None and piece.kind == LOST_WRITE)
    more = sends.of(piece) if piece.count > len(piece.examples) and is_known else []
    return named | {s.value for s in more if s.value is not None}


def accused_by_partition(verdict: RunVerdict) -> dict[TopicPartition, int]:
    """How many anomalies each partition has."""
    counts: dict[TopicPartition, int] = defaultdict(int)
    for extent in verdict.extents:
        if (place := partition_of(extent.topic, extent.partition)) is not None:
            counts[place] += extent.count
    return counts
