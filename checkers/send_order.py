"""A record that is sent after another one was acknowledged, or delivered, comes after it in the log.

* ``int-nonmonotonic-send``: two sends of one operation to a partition, and the later one has the lower offset. Such an
  operation is a transaction, or a burst of a producer that numbers its records; of a burst acknowledged sends count.
* ``nonmonotonic-send``: a process sends a record after another one was acknowledged to it in the same partition, and it
  is stored at a lower offset.
* ``G0-realtime``: the same between two processes, where the process's own acknowledgements do not show it.
* ``G1c-realtime``: a record that is sent after another one was delivered, to any process, is stored at a lower offset,
  and no acknowledgement with acks=all shows it. Deliveries of the final read do not count: nothing is sent afterwards.

A record's offset is that of its acknowledgement; where that has none, or the send's outcome is unknown, that of its
deliveries and of the final leader's log, if they name one offset alone. An acknowledgement of acks=0 without an offset
comes before the record is stored, so that nothing comes after it.

Sends that overlap may be appended in any order, and other records may come between those of one operation.

Severity: ``VIOLATION``. ``WEAK`` when either sender waited for less than all in-sync replicas: the record may have been
given up, and its offset free again; but a delivered record was committed, whatever its sender waited for.
``DOCUMENTED`` when an unclean election after the earlier acknowledgement, or of a later epoch than the record that was
delivered (a consumer may be given it long after it was fetched), elected a leader whose log ended no later than the
offset of the later record, and the configuration permits such elections.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from checkers.inconsistent_offsets import places, sent_ns
from checkers.views.frames import Frames
from checkers.views.history import History
from checkers.views.partition_ends import PartitionEnds
from checkers.views.replica_logs import ReplicaLogs
from checkers.views.row import ALL, Row, Send, where
from checkers.views.timeline import Timeline
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import attributed
from checkers.wire_tap.poll_grounds import delivered
from checkers.wire_tap.send_grounds import acknowledged, order_of_sends
from harness.anomaly import (
    AnomalyKind,
    CauseAt,
    Excuses,
    Found,
    InScenarios,
    LossyFailure,
    Needs,
    Retention,
    Sampled,
    Unseen,
)
from harness.checker import Attribution, Evidence
from harness.excuse import Excuse
from harness.findings import Finding
from harness.model import TopicPartition

INT_NONMONOTONIC_SEND = AnomalyKind(
    name="int-nonmonotonic-send",
    invariants=("C5",),
    meaning="Records of one operation, a transaction or a burst of numbered records, are stored in another order than "
    "they were sent in.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.VALUES, Needs.ENDS}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.NEVER,
        fault=False,
        lossy_failure=LossyFailure.NEVER,
        with_cause=False,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=InScenarios(word=None, predicted_by_word=False, after_any_loss=True),
    permitted_by="",
)

NONMONOTONIC_SEND = AnomalyKind(
    name="nonmonotonic-send",
    invariants=("C5",),
    meaning="A process's record was stored before one whose acknowledgement it had waited for.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.HISTORY, Needs.VALUES, Needs.ENDS}),
    follows_from=("lost-write",),
    cause_at=CauseAt.EARLIER_RECORD,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.NEVER,
        fault=False,
        lossy_failure=LossyFailure.NEVER,
        with_cause=True,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.RECORD_GIVEN_UP),
    in_scenarios=InScenarios(word=None, predicted_by_word=False, after_any_loss=True),
    permitted_by="",
)

G0_REALTIME = AnomalyKind(
    name="G0-realtime",
    invariants=("C6",),
    meaning="A record was stored before one that another process had been acknowledged before.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.HISTORY, Needs.VALUES, Needs.ENDS}),
    follows_from=("lost-write",),
    cause_at=CauseAt.EARLIER_RECORD,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.NEVER,
        fault=False,
        lossy_failure=LossyFailure.NEVER,
        with_cause=True,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.RECORD_GIVEN_UP),
    in_scenarios=InScenarios(word=None, predicted_by_word=False, after_any_loss=True),
    permitted_by="",
)

G1C_REALTIME = AnomalyKind(
    name="G1c-realtime",
    invariants=("C6",),
    meaning="A record was stored before one that a consumer had been given before it was sent.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.HISTORY, Needs.VALUES, Needs.ENDS}),
    follows_from=("lost-write", "vanished-read"),
    cause_at=CauseAt.EARLIER_RECORD,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.NEVER,
        fault=False,
        lossy_failure=LossyFailure.NEVER,
        with_cause=True,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.RECORD_GIVEN_UP),
    in_scenarios=InScenarios(word=None, predicted_by_word=False, after_any_loss=True),
    permitted_by="",
)
KINDS = (INT_NONMONOTONIC_SEND, NONMONOTONIC_SEND, G0_REALTIME, G1C_REALTIME)


class Placed(NamedTuple):
    """The offset of a process's record, or of a delivered one.

    ``invoked_row``: its send; ``acked``: row ``row`` is its acknowledgement. ``leader_epoch``: that of a delivered
    record, ``since_ns``: when its send began; None: not known.
    """

    where: TopicPartition
    op: int
    mop: int
    row: int
    time_ns: int
    process: int
    offset: int
    value: int
    acks: int
    invoked_row: int
    acked: bool
    leader_epoch: int | None = None
    since_ns: int | None = None


def find(history: History, timeline: Timeline, logs: ReplicaLogs, ends: PartitionEnds) -> Iterator[Finding]:
    """Reference: every send of one run that was appended before one that it was sent after."""
    where_is = {key: min(offsets) for key, offsets in places(history, logs, ends).items() if len(offsets) == 1}
    ended = [row for row in history.operations if row["f"] == "send" and row["type"] != "invoke" and _is_ordered(row)]
    known = sorted(_acknowledged(ended, where_is), key=lambda t: (t.where, t.op, t.mop, t.row))
    for _, group in groupby(known, key=lambda t: (t.where, t.op)):
        for before, after in pairwise(group):
            if after.mop > before.mop and after.offset < before.offset:
                yield _disorder(timeline, "int-nonmonotonic-send", before, after)
    stored = sorted(_stored(history.sends, where_is), key=lambda t: t.where)
    by_place = sorted(_delivered(history), key=lambda t: t.where)
    delivered = {place: list(same) for place, same in groupby(by_place, key=lambda t: t.where)}
    for place, same in groupby(stored, key=lambda t: t.where):
        yield from _late(timeline, list(same), delivered.get(place, []))


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    before = f"value {finding.other_value} at offset {finding.other_offset}"
    if finding.kind == "int-nonmonotonic-send":
        what = f"value {finding.value} to offset {finding.offset}"
        return f"Process {finding.process} sent {what} after {before}, in one operation."
    stored = f"Value {finding.value} is at offset {finding.offset}"
    what = "delivery" if finding.kind == "G1c-realtime" else "acknowledgement"
    return f"{stored}, and was sent after the {what} of {before}."


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on either record's acknowledgement or delivery, and on the order in which the client sent them."""
    records = ((finding.offset, finding.value), (finding.other_offset, finding.other_value))
    grounds = [acknowledged(frames, finding, *record) for record in records]
    grounds += [delivered(frames, finding, *record) for record in records]
    return attributed(*grounds, order_of_sends(frames, finding))


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The two acknowledgements, or the delivery, and what the replicas hold."""
    yield from witnesses.send(finding._replace(value=finding.other_value))
    if finding.kind == "G1c-realtime":
        yield from witnesses.reads(finding, finding.other_offset, finding.other_value)
    yield from witnesses.send(finding)
    yield from witnesses.holders(finding)


def _is_ordered(row: Row) -> bool:
    """Whether the row says where a record is that must not precede those that its operation sent before."""
    return bool(row["txn"]) or (row["type"] == "ok" and row["offset"] is not None)


def _acknowledged(ended: Iterable[Row], where_is: Mapping[tuple[TopicPartition, int], int]) -> Iterator[Placed]:
    for row in ended:
        offset = row["offset"]
        if offset is None and row["type"] != "fail":
            offset = where_is.get((where(row), row["value"]))
        if offset is not None:
            yield Placed(
                where(row), row["op"], row["mop"], row["index"], row["time_ns"], row["process"], offset, row["value"],
                row["acks"], row["index"], acked=True,
            )  # fmt: skip


def _stored(sends: Iterable[Send], where_is: Mapping[tuple[TopicPartition, int], int]) -> Iterator[Placed]:
    for send in sends:
        offset = send.offset
        if offset is None and send.type != "fail":
            offset = where_is.get((send.where, send.value))
        if offset is not None:
            acked = send.type == "ok" and (send.offset is not None or send.acks != 0)
            yield Placed(
                send.where, send.op, 0, send.row, send.completed_ns, send.process, offset, send.value, send.acks,
                send.invoked_row, acked, since_ns=send.invoked_ns,
            )  # fmt: skip


def _delivered(history: History) -> Iterator[Placed]:
    """Every record that was delivered before the final read, by its first delivery."""
    begun = sent_ns(history)
    for (place, offset, value), reads in history.delivered.items():
        early = [read for read in reads if read.sound and not read.final]
        if early and value is not None:
            first, time_ns = min(read.row for read in early), min(read.time_ns for read in early)
            epochs = [read.leader_epoch for read in early if read.leader_epoch is not None]
            yield Placed(
                place, -1, 0, first, time_ns, -1, offset, value, ALL, first, True, min(epochs, default=None),
                begun.get((place, value)),
            )  # fmt: skip


def _late(timeline: Timeline, stored: Sequence[Placed], delivered: Sequence[Placed]) -> Iterator[Finding]:
    """For every send, the first earlier proof of a higher offset, when that came before it began."""
    first_placed: Placed | None = None
    first_delivered: Placed | None = None
    own: dict[int, Placed] = {}
    unheard = sorted(delivered, key=lambda t: (t.offset, t.row))
    by_offset = sorted(stored, key=lambda t: (-t.offset, t.row))
    for offset, same in groupby(by_offset, key=lambda t: t.offset):
        while unheard and unheard[-1].offset > offset:
            first_delivered = _first(first_delivered, unheard.pop())
        here = list(same)
        for after in here:
            own_before, other_before, read = (
                _since(placed, after) for placed in (own.get(after.process), first_placed, first_delivered)
            )
            kind, before = ("nonmonotonic-send", own_before) if own_before else ("G0-realtime", other_before)
            if read and (before is None or before.acks != ALL):
                kind, before = "G1c-realtime", read
            if before:
                yield _disorder(timeline, kind, before, after)
        for one in (placed for placed in here if placed.acked):
            first_placed = _first(first_placed, one)
            own[one.process] = _first(own.get(one.process), one)


def _first(known: Placed | None, one: Placed) -> Placed:
    return one if known is None else min(known, one, key=lambda t: t.row)


def _since(placed: Placed | None, after: Placed) -> Placed | None:
    """``placed`` if ``after`` was sent after that."""
    return placed if placed is not None and placed.row < after.invoked_row else None


def _disorder(timeline: Timeline, kind: str, before: Placed, after: Placed) -> Finding:
    return Finding(
        timeline.run, kind, *after.where,
        offset=after.offset,
        value=after.value,
        excuse=_excuse(timeline, before, after),
        row=after.row,
        time_ns=after.time_ns,
        process=after.process,
        acks=after.acks,
        other_offset=before.offset,
        other_value=before.value,
        since_ns=before.since_ns,
    )  # fmt: skip


def _excuse(timeline: Timeline, before: Placed, after: Placed) -> Excuse | None:
    if {before.acks, after.acks} != {ALL}:
        return "acks"
    gone = timeline.cut_off(after.where, after.offset, before.time_ns, before.leader_epoch)
    return "unclean" if gone else None
