"""Reference: finds replicas that stood still in an ISR for too long (see :class:`harness.facts.Lag`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from checkers.reference.lasting import lasting, leads, version
from checkers.views.row import Row, where
from checkers.views.run_demands import RunDemands
from checkers.views.timeline import Timeline
from harness.facts import Lag
from harness.model import CONTROLLER_ID, TopicPartition


def lags(timeline: Timeline, demands: RunDemands) -> Iterator[Lag]:
    """Every lag of a run that states how long one may last."""
    if demands.lag_ns is None:
        return
    by_place: dict[TopicPartition, dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in timeline.rows:
        if row["topic"] is not None and row["kind"] != "final" and row["node"] != CONTROLLER_ID:
            by_place[where(row)][row["node"]].append(row)
    for place, replicas in by_place.items():
        leading = [row for group in replicas.values() for row in group if leads(row)]
        for member, group in replicas.items():
            for last, until_ns in _standstills(group, demands.lag_ns):
                lacking = [row for row in leading if _lacks(row, member, last, until_ns)]
                for first, still in lasting(lacking, version, demands.lag_ns):
                    yield Lag(
                        timeline.run, *place, first["node"], first["incarnation"], first["leader_epoch"], member,
                        first["sequence"], first["time_ns"], still["sequence"], still["time_ns"],
                        first["log_end_offset"], last["log_end_offset"],
                    )  # fmt: skip


def _standstills(group: Sequence[Row], lag_ns: int) -> Iterator[tuple[Row, int | None]]:
    """Rows of a replica after which it has none for so long, with the time of the next; None: it has none."""
    ordered = sorted(group, key=lambda r: (r["time_ns"], r["incarnation"], r["sequence"]))
    until = [*(row["time_ns"] for row in ordered[1:]), None]
    for row, until_ns in zip(ordered, until, strict=True):
        if row["log_end_offset"] is not None and (until_ns is None or until_ns - row["time_ns"] >= lag_ns):
            yield row, until_ns


def _lacks(row: Row, member: int, last: Row, until_ns: int | None) -> bool:
    """Whether a leader's row has the member in its ISR while it stands still, and the leader's log is longer."""
    meanwhile = row["time_ns"] >= last["time_ns"] and (until_ns is None or row["time_ns"] < until_ns)
    ahead = row["log_end_offset"] is not None and row["log_end_offset"] > last["log_end_offset"]
    return meanwhile and ahead and row["node"] != member and member in row["isr"]
