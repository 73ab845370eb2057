"""The anomalies sorted for reading: by kind, as single rows while they are few, as ranges of offsets when many.

Ranges and numbers are of all anomalies (``extents`` in ``verdict.json``); only the examples, with their evidence, are
limited.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from harness.checker import Anomaly, Extent, RunVerdict, Verdict
from harness.model import TopicPartition
from reports.glossary import is_gone
from reports.rows import ACKNOWLEDGED
from reports.run import PartitionRows, Run, partition_of

_GRAVITY = {verdict: place for place, verdict in enumerate(Verdict)}


@dataclass(frozen=True, slots=True)
class Stretch:
    """One anomaly, or those of one kind, partition and excuse at consecutive offsets.

    Attributes:
        partition: None where the anomaly names none.
        offset: the first; None where the anomalies name none, as is ``end_offset``, which is exclusive.
        count: how many anomalies these are; 0 of a row about anomalies that other rows count.
        lowest_value: of the records that they are about, as is ``highest_value``; None where they name none.
        verdicts: on them, gravest first.
        example: the first of them that the verdict shows with its evidence; None: it shows none of these.
    """

    partition: TopicPartition | None
    offset: int | None
    end_offset: int | None
    count: int
    lowest_value: int | None
    highest_value: int | None
    verdicts: Sequence[Verdict]
    example: Anomaly | None


@dataclass(frozen=True, slots=True)
class Section:
    """All anomalies of one kind.

    Attributes:
        count: how many there are.
        examples: how many of them the verdict shows with their evidence.
        stretches: what is shown: single anomalies, or ranges.
        hidden: how many anomalies are in no stretch that is shown; ``hidden_ranges``: at how many ranges of offsets.
    """

    kind: str
    count: int
    examples: int
    stretches: Sequence[Stretch]
    hidden: int
    hidden_ranges: int


@dataclass(frozen=True, slots=True)
class Lost:
    """Consecutive offsets at which records are gone, by whatever kind of anomaly."""

    partition: TopicPartition
    offset: int
    end_offset: int


def sections(verdict: RunVerdict, rows: int) -> Sequence[Section]:
    """One section a kind, gravest verdict first, each of at most ``rows`` rows."""
    kinds = sorted({a.kind for a in verdict.anomalies})
    found = [_section(verdict, kind, rows) for kind in kinds]
    return sorted(found, key=lambda s: (min(map(_gravity, s.stretches)), not is_gone(s.kind), s.kind))


def lost(verdict: RunVerdict) -> Sequence[Lost]:
    """The ranges of records that are gone and whose place is known: those with a story."""
    places: dict[TopicPartition, list[tuple[int, int]]] = defaultdict(list)
    for extent in verdict.extents:
        if is_gone(extent.kind):
            spans = [(one.first_offset, one.end_offset) for one in extent.ranges]
            if (place := partition_of(extent.topic, extent.partition)) is not None:
                places[place] += spans
    return [Lost(place, *span) for place, spans in sorted(places.items()) for span in merged(spans)]


def lost_unlisted(verdict: RunVerdict) -> int:
    """How many ranges of records that are gone the verdict counts and does not list."""
    return sum(extent.more_ranges for extent in verdict.extents if is_gone(extent.kind))


def merged(spans: Sequence[tuple[int, int]], near: int = 0) -> Iterator[tuple[int, int]]:
    """Ranges of offsets, ends exclusive, as few as possible: joined where at most ``near`` offsets lie between."""
    joined: list[tuple[int, int]] = []
    for first, end in sorted(spans):
        if joined and first <= joined[-1][1] + near:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((first, end))
    yield from joined


def accused(run: Run, rows: PartitionRows) -> Mapping[int, AbstractSet[str]]:
    """By value: the kinds of anomalies that its send takes part in.

    An example names its value. Of the other anomalies the offset is known, so there it is what was acknowledged at that
    offset; where a record is gone, unless the final read delivers it there.
    """
    kinds: dict[int, set[str]] = defaultdict(set)
    for a in run.verdict.anomalies:
        if a.value is not None and partition_of(a.topic, a.partition) == rows.partition:
            kinds[a.value].add(a.kind)
    more = [x for x in run.verdict.extents if _is_of(x, rows.partition) and x.count > x.examples]
    for extent in more:
        for one in extent.ranges:
            for value in acknowledged(run, rows, one.first_offset, one.end_offset, gone=is_gone(extent.kind)):
                kinds[value].add(extent.kind)
    return kinds


def acknowledged(run: Run, rows: PartitionRows, offset: int, end_offset: int, *, gone: bool) -> set[int]:
    """The values acknowledged at some offsets; ``gone``: that the final read does not deliver there."""
    acked = {
        (s.offset, s.value)
        for s in rows.sends
        if s.type == ACKNOWLEDGED and s.offset is not None and offset <= s.offset < end_offset
    }
    there = {(p.offset, p.value) for p in run.polls(rows.partition, offset, end_offset) if p.final} if gone else set()
    return {value for at, value in acked - there if value is not None}


def _is_of(extent: Extent, partition: TopicPartition) -> bool:
    return (extent.topic, extent.partition) == partition


def _section(verdict: RunVerdict, kind: str, rows: int) -> Section:
    examples = [a for a in verdict.anomalies if a.kind == kind]
    extents = [x for x in verdict.extents if x.kind == kind]
    count = max(verdict.total(kind), len(examples))
    few = count == len(examples) <= rows
    every = [_single(a) for a in sorted(examples, key=_place)] if few else list(_ranges(extents, examples))
    shown = sorted(every, key=_gravity)[:rows] if not few else every
    hidden = sum(x.more_ranges for x in extents) + len(every) - len(shown) if not few else 0
    return Section(kind, count, len(examples), shown, count - sum(s.count for s in shown), hidden)


def _single(a: Anomaly) -> Stretch:
    end = None if a.offset is None else a.offset + 1
    return Stretch(partition_of(a.topic, a.partition), a.offset, end, 1, a.value, a.value, (a.verdict,), a)


def _ranges(extents: Sequence[Extent], examples: Sequence[Anomaly]) -> Iterator[Stretch]:
    """All anomalies of a kind by ranges, those without an offset together, with the totals of those only counted."""
    for extent in extents:
        place = partition_of(extent.topic, extent.partition)
        here = [
            a
            for a in examples
            if (a.topic, a.partition) == (extent.topic, extent.partition) and a.verdict in extent.verdicts
        ]
        for one in extent.ranges:
            span = range(one.first_offset, one.end_offset)
            example = min((a for a in here if a.offset in span), key=_place, default=None)
            values = one.lowest_value, one.highest_value
            yield Stretch(place, one.first_offset, one.end_offset, one.count, *values, extent.verdicts, example)
        if extent.without_offset:
            example = next((a for a in here if a.offset is None), None)
            yield Stretch(place, None, None, extent.without_offset, None, None, extent.verdicts, example)
    counted = len(examples) - sum(extent.examples for extent in extents)
    yield from (replace(_single(a), count=0) for a in examples[len(examples) - counted :])


def _gravity(stretch: Stretch) -> int:
    return min((_GRAVITY[verdict] for verdict in stretch.verdicts), default=len(_GRAVITY))


def _place(a: Anomaly) -> tuple[str, int, int, int, int]:
    numbers = (-1 if n is None else n for n in (a.partition, a.offset, a.value))
    partition, offset, value = numbers
    return (a.topic or "", partition, offset, value, _GRAVITY[a.verdict])
