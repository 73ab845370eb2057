"""DeleteRecords deletes what it is asked to, all of it, and nothing else (KIP-107).

Judged by the orders that the run has recorded (:mod:`checkers.views.delete_records_orders`). A run without orders is
judged by what clients were told (:mod:`checkers.views.metadata`): it is a ``wrong-deletion`` that a log begins behind a
record that was acknowledged, although retention cannot have reached any record (``guarantees.retention`` is false).
Whichever leader says so, and however old its answer is: nothing moves the start of a log but a deletion.

``wrong-deletion``, of a run with orders:

* a leader let a log begin at an offset that no DeleteRecords sent by then had asked for (its ``log_start`` row gives
  that as the reason), so that it deleted too much or too little, or what it had to refuse. For an order up to the high
  watermark that is the leader's in that row;
* a leader answered that the records are deleted, and no leader's log had begun at that offset or later by then;
* in the end the final leader's log begins before an offset up to which a leader has answered that everything is
  deleted. Not judged where a broker of the partition was started again, for a log's start is written to disk now and
  then, and a start may find an older offset; nor where another leader was elected, which may not have heard of the
  deletion.

A sampled timeline does not show when a log's start moved. Of those it has the last one; and it is a ``wrong-deletion``
there that a leader has answered that the records are deleted, where every leader that may have done so was seen since,
in the same epoch and life, with a log that begins before that offset: within a term a leader's log start only rises. A
broker that was seen in a later epoch before the order was sent is no such leader.

``unanswered-deletion``: a DeleteRecords was refused, or in virtual time never answered, for no reason. It is a kind of
its own, for nothing was deleted wrongly: a client that may delete records could not. Judged only where one broker led
in one epoch from the order to its end, by its own rows and the controller's; where no fault was in force on that broker
meanwhile; and where the client asked no other broker: there had been no other leader, or the order names the broker.

* OFFSET_OUT_OF_RANGE is justified where the order reaches beyond the leader's high watermark, REQUEST_TIMED_OUT always:
  a follower may be late. A lost connection, and any other error that the client itself makes, is no answer.
* A client that gave up later than the leader's timeout counts in virtual time alone (``guarantees.time``), where no
  answer is late because the machine is busy.

Severity: ``VIOLATION``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from checkers.views.conclusion import Conclusion, cite, detail, seen_at
from checkers.views.configured import Configured
from checkers.views.delete_records_orders import Order
from checkers.views.fault_journal import FaultJournal, deletes
from checkers.views.frames import Frames
from checkers.views.sampled_timelines import had_heard
from checkers.views.states import States
from checkers.wire_tap.attribution import attributed
from checkers.wire_tap.deletion_grounds import not_asked, not_obeyed, obeyed
from harness.anomaly import (
    NO_WORD,
    NOTHING,
    AnomalyKind,
    CauseAt,
    Found,
    Needs,
    Sampled,
    Unseen,
)
from harness.checker import Attribution, Evidence
from harness.downtime import in_force
from harness.error_codes import ErrorCode
from harness.facts import NodeFacts, StateInterval
from harness.findings import Finding
from harness.history.delete_records_log import GAVE_UP
from harness.model import NO_LEADER, NO_NODE, NodeId, TopicPartition, node_name

WRONG_DELETION = AnomalyKind(
    name="wrong-deletion",
    invariants=("R8",),
    meaning=(
        "Records were deleted that the run had not asked to delete, or DeleteRecords deleted something else than it "
        "was asked to, or nothing."
    ),
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.TIMELINE}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
    shown_by_metadata=True,
    unless_deleting=True,
)

UNANSWERED_DELETION = AnomalyKind(
    name="unanswered-deletion",
    invariants=("R8",),
    meaning="A leader refused a DeleteRecords, or did not answer it, for no reason.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.TIMELINE, Needs.FAULTS}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.NONE, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (WRONG_DELETION, UNANSWERED_DELETION)

_DELETIONS = frozenset({"retention", "delete_records"})
"""The events of random load that are no faults, but deletions."""


class _Term(NamedTuple):
    """A broker leads a partition in an epoch: since when, 0: not known, and what was seen of it then."""

    node: int
    leader_epoch: int
    elected_ns: int
    looks: Sequence[StateInterval]


_ERROR_CODES = {code.name: int(code) for code in ErrorCode}


def conclude(
    states: States, configured: Configured, journal: FaultJournal, node_facts: NodeFacts
) -> Iterator[Conclusion]:
    """Every DeleteRecords of one run that deleted something else, or was not obeyed although it had to be.

    Of a run without any: every partition of which clients were told that acknowledged records are deleted.
    """
    if not deletes(configured, journal):
        yield from _unasked(configured, node_facts)
    if journal.orders is None:
        return
    for place in sorted({*states.reported, *journal.orders}):
        orders = journal.orders.get(place, ())
        yield from _elsewhere(states, configured, place, [one for one in orders if not one.is_refused])
        undone = list((_kept if states.sampled else _undone)(states, configured, place, orders))
        yield from undone or _nowhere(states, configured, place, orders)
        if not states.sampled:
            yield from _unanswered(states, configured, journal, place, orders)


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on what the orders say that clients asked for, or were answered."""
    if finding.kind == UNANSWERED_DELETION.name:
        return attributed(not_obeyed(frames, finding))
    return attributed(not_asked(frames, finding) if finding.by_ns is None else obeyed(frames, finding))


