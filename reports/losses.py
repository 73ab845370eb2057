"""The anomalies sorted for reading: by kind, as single rows while they are few, as ranges of offsets when many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import groupby

from harness.checker import Anomaly, Verdict
from harness.model import TopicPartition
from reports.glossary import is_gone
from reports.run import partition_of

_GRAVITY = {verdict: place for place, verdict in enumerate(Verdict)}


@dataclass(frozen=True, slots=True)
class Stretch:
    """Anomalies at consecutive offsets of one partition; at least one.

    Attributes:
        partition: None where the anomaly names none, and then the stretch is that anomaly alone.
    """

    partition: TopicPartition | None
    anomalies: tuple[Anomaly, ...]

    @property
    def first(self) -> Anomaly:
        """The one at the lowest offset."""
        return self.anomalies[0]

    @property
    def offset(self) -> int | None:
        """The first offset; None where the anomaly names none."""
        return self.first.offset

    @property
    def end_offset(self) -> int | None:
        """The last offset plus one; None where the anomaly names none."""
        last = self.anomalies[-1].offset
        return None if last is None else last + 1

    @property
    def values(self) -> AbstractSet[int]:
        """The values the anomalies name."""
        return {a.value for a in self.anomalies if a.value is not None}


@dataclass(frozen=True, slots=True)
class Section:
    """All anomalies of one kind.

    Attributes:
        stretches: what is shown: single anomalies, or ranges.
        hidden: how many anomalies are not among them.
    """

    kind: str
    count: int
    stretches: Sequence[Stretch]
    hidden: int


def sections(anomalies: Sequence[Anomaly], rows: int) -> Sequence[Section]:
    """One section a kind, gravest verdict first, each of at most ``rows`` rows."""
    kinds = sorted({a.kind for a in anomalies})
    found = [_section(kind, [a for a in anomalies if a.kind == kind], rows) for kind in kinds]
    return sorted(found, key=lambda s: (min(_gravity(t) for t in s.stretches), not is_gone(s.kind), s.kind))


def stretches(anomalies: Iterable[Anomaly]) -> Sequence[Stretch]:
    """Anomalies of one kind joined where verdict and partition are the same and the offsets follow each other."""
    return _joined(sorted(anomalies, key=_place), lambda a: (a.topic, a.partition, a.verdict))


def lost(anomalies: Iterable[Anomaly]) -> Sequence[Stretch]:
    """The stretches of records that are gone and whose place is known: those with a story."""
    placed = [a for a in anomalies if is_gone(a.kind) and a.offset is not None]
    found = _joined(_one_per_value(placed), lambda a: (a.topic, a.partition))
    return [s for s in found if s.partition is not None]


def accused(anomalies: Iterable[Anomaly]) -> Mapping[TopicPartition, Mapping[int, AbstractSet[str]]]:
    """By partition and value: the kinds of anomalies that the value takes part in."""
    kinds: dict[TopicPartition, dict[int, set[str]]] = {}
    for a in anomalies:
        partition = partition_of(a.topic, a.partition)
        if partition is not None and a.value is not None:
            kinds.setdefault(partition, {}).setdefault(a.value, set()).add(a.kind)
    return kinds


def _section(kind: str, anomalies: Sequence[Anomaly], rows: int) -> Section:
    single = [Stretch(partition_of(a.topic, a.partition), (a,)) for a in sorted(anomalies, key=_place)]
    every = single if len(single) <= rows else sorted(stretches(anomalies), key=_gravity)
    shown = every[:rows]
    return Section(kind, len(anomalies), shown, len(anomalies) - sum(len(s.anomalies) for s in shown))


def _one_per_value(anomalies: Iterable[Anomaly]) -> list[Anomaly]:
    """One anomaly for each place and value: two kinds of loss of one record are one story."""
    ordered = sorted(anomalies, key=lambda a: (_place(a), a.kind))
    by_value = groupby(ordered, key=lambda a: (a.topic, a.partition, a.offset, a.value))
    return [next(group) for _, group in by_value]


def _gravity(stretch: Stretch) -> int:
    return _GRAVITY[stretch.first.verdict]


def _place(a: Anomaly) -> tuple[str, int, int, int, int]:
    numbers = (-1 if n is None else n for n in (a.partition, a.offset, a.value))
    partition, offset, value = numbers
    return (a.topic or "", partition, offset, value, _GRAVITY[a.verdict])


def _joined(ordered: Sequence[Anomaly], alike: Callable[[Anomaly], object]) -> Sequence[Stretch]:
    runs: list[list[Anomaly]] = []
    for anomaly in ordered:
        if runs and alike(runs[-1][-1]) == alike(anomaly) and _next_to(runs[-1][-1], anomaly):
            runs[-1].append(anomaly)
        else:
            runs.append([anomaly])
    return [Stretch(partition_of(run[0].topic, run[0].partition), tuple(run)) for run in runs]


def _next_to(before: Anomaly, after: Anomaly) -> bool:
    return before.offset is not None and after.offset in (before.offset, before.offset + 1)
