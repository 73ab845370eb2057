"""Reference: the longest time between two samples of a broker; see :mod:`spark_analysis.unwatched`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from checkers.views.row import Row, detail
from checkers.views.timeline import Timeline
from harness.facts import UNWATCHED_NS, Unwatched
from harness.model import CONTROLLER_ID

_MS = 1_000_000


def unwatched(timeline: Timeline) -> Iterator[Unwatched]:
    """Every long time without a look at a broker, of a sampled timeline."""
    lives: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in timeline.rows if timeline.sampled else ():
        if row["node"] < CONTROLLER_ID and _is_a_look(row):
            lives[row["node"], row["incarnation"]].append(row)
    for life, looks in sorted(lives.items()):
        looks.sort(key=lambda row: int(row["time_ns"]))
        for before, look in pairwise([looks[0], *looks]):
            unseen_ns = (detail(look).get("unseen_ms") or 0) * _MS
            longest_ns = max(look["time_ns"] - before["time_ns"], unseen_ns)
            if longest_ns > UNWATCHED_NS:
                at_ns = look["time_ns"]
                yield Unwatched(timeline.run, *life, at_ns - longest_ns, at_ns, unseen_ns > 0)


def _is_a_look(row: Row) -> bool:
    return row["kind"] == "state" or (row["kind"] == "final" and detail(row).get("source") == "live")
