"""A broker refuses no valid send of a correct producer.

``unjustified-refusal``: a send ended with an error of the broker's that nothing justifies.

* **A send refused as invalid.** INVALID_REQUEST, INVALID_REQUIRED_ACKS, INVALID_RECORD, CORRUPT_MESSAGE,
  UNSUPPORTED_VERSION and UNSUPPORTED_COMPRESSION_TYPE refuse a request or a batch as malformed
  (``ProduceRequest.validateRecords``, ``LogValidator``). Clients here use the API versions of the broker's ApiVersions
  response, ask for acks 0, 1 or all, give each record a key, and compress nothing. No fault and no setting of a cluster
  makes such a send invalid. Errors that a setting or a clock may justify are not among these: sizes, timestamps,
  message formats, authorization.
* **A batch refused as out of sequence.** OUT_OF_ORDER_SEQUENCE_NUMBER and INVALID_PRODUCER_EPOCH, although the
  process was acknowledged each send to the partition before with acks=all, at least one, and the last of these records
  is in a log in the end: no sequence number is missing, so the next one follows (KIP-98). It is only judged where
  each broker that may have answered had that record. So no broker may have led, by its rows, without it: in an older
  epoch than the record's while the send was under way, as a deposed leader that has not heard of its successor does;
  or with a log that ended before the record, since it was acknowledged. Nor may there have been, until then, an unclean
  election of a later epoch; a later leader that did not write a row, or, before 2.1, any (a follower may have had
  another record there, KIP-320); a ``corrupt_log`` (a batch of another cluster has producer ids, too) or a controller
  whose disk was wiped (it gives out the same producer ids again).

Of the second sort only sends of background producers are judged, where a process is one client with one send under way:
an error of one batch of a producer fails all that it has under way, whatever the broker answered to those. Sampled
timelines are not judged, which do not show every leader. Nor are sends of transactions, and of clients that are not
seawall's.

Severity: ``VIOLATION``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from checkers.views.conclusion import Conclusion
from checkers.views.configured import Configured
from checkers.views.fault_journal import FaultJournal
from checkers.views.generations import since
from checkers.views.states import States
from faults import traits_of
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
from harness.checker import Evidence
from harness.facts import ClientFacts, Refusal, Standing, StateInterval
from harness.fault import DiskEffect
from harness.model import CONTROLLER, TopicPartition

UNJUSTIFIED_REFUSAL = AnomalyKind(
    name="unjustified-refusal",
    invariants=("R11",),
    meaning="A broker refused a valid send that nothing had given it a reason to refuse.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.HISTORY, Needs.TIMELINE, Needs.FAULTS, Needs.ENDS}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (UNJUSTIFIED_REFUSAL,)


def conclude(
    states: States, configured: Configured, journal: FaultJournal, client_facts: ClientFacts
) -> Iterator[Conclusion]:
    """Every breach in one run: one for each error of a partition, or each producer that was to be out of order."""
    if configured.wanted is not None and not configured.wanted.brokers:
        return
    for one in sorted(client_facts.refusals, key=lambda one: one.row):
        place = TopicPartition(one.topic, one.partition)
        if one.standing is None or _had_the_record(states, configured, journal, place, one, stood=one.standing):
            yield _conclusion(configured, place, one)


def _conclusion(configured: Configured, place: TopicPartition, one: Refusal) -> Conclusion:
    refused = Evidence("history", {"index": one.row}, f"the send of value {one.value} ended with {one.error}")
    known = {"value": one.value, "row": one.row, "time_ns": one.time_ns, "process": one.process}
    if one.standing is None:
        many = f"{one.sends} sends" if one.sends > 1 else "A send"
        why = (
            f"{many} ended with {one.error}, first that of value {one.value} by process {one.process}; all were valid."
        )
        return Conclusion(configured.finding("unjustified-refusal", place, **known), why, (refused,))
    epoch, offset, _, _ = one.standing
    log: dict[str, int | str] = {"topic": place.topic, "partition": place.partition, "offset": offset}
    return Conclusion(
        configured.finding("unjustified-refusal", place, offset=offset, leader_epoch=epoch, **known),
        f"The send of value {one.value} by process {one.process} ended with {one.error}, and all that it had sent "
        f"there before was acknowledged, the last of it at offset {offset}, where it still is.",
        (refused, Evidence("replica_logs", log, "the record that it had sent before")),
    )


def _had_the_record(
    states: States,
    configured: Configured,
    journal: FaultJournal,
    place: TopicPartition,
    one: Refusal,
    *,
    stood: Standing,
) -> bool:
    """Whether each broker that may have refused the send had the record that its process had sent before."""
    if (
        states.sampled
        or configured.wanted is None
        or configured.wanted.shared_producers
        or _was_mixed_up(journal, one.time_ns)
    ):
        return False
    reported = [[x for x in intervals if x.kind == "state"] for intervals in states.reported.get(place, {}).values()]
    led = {
        x.leader_epoch or 0
        for intervals in reported
        for x in intervals
        if x.role == "leader" and x.begin_ns <= one.time_ns
    }
    begun = {x.leader_epoch or 0 for x in states.decided.get(place, ()) if x.begin_ns <= one.time_ns}
    later = {epoch for epoch in led | begun if epoch > stood.leader_epoch}
    if (
        later - led
        or later.intersection(states.unclean.get(place, ()))
        or (later and not since(configured.generation, "2.1"))
    ):
        return False
    steps = [
        step
        for intervals in reported
        for step in zip_longest(intervals, intervals[1:])
        if step[0].begin_ns <= one.time_ns
    ]
    return not any(_lacked(row, after, stood) for row, after in steps if row.role == "leader")


def _lacked(led: StateInterval, after: StateInterval | None, stood: Standing) -> bool:
    """Whether a leader may not have had the record then; ``after``: its next state, None: none."""
    if led.begin_ns >= stood.acked_ns and (led.first_log_end or 0) <= stood.offset:
        return True
    went_on = after is None or after.begin_ns >= stood.invoked_ns
    return went_on and (led.leader_epoch or 0) < stood.leader_epoch


def _was_mixed_up(journal: FaultJournal, until_ns: int) -> bool:
    """Whether a log may have held batches of another producer of that id by then."""
    begun = [
        fault for fault in journal.excusing if fault["injected_ns"] is not None and fault["injected_ns"] <= until_ns
    ]
    taken = [(traits_of(fault["kind"]).disk, fault["nodes"]) for fault in begun]
    return any(
        disk is DiskEffect.DAMAGE or (disk is DiskEffect.EVERYTHING and CONTROLLER in nodes) for disk, nodes in taken
    )
