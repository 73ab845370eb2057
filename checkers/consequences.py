"""Which findings are other sides of one loss: which kind follows from which, and at which offsets."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from spark_analysis.answer import Finding, FindingRange

CONSEQUENCE_OF: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "vanished-read": ("lost-write",),
        "replica-divergence": ("lost-write", "vanished-read"),
        "inconsistent-offsets": ("lost-write", "vanished-read"),
        "hw-regression": ("lost-write", "vanished-read"),
        "incomplete-leader": ("lost-write", "vanished-read"),
        "incomplete-candidate": ("lost-write", "vanished-read"),
        "committed-cut": ("lost-write", "vanished-read"),
        "unjustified-advance": ("lost-write", "vanished-read"),
        "unjustified-join": ("lost-write", "vanished-read"),
        "advance-below-min-isr": ("lost-write", "vanished-read"),
        "ack-below-min-isr": ("lost-write", "vanished-read"),
        "epoch-disorder": ("lost-write", "vanished-read", "replica-divergence"),
        "lineage-break": ("lost-write", "vanished-read", "replica-divergence"),
        "nonmonotonic-poll": ("lost-write", "vanished-read"),
        "int-nonmonotonic-poll": ("lost-write", "vanished-read", "duplicate"),
        "nonmonotonic-send": ("lost-write",),
        "G0-realtime": ("lost-write",),
        "G1c-realtime": ("lost-write", "vanished-read"),
        "commit-beyond-end": ("lost-write", "vanished-read"),
        "poll-skip": ("wrong-marker",),
        "int-poll-skip": ("wrong-marker",),
        "uncommitted-deletion": ("lost-write", "vanished-read"),
        "stalled-watermark": ("laggard-in-sync",),
    }
)
"""Which kinds follow from which others of the same partition: one loss, seen from several sides. They are about the
same offset, or about a range with that offset in it; a send out of order follows from the loss of the record that was
acknowledged, or delivered, before it."""

SENDS = frozenset({"nonmonotonic-send", "G0-realtime", "G1c-realtime"})
"""The kinds that are about a record, and about another one that was acknowledged, or delivered, before it."""

_RANGES = frozenset(
    {
        "hw-regression",
        "incomplete-leader",
        "incomplete-candidate",
        "committed-cut",
        "advance-below-min-isr",
        "ack-below-min-isr",
        "unjustified-advance",
        "unjustified-join",
        "lineage-break",
        "uncommitted-deletion",
        "stalled-watermark",
    }
)
"""The kinds that are about the offsets from ``offset`` to ``until``."""


def follows(finding: Finding, cause: Finding) -> bool:
    """Whether ``finding`` is another side of ``cause``."""
    if cause.offset is None or not _may_follow(finding, cause):
        return False
    first, end = _span(finding)
    return first <= cause.offset < end and _value(finding) in (None, cause.value)


def follows_one_of(finding: Finding, causes: FindingRange) -> bool:
    """Whether one of the findings of a range is such that ``finding`` is another side of it."""
    if not _may_follow(finding, causes):
        return False
    (first, end), value = _span(finding), _value(finding)
    named = value is None or causes.lowest is None or causes.highest is None or causes.lowest <= value <= causes.highest
    return first < causes.end and causes.first < end and named


def reaches(finding: Finding, offset: int) -> bool:
    """Whether ``finding`` may follow from something at ``offset`` or above."""
    return finding.offset is not None and _span(finding)[1] > offset


def _may_follow(finding: Finding, cause: Finding | FindingRange) -> bool:
    here = (finding.topic, finding.partition) == (cause.topic, cause.partition)
    return here and finding.offset is not None and cause.kind in CONSEQUENCE_OF.get(finding.kind, ())


def _span(finding: Finding) -> tuple[int, int]:
    """At which offsets what it follows from is, the end excluded."""
    first, other = finding.offset or 0, finding.other_offset or 0
    match finding.kind:
        case "nonmonotonic-poll" | "int-nonmonotonic-poll":
            return first, other + 1
        case kind if kind in SENDS:
            return other, other + 1
        case "commit-beyond-end":
            return other, first
        case kind if kind in _RANGES:
            return first, finding.until or 0
    return first, first + 1


def _value(finding: Finding) -> int | None:
    """The value that what it follows from is about; None: any."""
    if finding.kind in SENDS:
        return finding.other_value
    return finding.value if finding.kind == "vanished-read" else None
