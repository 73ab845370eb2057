"""Formats the anomalies of a run for a terminal, by verdict and kind, violations first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from harness.checker import EXCUSED, Anomaly, Extent, RunVerdict, Side, Verdict, offsets

_STYLES = {
    Verdict.VIOLATION: "bold red",
    Verdict.EXPECTED: "green",
    Verdict.INDETERMINATE: "yellow",
    Verdict.DOCUMENTED: "dim",
    Verdict.WEAK: "dim",
}
"""The order of printing: first the verdicts that decide the outcome."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The anomalies of one kind with the same verdict.

    Attributes:
        verdicts: on them; several where their excuse does not hold for all of them.
        extents: by partition.
    """

    kind: str
    verdicts: tuple[Verdict, ...]
    extents: Sequence[Extent]

    @property
    def count(self) -> int:
        """The number of anomalies."""
        return sum(one.count for one in self.extents)

    @property
    def label(self) -> str:
        """The verdicts on them."""
        return " or ".join(self.verdicts)

    @property
    def is_excused(self) -> bool:
        """Whether the configuration or the acks excuse all of them."""
        return EXCUSED.issuperset(self.verdicts)

    def has(self, anomaly: Anomaly) -> bool:
        """Whether ``anomaly`` is one of them, by its kind, verdict and place."""
        places = {(one.topic, one.partition) for one in self.extents}
        mine = anomaly.kind == self.kind and anomaly.verdict in self.verdicts
        return mine and (anomaly.topic, anomaly.partition) in places


def observations(verdict: RunVerdict) -> list[Observation]:
    """The anomalies by verdict and kind."""
    groups: dict[tuple[tuple[Verdict, ...], str], list[Extent]] = {}
    for extent in verdict.extents:
        groups.setdefault((extent.verdicts, extent.kind), []).append(extent)
    ordered = sorted(groups, key=lambda group: [_gravity(one) for one in group[0]])
    return [Observation(kind, verdicts, groups[verdicts, kind]) for verdicts, kind in ordered]


def details(verdict: RunVerdict) -> Iterator[str]:
    """Why there is no verdict; by verdict and kind, how many anomalies, where, and one of the gravest."""
    yield from verdict.reasons
    yield from verdict.limits
    observed = observations(verdict)
    for anomaly in verdict.anomalies:  # of what was only counted, which no other line need tell apart
        if not any(one.has(anomaly) for one in observed):
            yield f"{anomaly.verdict} {anomaly.kind}{_place(anomaly)}: {anomaly.why}"
    for one in observed:
        shown = [anomaly for anomaly in verdict.anomalies if one.has(anomaly)]
        first = min(shown, key=lambda a: _gravity(a.verdict))
        yield " ".join([_line(one, first), *_whose(first, shown)])


def _gravity(verdict: Verdict) -> int:
    return list(_STYLES).index(verdict)


def _line(one: Observation, first: Anomaly) -> str:
    """Violations with all their places; excused anomalies with the first place and the excuse."""
    name = f"{one.label} {counted(one.count, one.kind)}"
    if one.is_excused:
        return f"{name}{'' if one.count == 1 else ', the first'}{_place(first)}: {_excuse(first)}"
    if one.count == 1:
        return f"{name}{_place(first)}: {first.why}"
    which = "The first" if len(one.verdicts) == 1 else f"The first {first.verdict}"
    return f"{name}: {_reach(one.extents)}. {which}: {first.why}"


def _whose(first: Anomaly, shown: Sequence[Anomaly]) -> Iterator[str]:
    """Where the anomaly comes from that the line shows, and how many of the others from elsewhere."""
    if first.attribution is None:
        return
    yield first.attribution.words
    sides = Counter(one.attribution.side for one in shown if one.attribution is not None)
    others = [f"{number:,} {side}" for side in Side if side is not first.attribution.side and (number := sides[side])]
    if others:
        yield f"Of {len(shown):,} that were looked at, {' and '.join(others)}."


def _excuse(anomaly: Anomaly) -> str:
    """The reason for its verdict."""
    return anomaly.because.removeprefix(f"{anomaly.verdict.value}: ")


_RANGES_SHOWN = 6
"""The most ranges of offsets that a line shows; the report has more."""


def _reach(extents: Sequence[Extent]) -> str:
    """The places of all anomalies."""
    spans = [(f"{x.topic}-{x.partition}", span) for x in extents for span in x.ranges]
    said = []
    for place, ours in groupby(spans[:_RANGES_SHOWN], key=itemgetter(0)):
        said.append(f"{place} at " + ", ".join(offsets(span.first_offset, span.end_offset) for _, span in ours))
    hidden = len(spans[_RANGES_SHOWN:]) + sum(one.more_ranges for one in extents)
    nowhere = sum(one.without_offset for one in extents)
    more = [f"{hidden:,} more ranges of offsets"] if hidden else []
    more += [f"{nowhere:,} that name no offset"] if nowhere else []
    return "; ".join([*said, *more])


def _place(anomaly: Anomaly) -> str:
    """Its place, as far as known: an anomaly of a node has none, and records of old formats have no leader epoch."""
    if anomaly.topic is None:
        return ""
    parts = [f"{anomaly.topic}-{anomaly.partition}"]
    if anomaly.offset is not None:
        parts[0] += f" offset {anomaly.offset}"
    if anomaly.leader_epoch is not None and anomaly.leader_epoch >= 0:
        parts.append(f"leader epoch {anomaly.leader_epoch}")
    return " at " + ", ".join(parts)


def styled(one: Observation) -> str:
    """A summary in a few words, with its colour's markup."""
    style = _STYLES[one.verdicts[0]]
    return f"[{style}]{one.label} {counted(one.count, one.kind)}[/]"


def counted(number: int, kind: str) -> str:
    """A kind, and its number if there are several."""
    return f"{number:,} {kind}" if number > 1 else kind