# ---------------------------------------------------------------------------------------------------- what was deleted


def _unasked(configured: Configured, node_facts: NodeFacts) -> Iterator[Conclusion]:
    """Logs that were told to begin behind what was acknowledged, although nothing was to be deleted."""
    for told in node_facts.told_starts:
        if told.acknowledged is None or told.acknowledged >= told.log_start:
            continue
        place = TopicPartition(told.topic, told.partition)
        finding = configured.finding(
            "wrong-deletion", place, offset=told.acknowledged, until=told.log_start, node=NO_NODE, incarnation=0,
            row=told.row, time_ns=told.time_ns,
        )  # fmt: skip
        why = (
            f"Clients were told that the log of {place} begins at {told.log_start}. Records from offset "
            f"{told.acknowledged} on had been acknowledged; the run had not asked to delete any, and retention cannot "
            "have reached them."
        )
        row = {"node": NO_NODE, "incarnation": 0, "sequence": told.row}
        yield Conclusion(finding, why, (Evidence("timeline", row, f"the log begins at {told.log_start}"),))


def _elsewhere(
    states: States, configured: Configured, place: TopicPartition, taken: Sequence[Order]
) -> Iterator[Conclusion]:
    """Logs that began where no order asked for."""
    for one in (x for intervals in states.reported.get(place, {}).values() for x in intervals if _is_obeying(x)):
        start = one.log_start_offset or 0
        sent = [order for order in taken if order.invoked_ns <= one.begin_ns]
        asked = [(one.high_watermark or 0) if order.before is None else order.before for order in sent]
        if start not in asked:
            low = max((before for before in asked if before < start), default=0)
            yield _wrong(
                configured, place, one, (low, start),
                f"Node {one.node} was asked to delete what lies before {_listed(asked) or 'no offset'} of {place} "
                f"by then, and its log begins at {start}.",
            )  # fmt: skip


def _undone(
    states: States, configured: Configured, place: TopicPartition, orders: Sequence[Order]
) -> Iterator[Conclusion]:
    """Answers that records are deleted that no leader had deleted by then."""
    led = [x for intervals in states.reported.get(place, {}).values() for x in intervals if x.role == "leader"]
    for order in (one for one in orders if one.is_obeyed):
        known = [one for one in led if one.begin_ns <= (order.completed_ns or 0)]
        start = max((one.log_start_offset or 0 for one in known), default=0)
        if known and start < order.deleted:
            last = max(known, key=lambda one: (one.begin_ns, one.node))
            found = _wrong(
                configured, place, last, (start, order.deleted),
                f"A client was answered that what lies before {order.deleted} of {place} is deleted, and by then no "
                f"leader's log had begun later than at {start} (orders[{order.number}] in run.json).",
            )  # fmt: skip
            yield _answered(found, [order])


