"""Groups a run's anomalies into incidents: one root cause each, with what follows from it.

The anomalies of one kind at consecutive offsets are a piece, as ``extents`` in ``verdict.json`` counts them. A piece
follows from another one where the checker wrote that an anomaly of it does, or, for those that it only counts, where
its kind may follow from the other one's at the same offsets. Losses with the same last fault are one incident.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from checkers.registry import KINDS
from harness.anomaly import LOST_WRITE
from harness.checker import EXCUSED, Anomaly, Extent, LossStory, OffsetRange, RunVerdict, Verdict
from harness.model import TopicPartition
from reports.glossary import is_gone
from reports.run import partition_of

_GRAVITY: Final = {verdict: place for place, verdict in enumerate(Verdict)}
_FOLLOWS: Final = re.compile(r"It follows from the (\S+) of value \S+ at offset (-?\d+)\.$")
"""How the checker ends the sentence about an anomaly that follows from another one."""

_NO_END: Final = 2**63
"""The end of offsets of which only the first is known."""

_Places = Mapping[tuple[TopicPartition | None, str], Sequence[int]]
"""By partition and kind: the numbers of the pieces."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Anomalies of one kind in one place.

    Attributes:
        partition: None where the anomalies name none.
        offset: the first; None where they name none, as is ``end_offset``, which is exclusive.
        count: how many anomalies these are; 0 of one that other pieces count.
        ranges: at how many ranges of offsets they are; more than one where the verdict does not list these.
        lowest_value: of the records that they are about, as is ``highest_value``; None where they name none.
        verdicts: on them, gravest first.
        examples: those of them that the verdict shows with their evidence.
    """

    kind: str
    partition: TopicPartition | None
    offset: int | None
    end_offset: int | None
    count: int
    ranges: int
    lowest_value: int | None
    highest_value: int | None
    verdicts: Sequence[Verdict]
    examples: Sequence[Anomaly]

    @property
    def is_listed(self) -> bool:
        """Whether its offsets are known."""
        return self.offset is not None and self.end_offset != _NO_END

    def overlaps(self, offset: int, end_offset: int) -> bool:
        """Whether any of it is at these offsets; the end is exclusive."""
        return self.offset is not None and self.offset < end_offset and offset < (self.end_offset or 0)


@dataclass(frozen=True, slots=True)
class Incident:
    """One root cause.

    Attributes:
        number: from 1, the gravest first.
        roots: what the cause led to: all of one kind, unless records are gone.
        consequences: what follows from these.
        stories: the checker's stories of the records that are gone.
    """

    number: int
    roots: Sequence[Piece]
    consequences: Sequence[Piece]
    stories: Sequence[LossStory]

    @property
    def verdict(self) -> Verdict:
        """The gravest verdict on any of its roots."""
        return min((v for piece in self.roots for v in piece.verdicts), key=_GRAVITY.__getitem__)

    @property
    def is_excused(self) -> bool:
        """Whether the configuration or the acks excuse all of it."""
        return EXCUSED.issuperset(v for piece in (*self.roots, *self.consequences) for v in piece.verdicts)

    @property
    def kind(self) -> str:
        """The kind that it is named for: the first of its roots' in the order of causes."""
        return min((piece.kind for piece in self.roots), key=_rank)

    @property
    def count(self) -> int:
        """How many anomalies of that kind it has."""
        return sum(piece.count for piece in self.roots if piece.kind == self.kind)

    @property
    def partitions(self) -> Sequence[TopicPartition]:
        """Where its roots are, in order."""
        return sorted({piece.partition for piece in self.roots if piece.partition is not None})

    @property
    def examples(self) -> Sequence[Anomaly]:
        """Its roots' anomalies that the verdict shows with their evidence."""
        return [a for piece in self.roots for a in piece.examples]

    def by_kind(self) -> Mapping[str, Sequence[Piece]]:
        """What follows, by kind, and roots of other kinds than its own: the same records, seen from another side."""
        found: dict[str, list[Piece]] = defaultdict(list)
        for piece in sorted((*self.roots, *self.consequences), key=lambda p: _rank(p.kind)):
            if piece.kind != self.kind:
                found[piece.kind].append(piece)
        return found


