"""A share group is done with a record once an accept, or a reject, of it was confirmed (KIP-932).

* ``lost-acknowledgement``: a consumer of a share group accepted or rejected a record, and that was confirmed; after
  that another consumer of the group began, and was given the record. The leader of the partition confirms when the
  share coordinator has stored it with acks=all in ``__share_group_state``, from where the next leader reads it.
* ``excess-delivery``: a consumer was given a record whose delivery count was beyond the limit of its group. The leader
  archives a record that comes back as often as that.

Only a consumer counts that polled for the first time after the confirmation: what a client has fetched before it may
give to its application much later. The record is the same when its value is, too: an unclean election may have put
another one at its offset.

A leader that does not know of its successor gives out what it takes to be free, without asking any other broker; so a
``lost-acknowledgement`` is ``INDETERMINATE`` when the partition had a new leader before the confirmation, which may
have given that, and this was shortly before that consumer polled for the first time, or a fault had brokers cut off
from one another or stand still from then on until it was given the record.
Counts are judged against the limit alone: a leader keeps them in memory until something is said of the record, so a new
leader begins anew.

Severity: ``VIOLATION``. A ``lost-acknowledgement`` is ``DOCUMENTED`` when every broker failed lossily at one time since
the confirmation (see :mod:`checkers.views.lossy_failures`); and ``INDETERMINATE`` when the configuration permits
unclean elections and by then there had been a fault that may take a replica out, or such an election, for those of the
share coordinator's topic are not recorded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from checkers.views.cuts import LEARNS_NS, MAY_BE_DEPOSED, may_be_deposed
from checkers.views.fault_journal import FaultJournal
from checkers.views.frames import Frames
from checkers.views.history import History
from checkers.views.row import Row, where
from checkers.views.states import States
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import attributed
from checkers.wire_tap.share_grounds import confirmed, given
from harness.anomaly import (
    NO_WORD,
    NOTHING,
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
from harness.checker import Attribution, Evidence
from harness.findings import Finding
from harness.model import TopicPartition

LOST_ACKNOWLEDGEMENT = AnomalyKind(
    name="lost-acknowledgement",
    invariants=("C20",),
    meaning="A share group was given a record again after its accept or reject had been confirmed.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.HISTORY}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.NEVER,
        fault=False,
        lossy_failure=LossyFailure.BETWEEN_COMMITS,
        with_cause=False,
        own_topic="share.coordinator.state.topic.replication.factor",
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
EXCESS_DELIVERY = AnomalyKind(
    name="excess-delivery",
    invariants=("C21",),
    meaning="A share group was given a record more often than its limit permits, by the record's own count.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset(),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (LOST_ACKNOWLEDGEMENT, EXCESS_DELIVERY)

TERMINAL = frozenset({"accept", "reject"})
"""After which a group is done with a record."""


class Shared(NamedTuple):
    """A record, as a share group knows it."""

    group: str
    where: TopicPartition
    offset: int
    value: int


class Began(NamedTuple):
    """The first poll of a share consumer: its row, and when."""

    row: int
    time_ns: int


def find(history: History) -> Iterator[Finding]:
    """Reference: every such delivery of one run; of those of one record the first."""
    began, confirmed = first_polls(history), _confirmed(history)
    limits = {row["op"]: row["delivery_count"] for row in history.operations if _is(row, "acquire", "invoke")}
    found: dict[tuple[str, Shared], Finding] = {}
    for row in sorted(deliveries(history), key=lambda one: int(one["index"])):
        record, limit, first = shared(row), limits.get(row["op"]), began.get(row["process"])
        before = [one for one in confirmed.get(record, ()) if first is not None and one["index"] < first.row]
        if before and first is not None:
            last = max(before, key=lambda one: int(one["index"]))
            about = _about(history, "lost-acknowledgement", row)._replace(until=last["index"])
            found.setdefault(
                ("lost-acknowledgement", record), about._replace(since_ns=last["time_ns"], by_ns=first.time_ns)
            )
        if None not in (limit, row["delivery_count"]) and row["delivery_count"] > limit:
            about = _about(history, "excess-delivery", row)
            found.setdefault(("excess-delivery", record), about._replace(until=row["delivery_count"]))
    yield from found.values()


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    given = f"Process {finding.process} was given value {finding.value} at offset {finding.offset}"
    if finding.kind == "excess-delivery":
        return f"{given} as its delivery {finding.until}, which is beyond the limit of its group."
    return f"{given}, and its group had been confirmed to be done with it before the process polled for the first time."


def doubt(finding: Finding, states: States, journal: FaultJournal) -> str:
    """Why a former leader may have given the record; empty: it has not.

    It gives a share group what it takes to be free, although its successor has confirmed that the group is done with
    it: to a consumer that polled for the first time shortly after a fault that may depose a broker, or the election of
    the successor, or before.
    """
    if finding.kind != LOST_ACKNOWLEDGEMENT.name:
        return ""
    if finding.since_ns is None or finding.by_ns is None or finding.time_ns is None:
        return ""
    since_ns, until_ns = finding.by_ns - LEARNS_NS, finding.time_ns
    decided = states.decided.get(TopicPartition(finding.topic, finding.partition), ())
    later = [one.begin_ns for one in decided if one.kind == "election" and (one.leader_epoch or 0) > 0]
    successors = [time_ns for time_ns in later if time_ns <= finding.since_ns]
    stays = may_be_deposed(journal, since_ns, until_ns)
    return MAY_BE_DEPOSED if successors and (stays or max(successors) >= since_ns) else ""


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on the delivery; and on the confirmation before it, or on the count."""
    if finding.kind == "excess-delivery":
        return attributed(given(frames, finding, finding.until))
    return attributed(confirmed(frames, finding), given(frames, finding))


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The confirmation, and the delivery."""
    if finding.kind == "lost-acknowledgement" and finding.until is not None:
        yield Evidence("history", {"index": finding.until}, "the group was confirmed to be done with the record")
    if finding.row is not None:
        yield Evidence("history", {"index": finding.row}, f"process {finding.process} was given the record")
    yield from witnesses.fault(finding)


def deliveries(history: History) -> Iterator[Row]:
    """The rows of records that share consumers were given, which are known."""
    for row in history.operations:
        if _is(row, "acquire", "ok") and None not in (row["topic"], row["group"], row["offset"], row["value"]):
            yield row


def shared(row: Row) -> Shared:
    """The record of a row about one."""
    return Shared(row["group"], where(row), row["offset"], row["value"])


def first_polls(history: History) -> dict[int, Began]:
    """The first poll of every share consumer, by its process."""
    found: dict[int, Began] = {}
    for row in history.operations:
        if _is(row, "acquire", "invoke"):
            one = Began(row["index"], row["time_ns"])
            found[row["process"]] = min(found.get(row["process"], one), one)
    return found


def _confirmed(history: History) -> dict[Shared, list[Row]]:
    """By record, the rows that confirm that its group is done with it."""
    found: dict[Shared, list[Row]] = defaultdict(list)
    for row in history.operations:
        known = None not in (row["topic"], row["group"], row["offset"], row["value"])
        if _is(row, "acknowledge", "ok") and known and row["acknowledgement"] in TERMINAL:
            found[shared(row)].append(row)
    return found


def _is(row: Row, f: str, type_: str) -> bool:
    return (row["f"], row["type"]) == (f, type_)


def _about(history: History, kind: str, row: Row) -> Finding:
    return Finding(
        history.run, kind, *where(row),
        offset=row["offset"],
        value=row["value"],
        row=row["index"],
        time_ns=row["time_ns"],
        process=row["process"],
    )  # fmt: skip
