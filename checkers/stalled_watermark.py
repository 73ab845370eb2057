"""A leader commits what every member of its ISR has: its high watermark does not stand still.

``stalled-watermark``: a leader led with one unchanged ISR that is large enough (``min.insync.replicas``), and for as
long as a laggard may stay in it (``guarantees.laggards_leave_ms``) its high watermark did not move, and lay below what
its log's end was at the beginning. By then each member must have caught up with that end, so that the watermark passes
it, or have left the ISR. A replica that has caught up without being in the ISR is waited for, too, but no longer.

The leader was alive: it wrote a row in each quarter of that time. And no fault was in force on it, on a member of
that ISR, on a link of one of them or on the controller, nor had the leader's clock been wrong before. What happens to a
broker outside of the ISR keeps no leader from committing.

Severity: ``VIOLATION``. Every send with acks=all waits in vain, and consumers are given nothing new. Runs without
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
from harness.facts import NodeFacts, Stall
from harness.model import TopicPartition, is_broker

STALLED_WATERMARK = AnomalyKind(
    name="stalled-watermark",
    invariants=("C16",),
    meaning="A leader committed nothing for too long, although its ISR had time to catch up.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.TIMELINE, Needs.ISR}),
    follows_from=("laggard-in-sync",),
    cause_at=CauseAt.RANGE,
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
KINDS = (STALLED_WATERMARK,)


def conclude(configured: Configured, journal: FaultJournal, node_facts: NodeFacts) -> Iterator[Conclusion]:
    """Every breach in one run: one for each time that a watermark stood still."""
    for stall in node_facts.stalls:
        least = configured.least_isr(TopicPartition(stall.topic, stall.partition))
        if least is None or len(stall.isr) < least:
            continue
        if had_time(configured, journal, stall.node, Span(stall.begin_ns, stall.end_ns), partial(_disturbs, stall)):
            yield _conclusion(configured, stall)


def _disturbs(stall: Stall, nodes: Collection[str]) -> bool:
    """Whether a fault of these nodes may have disturbed the leader: it is not only of brokers outside of the ISR."""
    concerned = {str(node) for node in (stall.node, *stall.isr)}
    return not all(is_broker(node) and node not in concerned for node in nodes)


def _conclusion(configured: Configured, stall: Stall) -> Conclusion:
    row = {"node": stall.node, "incarnation": stall.incarnation}
    finding = configured.finding(
        "stalled-watermark", TopicPartition(stall.topic, stall.partition), offset=stall.high_watermark,
        until=stall.log_end, leader_epoch=stall.leader_epoch, row=stall.end_sequence, time_ns=stall.end_ns, **row,
    )  # fmt: skip
    isr = list(stall.isr)
    why = (
        f"Node {stall.node}, leader in epoch {stall.leader_epoch}, committed nothing for "
        f"{(stall.end_ns - stall.begin_ns) / 1e9:.3g} s with an ISR of {isr}, although its log ended "
        f"at {stall.log_end} at the beginning, and its high watermark was {stall.high_watermark}."
    )
    claims = ((stall.sequence, f"has its log up to {stall.log_end}"), (stall.end_sequence, "still leads"))
    return Conclusion(
        finding,
        why,
        tuple(
            Evidence(
                "timeline",
                {**row, "sequence": at},
                f"node {stall.node} {what}, with an ISR of {isr} and a high watermark of {stall.high_watermark}",
            )
            for at, what in claims
        ),
    )
