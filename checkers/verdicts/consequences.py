"""Attributes findings to one loss: which kind follows from which, and at which offsets."""

from __future__ import annotations

from harness.anomaly import AnomalyKind, CauseAt
from harness.checker import Prediction
from harness.findings import Finding, FindingRange


def follows(finding: Finding, kind: AnomalyKind, cause: Finding) -> bool:
    """Whether ``finding``, which is of ``kind``, is another side of ``cause``."""
    if cause.offset is None or not _may_follow(finding, kind, cause):
        return False
    first, end = _span(finding, kind)
    return first <= cause.offset < end and _value(finding, kind) in (None, cause.value)


def follows_one_of(finding: Finding, kind: AnomalyKind, causes: FindingRange) -> bool:
    """Whether one of the findings of a range is such that ``finding`` is another side of it."""
    if not _may_follow(finding, kind, causes):
        return False
    (first, end), value = _span(finding, kind), _value(finding, kind)
    named = value is None or causes.lowest is None or causes.highest is None or causes.lowest <= value <= causes.highest
    return first < causes.end and causes.first < end and named


def follows_if_predicted(finding: Finding, kind: AnomalyKind, prediction: Prediction) -> bool:
    """Whether ``finding``, which is of ``kind``, is another side of what ``prediction`` means, if that has happened."""
    places = ((prediction.topic, finding.topic), (prediction.partition, finding.partition))
    here = all(wanted in (None, actual) for wanted, actual in places)
    if not here or finding.offset is None or prediction.kind not in kind.follows_from:
        return False
    first, end = _span(finding, kind)
    return prediction.offset is None or first <= prediction.offset < end


def reaches(finding: Finding, kind: AnomalyKind, offset: int) -> bool:
    """Whether ``finding`` may follow from something at ``offset`` or above."""
    return finding.offset is not None and _span(finding, kind)[1] > offset


def _may_follow(finding: Finding, kind: AnomalyKind, cause: Finding | FindingRange) -> bool:
    here = (finding.topic, finding.partition) == (cause.topic, cause.partition)
    return here and finding.offset is not None and cause.kind in kind.follows_from


def _span(finding: Finding, kind: AnomalyKind) -> tuple[int, int]:
    """At which offsets what it follows from is, the end excluded."""
    first, other = finding.offset or 0, finding.other_offset or 0
    match kind.cause_at:
        case CauseAt.STEP_BACK:
            return first, other + 1
        case CauseAt.EARLIER_RECORD:
            return other, other + 1
        case CauseAt.BEYOND_END:
            return other, first
        case CauseAt.RANGE:
            return first, finding.until or 0
        case CauseAt.OFFSET | CauseAt.SAME_RECORD:
            return first, first + 1


def _value(finding: Finding, kind: AnomalyKind) -> int | None:
    """The value that what it follows from is about; None: any."""
    match kind.cause_at:
        case CauseAt.EARLIER_RECORD:
            return finding.other_value
        case CauseAt.SAME_RECORD:
            return finding.value
        case _:
            return None
