"""How far the findings of each kind reach, counted over all of them, not over the examples that a verdict shows.

For each kind, partition and excuse both engines return the ranges of consecutive offsets that have findings
(:class:`harness.findings.FindingRange`); the verdict joins them with how the examples were judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from harness.checker import Anomaly, Extent, OffsetRange, Verdict
from harness.excuse import Excuse
from harness.findings import RANGES_KEPT, Finding, FindingRange

Group = tuple[str, str, int, Excuse | None]
"""A kind, a topic, a partition and an excuse."""


def group_of(one: Finding | FindingRange) -> Group:
    """The group with which a finding is counted."""
    return one.kind, one.topic, one.partition, one.excuse


def ranges(findings: Iterable[Finding]) -> list[FindingRange]:
    """Reference: the ranges of consecutive offsets that have findings, the first ones of each group."""
    groups: dict[tuple[str, Group], list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.offset is not None:
            groups[finding.run, group_of(finding)].append(finding)
    return [one for group in groups.values() for one in _ranges(group)]


def _ranges(group: Sequence[Finding]) -> list[FindingRange]:
    runs: list[list[Finding]] = []
    for finding in sorted(group, key=_offset):
        if runs and _offset(finding) <= _offset(runs[-1][-1]) + 1:
            runs[-1].append(finding)
        else:
            runs.append([finding])
    return [_range(found, len(runs), len(group)) for found in runs[:RANGES_KEPT]]


def _range(found: Sequence[Finding], several: int, placed: int) -> FindingRange:
    values = [one.value for one in found if one.value is not None]
    return FindingRange(
        found[0].run, found[0].kind, found[0].topic, found[0].partition, found[0].excuse,
        _offset(found[0]), _offset(found[-1]) + 1, len(found), min(values, default=None), max(values, default=None),
        several, placed,
    )  # fmt: skip


def _offset(finding: Finding) -> int:
    assert finding.offset is not None
    return finding.offset


def extents(judged: Sequence[tuple[Finding, Anomaly]], known: Sequence[FindingRange]) -> Iterator[Extent]:
    """How far each group of findings reaches, in the order in which the anomalies are listed.

    Args:
        judged: the findings that were kept, each with what became of it.
        known: the ranges of all findings of the run.
    """
    examples: dict[Group, list[tuple[Finding, Anomaly]]] = defaultdict(list)
    placed: dict[Group, list[FindingRange]] = defaultdict(list)
    for pair in judged:
        examples[group_of(pair[0])].append(pair)
    for one in known:
        placed[group_of(one)].append(one)
    for group, found in examples.items():
        yield _extent(found, sorted(placed[group], key=lambda one: one.first))


def _extent(examples: Sequence[tuple[Finding, Anomaly]], known: Sequence[FindingRange]) -> Extent:
    finding = examples[0][0]
    verdicts = {anomaly.verdict for _, anomaly in examples}
    with_offset = known[0].placed if known else 0
    return Extent(
        kind=finding.kind,
        topic=examples[0][1].topic,
        partition=examples[0][1].partition,
        verdicts=tuple(verdict for verdict in Verdict if verdict in verdicts),
        count=finding.total,
        examples=len(examples),
        ranges=tuple(OffsetRange(one.first, one.end, one.number, one.lowest, one.highest) for one in known),
        more_ranges=known[0].ranges - len(known) if known else 0,
        in_more_ranges=with_offset - sum(one.number for one in known),
        without_offset=finding.total - with_offset,
    )
