"""The reference engine: runs every promise's own ``find``, in plain Python, over lists of rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from checkers.completeness.history_is_complete import counts, history_gaps, lives, replicas
from checkers.reference.deleted_together import deleted_together
from checkers.reference.facts import facts
from checkers.registry import PROMISES
from checkers.views.extents import ranges
from checkers.views.rows import RunRows
from harness.facts import joined
from harness.findings import KEPT_PER_GROUP, Answers, Finding, of_group, position


def answer(runs: Sequence[RunRows], report: Callable[[str], None] = lambda stage: None) -> Answers:
    """The answers to all questions about ``runs``; ``report`` is called with what is done from now on."""
    of_runs = [(rows, find(rows, report)) for rows in runs]
    found = [finding for _, own in of_runs for finding in own]
    report("the facts")
    return Answers(
        findings=kept(found),
        deleted=[one for rows, own in of_runs for one in deleted_together(rows, own)],
        ranges=ranges(found),
        ends=[end for rows in runs for end in rows.ends.values()],
        history_gaps=[gap for rows in runs for gap in history_gaps(rows)],
        lives=[life for rows in runs for life in lives(rows)],
        replicas=[replica for rows in runs for replica in replicas(rows)],
        counts={rows.run: counts(rows) for rows in runs},
        facts=joined([facts(rows) for rows in runs]),
    )


def find(rows: RunRows, report: Callable[[str], None] = lambda stage: None) -> list[Finding]:
    """Every finding about one run; ``report`` as above."""
    found: list[Finding] = []
    for number, promise in enumerate(PROMISES, 1):
        report(f"rule {number} of {len(PROMISES)}: {promise.KINDS[0].name}")
        found += promise.find(rows)
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