def incidents(verdict: RunVerdict) -> Sequence[Incident]:
    """All incidents, gravest first, those with most records first among equals."""
    found = sorted(pieces(verdict), key=lambda p: _rank(p.kind))
    groups: dict[tuple[object, ...], list[tuple[Piece, bool]]] = defaultdict(list)
    for members in _rooted(found):
        roots = [piece for piece, follows in members if not follows]
        groups[_cause(roots, verdict.losses)] += members
    built = [_incident(members, verdict.losses) for members in groups.values()]
    ordered = sorted(built, key=_order)
    return [Incident(n, one.roots, one.consequences, one.stories) for n, one in enumerate(ordered, 1)]


def pieces(verdict: RunVerdict) -> Iterator[Piece]:
    """Every piece; the anomalies that no extent counts, one each."""
    counted: set[int] = set()
    for extent in verdict.extents:
        here = [a for a in verdict.anomalies if _is_of(a, extent) and id(a) not in counted]
        for piece in _pieces(extent, here, verdict.losses):
            counted.update(map(id, piece.examples))
            yield piece
    placed: Counter[str] = Counter()
    for extent in verdict.extents:
        placed[extent.kind] += extent.count
    for a in verdict.anomalies:
        if id(a) not in counted:
            yield _single(a, 0 if placed[a.kind] else 1)
    for kind in sorted({a.kind for a in verdict.anomalies}):
        more = verdict.total(kind) - (placed[kind] or sum(a.kind == kind for a in verdict.anomalies))
        if more > 0:
            yield Piece(kind, None, None, None, more, 1, None, None, _verdicts_of(verdict, kind), ())


def _verdicts_of(verdict: RunVerdict, kind: str) -> Sequence[Verdict]:
    return _sorted({a.verdict for a in verdict.anomalies if a.kind == kind})


def _is_of(a: Anomaly, extent: Extent) -> bool:
    return (a.kind, a.topic, a.partition) == (extent.kind, extent.topic, extent.partition) and (
        a.verdict in extent.verdicts
    )


def _pieces(extent: Extent, examples: Sequence[Anomaly], losses: Sequence[LossStory]) -> Iterator[Piece]:
    place = partition_of(extent.topic, extent.partition)
    for one in (*extent.ranges, *_unlisted(extent, losses)):
        inside = [a for a in examples if a.offset is not None and one.first_offset <= a.offset < one.end_offset]
        told = _sorted({a.verdict for a in inside}) if len(inside) == one.count else extent.verdicts
        number = 1 if one.end_offset < _NO_END else extent.more_ranges
        values = one.lowest_value, one.highest_value
        yield Piece(
            extent.kind, place, one.first_offset, one.end_offset, one.count, number, *values, told, tuple(inside)
        )
    if extent.without_offset:
        nowhere = tuple(a for a in examples if a.offset is None)[: extent.without_offset]
        values = _values(nowhere)
        yield Piece(extent.kind, place, None, None, extent.without_offset, 1, *values, extent.verdicts, nowhere)


def _unlisted(extent: Extent, losses: Sequence[LossStory]) -> Sequence[OffsetRange]:
    """The ranges that the extent only counts: from the stories, if they account for all; else one without an end."""
    if not extent.more_ranges:
        return []
    end = max((one.end_offset for one in extent.ranges), default=0)
    told = [x for x in losses if (x.topic, x.partition) == (extent.topic, extent.partition) and x.first_offset >= end]
    known = [OffsetRange(x.first_offset, x.end_offset, x.end_offset - x.first_offset, None, None) for x in told]
    if extent.kind == LOST_WRITE and sum(one.count for one in known) == extent.in_more_ranges:
        return known
    return [OffsetRange(end, _NO_END, extent.in_more_ranges, None, None)]


def _values(examples: Sequence[Anomaly]) -> tuple[int | None, int | None]:
    values = [a.value for a in examples if a.value is not None]
    return min(values, default=None), max(values, default=None)


