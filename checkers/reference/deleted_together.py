"""Groups the findings that a deletion may excuse by the deletion that removed their records.

Whether the configuration permits a deletion depends on when it happened, and on how old the record was by then. Of a
group of findings the first ones are kept, and what is true of them need not be true of the rest: each deletion has its
own time. A deletion moves a log's start from one offset to another, so between two consecutive offsets at which any
replica's log is known to have started, all records go at once. The last of them stands for them all: an order that
covers it covers the others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator

from checkers.views.timeline import Timeline
from harness.findings import Finding, of_group, position
from harness.model import TopicPartition


def deleted_together(timeline: Timeline, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Reference: see :attr:`harness.findings.Answers.deleted`; ``findings``: all of the run."""
    starts = {place: sorted({one.log_start for one in found}) for place, found in timeline.log_starts.items()}
    groups: dict[tuple[str, TopicPartition, int | None], list[Finding]] = defaultdict(list)
    for one in findings:
        if one.excuse == "retention":
            place = TopicPartition(one.topic, one.partition)
            before = None if one.offset is None else bisect_right(starts.get(place, ()), one.offset)
            groups[one.kind, place, before].append(one)
    for group in groups.values():
        yield of_group(max(group, key=position), group)