def _kept(
    states: States, configured: Configured, place: TopicPartition, orders: Sequence[Order]
) -> Iterator[Conclusion]:
    """The first answer that records are deleted which every leader that may have given it was seen to have since."""
    terms = _terms(states, place)
    for order in (one for one in orders if one.is_obeyed):
        one = _seen_of_all(states, place, terms, order)
        if one is not None:
            found = _wrong(
                configured, place, one, (one.log_start_offset or 0, order.deleted),
                f"A client was answered that what lies before {order.deleted} of {place} is deleted, and every leader "
                f"that may have said so was seen afterwards with a log that begins earlier, that of node {one.node} at "
                f"{one.log_start_offset} (orders[{order.number}] in run.json).",
            )  # fmt: skip
            yield _answered(found, [order])
            return


def _terms(states: States, place: TopicPartition) -> Sequence[_Term]:
    """The latest first: where everything is obeyed, that one shows it."""
    looks: dict[tuple[int, int], list[StateInterval]] = defaultdict(list)
    for one in (x for intervals in states.reported.get(place, {}).values() for x in intervals if x.role == "leader"):
        looks[one.leader_epoch or 0, one.node].append(one)
    elected_ns: dict[tuple[int, int], int] = {}
    for one in states.decided.get(place, ()):
        if one.leader is not None and one.leader != NO_LEADER:
            elected_ns.setdefault((one.leader_epoch or 0, one.leader), one.begin_ns)
    return [
        _Term(node, epoch, elected_ns.get((epoch, node), 0), looks.get((epoch, node), ()))
        for epoch, node in sorted({*looks, *elected_ns}, reverse=True)
    ]


def _seen_of_all(states: States, place: TopicPartition, terms: Sequence[_Term], order: Order) -> StateInterval | None:
    """What was seen of the latest leader, if every one that may have answered was seen not to have obeyed."""
    nodes, latest = states.reported.get(place, {}), None
    for term in terms:
        if had_heard(nodes.get(term.node, ()), term.leader_epoch, order.invoked_ns):
            continue
        look = _seen_not_to_obey(states, term, order)
        if look is None:
            return None
        latest = latest or look
    return latest


def _seen_not_to_obey(states: States, term: _Term, order: Order) -> StateInterval | None:
    """What was seen of a leader after the answer, in the life in which it may have given it, if it has not obeyed."""
    begun_ns = max(order.invoked_ns, term.elected_ns)
    since = (one for one in term.looks if one.end_ns >= (order.completed_ns or 0))
    alive = (one for one in since if states.lives[one.node][one.incarnation] <= begun_ns)
    return next((one for one in alive if (one.log_start_offset or 0) < order.deleted), None)


def _nowhere(
    states: States, configured: Configured, place: TopicPartition, orders: Sequence[Order]
) -> Iterator[Conclusion]:
    """A leader that still has what a leader had answered to have deleted."""
    leaders = [one for one in states.ended.get(place, {}).values() if (one.role, _source(one)) == ("leader", "live")]
    again = any(one.incarnation > 0 for intervals in states.reported.get(place, {}).values() for one in intervals)
    again |= any((one.leader_epoch or 0) > 0 for one in states.decided.get(place, ()))
    before = max((one.deleted for one in orders if one.is_obeyed), default=0)
    last = [one for one in orders if one.is_obeyed and one.deleted == before]
    for one in leaders if not again else ():
        if one.log_start_offset is not None and one.log_start_offset < before:
            found = _wrong(
                configured, place, one, (one.log_start_offset, before),
                f"A leader of {place} answered that it had deleted everything before {before}, and in the end the log "
                f"of node {one.node}, which leads, begins at {one.log_start_offset}.",
            )  # fmt: skip
            yield _answered(found, last)


def _wrong(
    configured: Configured, place: TopicPartition, one: StateInterval, offsets: tuple[int, int], why: str
) -> Conclusion:
    finding = configured.finding(
        "wrong-deletion", place, offset=offsets[0], until=offsets[1], leader_epoch=one.leader_epoch, **seen_at(one)
    )
    return Conclusion(finding, why, (cite(one, f"node {one.node}'s log begins at {one.log_start_offset}"),))


def _answered(found: Conclusion, orders: Sequence[Order]) -> Conclusion:
    """One that rests on the answers to these orders, with the times between which they came."""
    since_ns, by_ns = min(one.invoked_ns for one in orders), max(one.completed_ns or 0 for one in orders)
    return found._replace(finding=found.finding._replace(since_ns=since_ns, by_ns=by_ns))


