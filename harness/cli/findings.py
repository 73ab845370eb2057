"""What was found in a run, by verdict and kind, in lines for a terminal: what breaks a promise first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from harness.checker import EXCUSED, Anomaly, Extent, OffsetRange, RunVerdict, Verdict

_STYLES = {
    Verdict.VIOLATION: "bold red",
    Verdict.EXPECTED: "green",
    Verdict.INDETERMINATE: "yellow",
    Verdict.DOCUMENTED: "dim",
    Verdict.WEAK: "dim",
}
"""In the order in which they are printed: first what decides the outcome."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The anomalies of one kind that were judged alike.

    Attributes:
        verdicts: on them; several where they have one excuse, which does not hold for all of them.
        extents: by partition.
    """

    kind: str
    verdicts: tuple[Verdict, ...]
    extents: Sequence[Extent]

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(one.count for one in self.extents)

    @property
    def label(self) -> str:
        """The verdicts on them."""
        return " or ".join(self.verdicts)

    @property
    def is_excused(self) -> bool:
        """Whether the configuration or the acks gave all of them away."""
        return EXCUSED.issuperset(self.verdicts)

    def has(self, anomaly: Anomaly) -> bool:
        """Whether it is one of them, as far as its kind, verdict and place say."""
        places = {(one.topic, one.partition) for one in self.extents}
        mine = anomaly.kind == self.kind and anomaly.verdict in self.verdicts
        return mine and (anomaly.topic, anomaly.partition) in places


def observations(verdict: RunVerdict) -> list[Observation]:
    """What was found, by verdict and kind."""
    groups: dict[tuple[tuple[Verdict, ...], str], list[Extent]] = {}
    for extent in verdict.extents:
        groups.setdefault((extent.verdicts, extent.kind), []).append(extent)
    order = list(_STYLES)
    ordered = sorted(groups, key=lambda group: [order.index(one) for one in group[0]])
    return [Observation(kind, verdicts, groups[verdicts, kind]) for verdicts, kind in ordered]


def details(verdict: RunVerdict) -> Iterator[str]:
    """Why there is no verdict; of each kind, by verdict, how many anomalies there are, where, and the first one."""
    yield from verdict.reasons
    yield from verdict.limits
    for one in observations(verdict):
        yield _line(one, next(a for a in verdict.anomalies if one.has(a)))


def _line(one: Observation, first: Anomaly) -> str:
    """Violations with all their places; what is excused with the first place and the excuse."""
    name = f"{one.label} {counted(one.count, one.kind)}"
    if one.is_excused:
        return f"{name}{'' if one.count == 1 else ', the first'}{_place(first)}: {_excuse(first)}"
    if one.count == 1:
        return f"{name}{_place(first)}: {first.why}"
    return f"{name}: {_reach(one.extents)}. The first: {first.why}"


def _excuse(anomaly: Anomaly) -> str:
    """Why it has its verdict, without the verdict."""
    return anomaly.because.removeprefix(f"{anomaly.verdict.value}: ")


_RANGES_SHOWN = 6
"""How many ranges of offsets one kind of anomaly is shown with; the report has more."""


def _reach(extents: Sequence[Extent]) -> str:
    """Where all anomalies are."""
    spans = [(f"{x.topic}-{x.partition}", span) for x in extents for span in x.ranges]
    said = []
    for place, ours in groupby(spans[:_RANGES_SHOWN], key=itemgetter(0)):
        said.append(f"{place} at " + ", ".join(_offsets(span) for _, span in ours))
    hidden = len(spans[_RANGES_SHOWN:]) + sum(one.more_ranges for one in extents)
    nowhere = sum(one.without_offset for one in extents)
    more = [f"{hidden:,} more ranges of offsets"] if hidden else []
    more += [f"{nowhere:,} that name no offset"] if nowhere else []
    return "; ".join([*said, *more])


def _offsets(span: OffsetRange) -> str:
    last = span.end_offset - 1
    return f"offset {last}" if span.first_offset == last else f"offsets {span.first_offset} to {last}"


def _place(anomaly: Anomaly) -> str:
    """Where it is, as far as that is known: a node is nowhere, and records of old formats carry no leader epoch."""
    if anomaly.topic is None:
        return ""
    parts = [f"{anomaly.topic}-{anomaly.partition}"]
    if anomaly.offset is not None:
        parts[0] += f" offset {anomaly.offset}"
    if anomaly.leader_epoch is not None and anomaly.leader_epoch >= 0:
        parts.append(f"leader epoch {anomaly.leader_epoch}")
    return " at " + ", ".join(parts)


def styled(one: Observation) -> str:
    """It in a few words, with the markup of its colour."""
    style = _STYLES[one.verdicts[0]]
    return f"[{style}]{one.label} {counted(one.count, one.kind)}[/]"


def counted(number: int, kind: str) -> str:
    """A kind, and how many there are, if several."""
    return f"{number:,} {kind}" if number > 1 else kind
