"""Who lags leaves the ISR: nobody waits for long for a replica that does not come (T13).

``laggard-in-sync``: a leader had a replica in its ISR that stood still, with less in its log than the leader, for
longer than a laggard may stay (``guarantees.laggards_leave_ms``: four times ``replica.lag.time.max.ms`` and what a
request to the controller may take), and all the while nothing was known to keep the leader from proposing to leave it
out. The leader was alive: it said something in each quarter of that time. And no fault was in force but those of the
laggard alone, or of the links between the two, nor had the leader's clock been wrong before. To stand still is to have
no row at all: a slow follower, which is always behind and always moves, is not judged.

Severity: ``VIOLATION``. Until a laggard is left out every send with acks=all waits for it in vain. Of a run that does
not say how long a laggard may stay, nothing is judged, nor of a sampled timeline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from checkers.conclusion import Conclusion, RunFacts, lag_allowed_ns
from checkers.row import Row
from harness.checker import Evidence
from harness.model import TopicPartition
from spark_analysis.facts import Lag

KINDS = ("laggard-in-sync",)


class _Span(NamedTuple):
    begin_ns: int
    end_ns: int


def conclude(run: RunFacts) -> Iterator[Conclusion]:
    """Every breach in one run: one for each time that a replica stood still."""
    allowed_ns = lag_allowed_ns(run.guarantees)
    for lag in run.facts.lags:
        spans = _undisturbed(lag, run.excusing)
        if allowed_ns is not None and any(span.end_ns - span.begin_ns >= allowed_ns for span in spans):
            yield _told(run, lag)


def _told(run: RunFacts, lag: Lag) -> Conclusion:
    row = {"node": lag.node, "incarnation": lag.incarnation}
    finding = run.finding(
        "laggard-in-sync", TopicPartition(lag.topic, lag.partition), offset=lag.reached, until=lag.log_end,
        leader_epoch=lag.leader_epoch, row=lag.end_sequence, time_ns=lag.end_ns, other_node=lag.member, **row,
    )  # fmt: skip
    why = (
        f"Node {lag.node}, leader in epoch {lag.leader_epoch}, kept node {lag.member} in the ISR for "
        f"{(lag.end_ns - lag.begin_ns) / 1e9:.3g} s in which that one's log did not get beyond {lag.reached}."
    )
    says = ((lag.sequence, f"has its log up to {lag.log_end}"), (lag.end_sequence, "still waits"))
    return Conclusion(
        finding,
        why,
        tuple(
            Evidence("timeline", {**row, "sequence": at}, f"node {lag.node} {what}, and node {lag.member} in the ISR")
            for at, what in says
        ),
    )


def _undisturbed(lag: Lag, faults: Iterable[Row]) -> Iterator[_Span]:
    """The times during a lag in which no fault was in force that may have kept the leader from doing its duty."""
    begin_ns = lag.begin_ns
    for fault in sorted(_disturbing(lag, faults), key=lambda one: one.begin_ns):
        yield _Span(begin_ns, min(fault.begin_ns, lag.end_ns))
        begin_ns = max(begin_ns, fault.end_ns)
    yield _Span(begin_ns, lag.end_ns)


def _disturbing(lag: Lag, faults: Iterable[Row]) -> Iterator[_Span]:
    laggard, leader = str(lag.member), str(lag.node)
    for fault in faults:
        begin_ns = fault["injected_ns"] if fault["injected_ns"] is not None else fault["aimed_ns"]
        healed_ns = lag.end_ns if fault["heal_proven_ns"] is None else fault["heal_proven_ns"]
        if fault["kind"] == "clock" and leader in fault["nodes"]:
            yield _Span(begin_ns, max(begin_ns, lag.end_ns))
        elif not {laggard} <= set(fault["nodes"]) <= {laggard, leader}:
            yield _Span(begin_ns, healed_ns)
