"""Judges the findings that were only counted, because of each group just the first ones are kept.

Of each kind, partition and excuse only the first findings by offset are kept (``answer.KEPT_PER_GROUP``). Of the rest
the verdict knows the number, and that it begins at the last offset kept. Without predictions it judges the rest like
the last one kept, at the earliest and the latest time of its group, because a failure excuses what was there when it
happened; and what may have been deleted deletion by deletion (:mod:`checkers.reference.deleted_together`). With
predictions, a rest counts as predicted only where a prediction of its kind without an offset covers all of it:

* It is a ``VIOLATION`` when no prediction can mean it: the kind follows from no other, and no prediction of it is about
  an offset beyond the last one kept.
* Else it is ``INDETERMINATE``, and the run ``INCONCLUSIVE``. The run is so, too, when the rest may match a prediction
  that no kept finding matches.
* A finding whose cause may be in such a rest, and would make it ``EXPECTED`` there, is ``INDETERMINATE`` too.

The first ranges of offsets of the rest are known (``answer.RANGES_KEPT``), so a finding that follows from one of them
is attributed to it. Where not all ranges are known, and no kept finding explains it, it is ``INDETERMINATE``.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from checkers.verdicts.consequences import follows_one_of, reaches
from checkers.views.extents import Group, group_of
from harness.anomaly import AnomalyKind
from harness.checker import Anomaly, Prediction, Verdict
from harness.findings import Finding, FindingRange


class Rest(NamedTuple):
    """The findings of a group that were counted and not kept.

    Attributes:
        last: the last finding kept.
        number: how many were not.
        ranges: the ranges of offsets of the whole group, the lowest ones.
        verdict: the gravest verdict on one of them if nothing were predicted.
    """

    last: Finding
    number: int
    ranges: Sequence[FindingRange]
    verdict: Verdict

    def explains(self, finding: Finding, kind: AnomalyKind) -> bool:
        """Whether ``finding``, which is of ``kind``, follows from one of them."""
        beyond = self.last.offset is not None and reaches(finding, kind, self.last.offset)
        return beyond and any(follows_one_of(finding, kind, one) for one in self.ranges)

    def may_explain(self, finding: Finding, kind: AnomalyKind) -> bool:
        """Whether ``finding``, which is of ``kind``, may follow from one of them that is in no known range."""
        if not self.ranges or self.ranges[0].ranges == len(self.ranges):
            return False
        return follows_one_of(finding, kind, self.ranges[-1]._replace(end=sys.maxsize, lowest=None))

    def may_hold(self, prediction: Prediction) -> bool:
        """Whether ``prediction`` may mean one of them and is not about what was kept."""
        return self._means(prediction) and (prediction.offset is None or _after(prediction.offset, self.last))

    def is_covered(self, prediction: Prediction) -> bool:
        """Whether ``prediction`` means all of them."""
        return self._means(prediction) and prediction.offset is None

    def may_cause(self, finding: Finding, kinds: Collection[str]) -> bool:
        """Whether ``finding`` may follow from one of them, if it follows from ``kinds``."""
        here = (self.last.topic, self.last.partition) == (finding.topic, finding.partition)
        reached = self.last.offset is not None and finding.offset is not None and finding.offset >= self.last.offset
        return here and reached and self.last.kind in kinds

    def _means(self, prediction: Prediction) -> bool:
        places = ((prediction.topic, self.last.topic), (prediction.partition, self.last.partition))
        alike = (prediction.kind, prediction.verdict) == (self.last.kind, self.verdict)
        return alike and all(wanted in (None, actual) for wanted, actual in places)


def rests(
    findings: Sequence[Finding], known: Sequence[FindingRange], gravest: Callable[[Finding], Verdict]
) -> list[Rest]:
    """What was not kept of the groups of ``findings``, which are in the order in which they are kept.

    Args:
        findings: those that were kept.
        known: the ranges of all groups.
        gravest: the gravest verdict on what is like a finding and at any time of its group.
    """
    groups: dict[Group, list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[group_of(finding)].append(finding)
    placed: dict[Group, list[FindingRange]] = defaultdict(list)
    for one in sorted(known, key=lambda one: one.first):
        placed[group_of(one)].append(one)
    short = {group: found[-1] for group, found in groups.items() if found[-1].total > len(found)}
    return [Rest(last, last.total - len(groups[group]), placed[group], gravest(last)) for group, last in short.items()]


def judged_rests(
    left: Sequence[Rest], predicted: Sequence[Prediction], unmet: Sequence[Prediction], consequences: Collection[str]
) -> Iterator[Anomaly]:  # fmt: skip
    """One anomaly for each rest that the predictions leave open or contradict.

    Args:
        left: the rests.
        predicted: all predictions.
        unmet: those that nothing kept matches.
        consequences: the kinds that follow from others.
    """
    for rest in left:
        if any(rest.may_hold(p) for p in unmet):
            yield _anomaly(rest, Verdict.INDETERMINATE)
        elif rest.verdict is Verdict.VIOLATION and not any(rest.is_covered(p) for p in predicted):
            open_to = rest.last.kind in consequences or any(rest.may_hold(p) for p in predicted)
            yield _anomaly(rest, Verdict.INDETERMINATE if open_to else rest.verdict)


def _anomaly(rest: Rest, verdict: Verdict) -> Anomaly:
    last = rest.last
    where = "" if last.offset is None else f", at offset {last.offset} or beyond"
    counted = f"{rest.number} more of this kind were found in the partition{where}, and were only counted"
    why = "nothing predicts them" if verdict is Verdict.VIOLATION else "whether they were predicted cannot be decided"
    return Anomaly(last.kind, verdict, last.topic, last.partition, None, None, None, f"{counted}: {why}.")


def _after(offset: int, last: Finding) -> bool:
    return last.offset is not None and offset > last.offset