# --------------------------------------------------------------------------------------------------- what was answered


def _unanswered(
    states: States, configured: Configured, journal: FaultJournal, place: TopicPartition, orders: Sequence[Order]
) -> Iterator[Conclusion]:
    for order in orders:
        leads = _sole_leader(states, journal, place, order)
        if leads is None or _is_accounted_for(configured, leads, order):
            continue
        what = "was never answered" if order.error == GAVE_UP else f"was refused with {order.error}"
        finding = states.finding(
            "unanswered-deletion", place, offset=order.before, leader_epoch=leads.leader_epoch,
            node=leads.node, incarnation=leads.incarnation, row=leads.sequence, time_ns=order.completed_ns,
            since_ns=order.invoked_ns, until=_ERROR_CODES.get(order.error or ""),
        )  # fmt: skip
        why = (
            f"The order to delete what lies before {_before(order)} of {place} {what}, and node {leads.node} led, and "
            f"no fault was in force on it, from when it was sent until then (orders[{order.number}] in run.json)."
        )
        shown = f"node {leads.node} leads, its high watermark is {leads.first_high_watermark}"
        yield Conclusion(finding, why, (cite(leads, shown),))


def _sole_leader(states: States, journal: FaultJournal, place: TopicPartition, order: Order) -> StateInterval | None:
    """The leader's last interval before the order, if it led all the time and no fault hit it; None: else."""
    elected = None if order.completed_ns is None else _elected(states, place, order, order.completed_ns)
    if elected is None or order.node not in (None, elected.leader) or elected.leader is None:
        return None
    reported = [
        x for x in states.reported.get(place, {}).get(elected.leader, ()) if x.begin_ns <= (order.completed_ns or 0)
    ]
    before = [one for one in reported if one.begin_ns < order.invoked_ns]
    since = reported[max(len(before) - 1, 0) :]
    terms = {(one.incarnation, one.leader_epoch, one.role) for one in since}
    if not before or terms != {(since[0].incarnation, elected.leader_epoch, "leader")}:
        return None
    return None if _is_hit(journal, elected.leader, order) else before[-1]


def _elected(states: States, place: TopicPartition, order: Order, until_ns: int) -> StateInterval | None:
    """The controller's last decision before the order, where none until its end named another leader or epoch."""
    decided = [one for one in states.decided.get(place, ()) if one.begin_ns <= until_ns]
    before = [one for one in decided if one.begin_ns < order.invoked_ns]
    first = {(one.leader, one.leader_epoch) for one in before[:1]}
    if not before or (order.node is None and first | {(one.leader, 0) for one in decided} != first):
        return None
    since = decided[len(before) - 1 :]
    return before[-1] if len({(one.leader, one.leader_epoch) for one in since}) == 1 else None


def _is_hit(journal: FaultJournal, node: int, order: Order) -> bool:
    """Whether a fault was in force on the node while the order was under way."""
    until_ns = order.completed_ns or order.invoked_ns
    return any(
        node_name(NodeId(node)) in fault["nodes"]
        and fault["kind"] not in _DELETIONS
        and in_force(fault["injected_ns"], fault["healed_ns"], order.invoked_ns, until_ns)
        for fault in journal.faults
    )


def _is_accounted_for(configured: Configured, leads: StateInterval, order: Order) -> bool:
    if order.error == GAVE_UP:
        return not configured.is_virtual or (order.completed_ns or 0) - order.invoked_ns < order.timeout_ns
    if order.error is None or order.error.startswith("_") or order.error == "REQUEST_TIMED_OUT":
        return True
    return order.error == "OFFSET_OUT_OF_RANGE" and (order.before or 0) > (leads.first_high_watermark or 0)


def _before(order: Order) -> str:
    return "the high watermark" if order.before is None else f"{order.before}"


def _source(one: StateInterval) -> str:
    return str(detail(one).get("source", "live"))


def _is_obeying(one: StateInterval) -> bool:
    return one.kind == "log_start" and one.role == "leader" and detail(one).get("reason") == "delete_records"


def _listed(offsets: Sequence[int]) -> str:
    return " and ".join(map(str, sorted(set(offsets))))