def _single(a: Anomaly, count: int) -> Piece:
    end = None if a.offset is None else a.offset + 1
    place = partition_of(a.topic, a.partition)
    return Piece(a.kind, place, a.offset, end, count, 1, a.value, a.value, (a.verdict,), (a,))


def _sorted(verdicts: set[Verdict]) -> Sequence[Verdict]:
    return sorted(verdicts, key=_GRAVITY.__getitem__)


def _rooted(found: Sequence[Piece]) -> Sequence[Sequence[tuple[Piece, bool]]]:
    """By root, the pieces under it, each with whether it follows from another one; causes come first in ``found``.

    What follows from several pieces is under the first of them.
    """
    root_of: list[int] = []
    follows: list[bool] = []
    places: dict[tuple[TopicPartition | None, str], list[int]] = defaultdict(list)
    for i, piece in enumerate(found):
        cause = min(_causes(piece, found, places), default=None)
        above = cause if cause is not None else min(_same(piece, found, places), default=None)
        root_of.append(i if above is None else root_of[above])
        follows.append(cause is not None)
        places[piece.partition, piece.kind].append(i)
    members: dict[int, list[tuple[Piece, bool]]] = defaultdict(list)
    for piece, root, is_consequence in zip(found, root_of, follows, strict=True):
        members[root].append((piece, is_consequence))
    return list(members.values())


def _causes(piece: Piece, found: Sequence[Piece], places: _Places) -> Iterator[int]:
    """Which pieces before it ``piece`` follows from."""
    kind = KINDS.get(piece.kind)
    if kind is None or piece.offset is None:
        return
    links = {(m[1], int(m[2])) for a in piece.examples if (m := _FOLLOWS.search(a.why))}
    for name in kind.follows_from:
        offsets = [offset for linked, offset in links if linked == name]
        for j in places.get((piece.partition, name), ()):
            cause = found[j]
            beyond = piece.count > len(piece.examples) and cause.overlaps(piece.offset, piece.end_offset or 0)
            if beyond or any(cause.overlaps(offset, offset + 1) for offset in offsets):
                yield j


def _same(piece: Piece, found: Sequence[Piece], places: _Places) -> Iterator[int]:
    """Which pieces before it show by another kind that the same records are gone."""
    if piece.offset is None or not piece.is_listed or not is_gone(piece.kind):
        return
    for name in filter(is_gone, KINDS):
        for j in places.get((piece.partition, name), ()):
            if found[j].is_listed and found[j].overlaps(piece.offset, piece.end_offset or 0):
                yield j


def _cause(roots: Sequence[Piece], losses: Sequence[LossStory]) -> tuple[object, ...]:
    """What makes pieces one incident: the last fault before the loss and what took the last copy; else their kind."""
    gravest = min((v for piece in roots for v in piece.verdicts), key=_GRAVITY.__getitem__)
    for story in _stories(roots, losses):
        if story.fault is not None or story.last_copy is not None:
            return gravest, story.fault, None if story.last_copy is None else story.last_copy.event
    return gravest, roots[0].kind


def _stories(roots: Sequence[Piece], losses: Sequence[LossStory]) -> Sequence[LossStory]:
    gone = [piece for piece in roots if is_gone(piece.kind)]
    return [
        story
        for story in losses
        if any(
            piece.partition == (story.topic, story.partition) and piece.overlaps(story.first_offset, story.end_offset)
            for piece in gone
        )
    ]


def _incident(members: Sequence[tuple[Piece, bool]], losses: Sequence[LossStory]) -> Incident:
    roots = [piece for piece, follows in members if not follows]
    return Incident(0, roots, [piece for piece, follows in members if follows], _stories(roots, losses))


def _order(one: Incident) -> tuple[object, ...]:
    return _GRAVITY[one.verdict], not is_gone(one.kind), -one.count, _rank(one.kind), one.kind


def _rank(kind: str) -> int:
    return _ranks().get(kind, len(KINDS))


@cache
def _ranks() -> Mapping[str, int]:
    """By kind, its place in the order of causes before consequences."""
    return {kind: place for place, kind in enumerate(KINDS)}
