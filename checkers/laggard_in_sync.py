"""The leader removes a follower from the ISR that has not caught up for ``replica.lag.time.max.ms`` (T13).

``laggard-in-sync``: a leader had a replica in its ISR that stood still, with less in its log than the leader, for
longer than a laggard may stay (``guarantees.laggards_leave_ms``: four times ``replica.lag.time.max.ms`` and what a
request to the controller may take), while nothing is known to have kept the leader from proposing to remove it. The
leader was alive: it wrote a row in each quarter of that time. No fault was in force except those of the laggard alone,
or of the links between the two, and the leader's clock had never been wrong. A replica that stands still has no row at
all: a slow follower, which is always behind and always moves, is not judged.

Severity: ``VIOLATION``: until the laggard is removed every send with acks=all waits for it. Runs without
``laggards_leave_ms``, and sampled timelines, are not judged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from checkers.views.conclusion import Conclusion
from checkers.views.configured import Configured
from checkers.views.fault_journal import FaultJournal
from checkers.views.quiet_times import Span, had_time
from harness.anomaly import (
    NO_WORD,
    AnomalyKind,
    CauseAt,
    Excuses,
    Found,
    LossyFailure,
    Needs,
    Retention,
    Sampled,
    Unseen,
)
from harness.checker import Evidence
from harness.facts import Lag, NodeFacts
from harness.model import TopicPartition

LAGGARD_IN_SYNC = AnomalyKind(
    name="laggard-in-sync",
    invariants=("C16", "T13"),
    meaning="A leader kept a replica in the ISR that had stood still for too long.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.TIMELINE, Needs.ISR}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=False,
        retention=Retention.NEVER,
        fault=True,
        lossy_failure=LossyFailure.NEVER,
        with_cause=False,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.NONE, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (LAGGARD_IN_SYNC,)


def conclude(configured: Configured, journal: FaultJournal, node_facts: NodeFacts) -> Iterator[Conclusion]:
    """Every breach in one run: one for each time that a replica stood still."""
    for lag in node_facts.lags:
        if had_time(configured, journal, lag.node, Span(lag.begin_ns, lag.end_ns), partial(_disturbs, lag)):
            yield _conclusion(configured, lag)


def _disturbs(lag: Lag, nodes: Collection[str]) -> bool:
    """Whether a fault of these nodes is not one of the laggard alone, or of the links between the two."""
    laggard, leader = str(lag.member), str(lag.node)
    return not {laggard} <= set(nodes) <= {laggard, leader}


def _conclusion(configured: Configured, lag: Lag) -> Conclusion:
    row = {"node": lag.node, "incarnation": lag.incarnation}
    finding = configured.finding(
        "laggard-in-sync", TopicPartition(lag.topic, lag.partition), offset=lag.reached, until=lag.log_end,
        leader_epoch=lag.leader_epoch, row=lag.end_sequence, time_ns=lag.end_ns, other_node=lag.member, **row,
    )  # fmt: skip
    why = (
        f"Node {lag.node}, leader in epoch {lag.leader_epoch}, kept node {lag.member} in the ISR for "
        f"{(lag.end_ns - lag.begin_ns) / 1e9:.3g} s in which that one's log did not get beyond {lag.reached}."
    )
    claims = ((lag.sequence, f"has its log up to {lag.log_end}"), (lag.end_sequence, "still waits"))
    return Conclusion(
        finding,
        why,
        tuple(
            Evidence("timeline", {**row, "sequence": at}, f"node {lag.node} {what}, and node {lag.member} in the ISR")
            for at, what in claims
        ),
    )
