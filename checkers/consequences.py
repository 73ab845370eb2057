"""Which findings are other sides of one loss: which kind follows from which, and at which offsets."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from spark_analysis.answer import Finding

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
    }
)
"""The kinds that are about the offsets from ``offset`` to ``until``."""


def follows(finding: Finding, cause: Finding) -> bool:
    """Whether ``finding`` is another side of ``cause``."""
    if cause.kind not in CONSEQUENCE_OF.get(finding.kind, ()) or cause.offset is None or finding.offset is None:
        return False
    if (finding.topic, finding.partition) != (cause.topic, cause.partition):
        return False
    first, end = finding.offset, finding.offset + 1
    match finding.kind:
        case "nonmonotonic-poll" | "int-nonmonotonic-poll":
            end = (finding.other_offset or 0) + 1
        case kind if kind in SENDS:
            first, end = finding.other_offset or 0, (finding.other_offset or 0) + 1
        case "commit-beyond-end":
            first, end = finding.other_offset or 0, finding.offset
        case kind if kind in _RANGES:
            end = finding.until or 0
    values = {"vanished-read": finding.value, **dict.fromkeys(SENDS, finding.other_value)}
    return first <= cause.offset < end and values.get(finding.kind, cause.value) == cause.value
