"""A leader commits, and acknowledges acks=all, only while its ISR has ``min.insync.replicas`` members.

* ``advance-below-min-isr``: a leader's high watermark rose while its ISR was smaller than ``min.insync.replicas``, or
  than the replication factor if that is less (T8). Consumers read records that are on fewer disks than the
  configuration asks for. The row in which the ISR shrinks does not count: the watermark may have risen before.
* ``ack-below-min-isr``: a send with acks=all was acknowledged whose record the leader had appended with an ISR as small
  as that (T9). The leader must refuse such a send before it appends (NOT_ENOUGH_REPLICAS), however soon the ISR grows
  again and whenever the acknowledgement comes: a leader of 3.7 or later commits nothing before the ISR has grown.
  Judged by the append: in the leader's first row with this version of the ISR its log ended at or before the record, in
  the last row behind it, and a replica's log holds the record in that leader's epoch. If no log holds the record any
  more, the acknowledgement must have come between the two rows; and if another leader, or this one in another epoch,
  had a high watermark above the record by then, that leader may have appended it, and there is no finding.

Severity: ``VIOLATION``. ``advance-below-min-isr`` is ``DOCUMENTED`` before 3.7 (KAFKA-15583).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from checkers.views.conclusion import Conclusion, cite, seen_at
from checkers.views.configured import Configured
from checkers.views.states import States
from harness.anomaly import (
    NO_WORD,
    NOTHING,
    AnomalyKind,
    CauseAt,
    Found,
    Needs,
    Sampled,
    Since,
    Unseen,
)
from harness.checker import Evidence
from harness.facts import AckFacts, AcksBelowMinIsr, StateInterval
from harness.model import TopicPartition

ADVANCE_BELOW_MIN_ISR = AnomalyKind(
    name="advance-below-min-isr",
    invariants=("T8",),
    meaning="A leader committed records with fewer than min.insync.replicas in sync.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.TIMELINE, Needs.ISR}),
    follows_from=("lost-write", "vanished-read"),
    cause_at=CauseAt.RANGE,
    excuses=NOTHING,
    since=Since(generation="3.7", why_not_before="the watermark does not wait for min.insync.replicas (KAFKA-15583)"),
    sampled=Sampled(found=Found.NONE, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)

ACK_BELOW_MIN_ISR = AnomalyKind(
    name="ack-below-min-isr",
    invariants=("T9",),
    meaning="A leader took acks=all with fewer than min.insync.replicas in sync.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.TIMELINE, Needs.ENDS, Needs.ISR}),
    follows_from=("lost-write", "vanished-read"),
    cause_at=CauseAt.RANGE,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.NONE, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (ADVANCE_BELOW_MIN_ISR, ACK_BELOW_MIN_ISR)


def conclude(states: States, configured: Configured, ack_facts: AckFacts) -> Iterator[Conclusion]:
    """Every breach in one run: one for each interval of a leader with such an ISR."""
    for place, nodes in states.reported.items():
        least = configured.least_isr(place)
        for one in (x for intervals in nodes.values() for x in intervals):
            if one.role == "leader" and one.isr is not None and least is not None and len(one.isr) < least:
                yield from _advanced(states, place, one, least)
    for acks in ack_facts.acks_below_min_isr:
        yield from _taken(states, configured, TopicPartition(acks.topic, acks.partition), acks)


def _advanced(states: States, place: TopicPartition, one: StateInterval, least: int) -> Iterator[Conclusion]:
    """A leader with an ISR smaller than ``least`` whose watermark rose; at once, where it did so as it took office."""
    known = _highest(states, place, one)
    took_more = known is not None and (one.first_high_watermark or 0) > known
    row = one.sequence if took_more else one.rose
    if row is None:
        return
    first = known if took_more and known is not None else one.first_high_watermark or 0
    yield Conclusion(
        states.finding(
            "advance-below-min-isr", place,
            offset=first, until=one.high_watermark, leader_epoch=one.leader_epoch, **seen_at(one, row),
        ),
        f"Node {one.node}, leader in epoch {one.leader_epoch}, committed offsets {first} to "
        f"{(one.high_watermark or 1) - 1} with an ISR of {list(one.isr or ())}, fewer than {least}.",
        (cite(one, f"node {one.node}'s high watermark rises with an ISR of {list(one.isr or ())}", row),),
    )  # fmt: skip


def _highest(states: States, place: TopicPartition, one: StateInterval) -> int | None:
    """The highest watermark that any broker can have had before a leader took office; None: it was leading already."""
    reported = states.reported[place]
    before = [x for x in reported[one.node] if (x.incarnation, x.sequence) < (one.incarnation, one.sequence)]
    if before and before[-1].role == "leader":
        return None
    others = (
        x for node, intervals in reported.items() if node != one.node for x in intervals if x.begin_ns <= one.begin_ns
    )
    return max((x.high_watermark or 0 for x in chain(before, others)), default=0)


def _taken(
    states: States, configured: Configured, place: TopicPartition, acks: AcksBelowMinIsr
) -> Iterator[Conclusion]:
    least = configured.least_isr(place)
    if least is None or acks.members >= least or (not acks.logged and _may_be_another_s(states, place, acks)):
        return
    row = {"node": acks.node, "incarnation": acks.incarnation}
    claims = ((acks.sequence, "leads"), (acks.end_sequence, "still leads"))
    yield Conclusion(
        states.finding(
            "ack-below-min-isr", place,
            offset=acks.first, until=acks.last + 1, value=acks.value, leader_epoch=acks.leader_epoch,
            row=acks.sequence, time_ns=acks.acked_ns, **row,
        ),
        f"Node {acks.node}, leader in epoch {acks.leader_epoch}, took offsets from {acks.first} to {acks.last} with "
        f"{acks.members} in sync, fewer than {least}, and they were acknowledged with acks=all.",
        (
            Evidence("history", {"index": acks.row}, f"value {acks.value} was acknowledged at offset {acks.first}"),
            *(Evidence("timeline", {**row, "sequence": at}, f"node {acks.node} {what} with an ISR of {acks.members}")
              for at, what in claims),
        ),
    )  # fmt: skip


def _may_be_another_s(states: States, place: TopicPartition, acks: AcksBelowMinIsr) -> bool:
    """Whether another node, or this one in another epoch, had led by then and had committed what was acknowledged."""
    mine = (acks.node, acks.incarnation, acks.leader_epoch)
    led = (
        x
        for x in chain.from_iterable(states.reported[place].values())
        if x.role == "leader" and x.begin_ns <= acks.end_ns
    )
    return any((x.node, x.incarnation, x.leader_epoch) != mine and (x.high_watermark or 0) > acks.first for x in led)
