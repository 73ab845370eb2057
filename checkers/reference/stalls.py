"""Reference: finds high watermarks that stood still for too long (see :class:`harness.facts.Stall`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from checkers.reference.lasting import lasting, leads, version
from checkers.views.row import Row, where
from checkers.views.run_demands import RunDemands
from checkers.views.timeline import Timeline
from harness.facts import Stall
from harness.model import TopicPartition


def stalls(timeline: Timeline, demands: RunDemands) -> Iterator[Stall]:
    """Every stall of a run that states how long a laggard may stay in the ISR."""
    if demands.lag_ns is None:
        return
    waiting: dict[TopicPartition, list[Row]] = defaultdict(list)
    for row in timeline.rows:
        if row["topic"] is not None and leads(row) and _waits(row):
            waiting[where(row)].append(row)
    for place, group in waiting.items():
        for first, last in lasting(group, _standing, demands.lag_ns):
            yield Stall(
                timeline.run, *place, first["node"], first["incarnation"], first["leader_epoch"], tuple(first["isr"]),
                first["sequence"], first["time_ns"], last["sequence"], last["time_ns"], first["high_watermark"],
                first["log_end_offset"],
            )  # fmt: skip


def _standing(row: Row) -> object:
    return version(row), tuple(row["isr"]), row["high_watermark"]


def _waits(row: Row) -> bool:
    """Whether the log holds something that is not committed."""
    mark, end = row["high_watermark"], row["log_end_offset"]
    return mark is not None and end is not None and mark < end
