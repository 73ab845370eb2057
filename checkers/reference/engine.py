"""The reference engine: runs every promise's own ``find``, in plain Python, over lists of rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from checkers.completeness.history_is_complete import counts, history_gaps, lives, replicas
from checkers.reference.deleted_together import deleted_together
from checkers.reference.facts import facts
from checkers.registry import PROMISES
from checkers.views.extents import ranges
from checkers.views.history import History
from checkers.views.partition_ends import PartitionEnds
from checkers.views.timeline import Timeline
from harness.facts import joined
from harness.findings import KEPT_PER_GROUP, Answers, Finding, of_group, position
from harness.parts import Parts


def answer(runs: Sequence[Parts], report: Callable[[str], None] = lambda stage: None) -> Answers:
    """The answers to all questions about ``runs``; ``report`` is called with what is done from now on.

    Each run is given by its :class:`History`, its :class:`Timeline`, and whatever else a rule may name.
    """
    of_runs = [(views, find(views, report)) for views in runs]
    found = [finding for _, own in of_runs for finding in own]
    report("the facts")
    return Answers(
        findings=kept(found),
        deleted=[one for views, own in of_runs for one in deleted_together(views.of(Timeline), own)],
        ranges=ranges(found),
        ends=[end for views in runs for end in views.of(PartitionEnds).by_partition.values()],
        history_gaps=[gap for views in runs for gap in history_gaps(views.of(History))],
        lives=[life for views in runs for life in lives(views.of(Timeline))],
        replicas=[replica for views in runs for replica in views.given_to(replicas)],
        counts={views.of(History).run: views.given_to(counts) for views in runs},
        facts=joined([facts(views) for views in runs]),
    )


def find(views: Parts, report: Callable[[str], None] = lambda stage: None) -> list[Finding]:
    """Every finding about one run; ``report`` as above."""
    found: list[Finding] = []
    for number, promise in enumerate(PROMISES, 1):
        report(f"rule {number} of {len(PROMISES)}: {promise.KINDS[0].name}")
        found += views.given_to(promise.find)
    return found


def kept(findings: Iterable[Finding]) -> list[Finding]:
    """The first findings of each kind, partition and excuse, with the totals of each group."""
    groups: dict[tuple[object, ...], list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[finding.run, finding.kind, finding.topic, finding.partition, finding.excuse].append(finding)
    return [
        of_group(finding, group)
        for group in groups.values()
        for finding in sorted(group, key=position)[:KEPT_PER_GROUP]
    ]
