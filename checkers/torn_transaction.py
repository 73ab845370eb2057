"""A transaction is visible as a whole or not at all, and to no consumer before it is committed, not even its own.

* ``precommitted-read``: an operation is given a record that it sends itself.
* ``torn-transaction``: one record of a transaction of unknown outcome was delivered, so it was committed, and another
  one is in no final read that came to the end of its partition, or to the offset that its client or a read_uncommitted
  consumer was given for it. (Of a transaction that ended ``ok`` that is a ``lost-write``; a record of one that failed
  is an ``aborted-read``; and of one that was delivered because it was committed, and is gone in the end, that is a
  ``vanished-read``.)

None of this is promised to read_uncommitted consumers.

Severity: ``VIOLATION``. A ``torn-transaction`` is ``DOCUMENTED`` when the missing record may have been deleted on
purpose (see :mod:`checkers.views.deletions`) and the configuration permits that: its offset was, or, where that is
unknown, a deletion since it was sent went beyond where the leaders since then had begun; or when an unclean election
may have given it up and the configuration permits such elections: one of a later epoch than that of a leader which can
have written it, whose winner lacked that offset, or, where that is unknown, anything that this leader had written; or
whose winner lacked the marker, so that the next one aborts it (see :mod:`checkers.views.transaction_markers`). What is
delivered because a commit marker took another one's place does not prove that a transaction was committed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from checkers.views.frames import Frames
from checkers.views.history import History
from checkers.views.partition_ends import PartitionEnds
from checkers.views.replica_logs import ReplicaLogs
from checkers.views.row import Send, where
from checkers.views.timeline import Timeline
from checkers.views.transaction_markers import gave_up_some, proofs, replaced
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import UNKNOWN_END, attributed
from checkers.wire_tap.poll_grounds import delivered, sent_uncommitted, withheld_in_the_end
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
from harness.excuse import Excuse
from harness.findings import Finding
from harness.model import TopicPartition

PRECOMMITTED_READ = AnomalyKind(
    name="precommitted-read",
    invariants=("C14",),
    meaning="A transaction was given a record that it was itself about to write.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.VALUES, Needs.ENDS}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)

TORN_TRANSACTION = AnomalyKind(
    name="torn-transaction",
    invariants=("C13",),
    meaning="One record of a transaction was delivered, and another one is gone.",
    shows_loss=True,
    shown_by_clients=True,
    relies_on=frozenset({Needs.HISTORY, Needs.VALUES, Needs.ENDS}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.OF_A_SENT_RECORD,
        fault=False,
        lossy_failure=LossyFailure.AFTER_BEGUN,
        with_cause=False,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (PRECOMMITTED_READ, TORN_TRANSACTION)


def find(history: History, timeline: Timeline, logs: ReplicaLogs, ends: PartitionEnds) -> Iterator[Finding]:
    """Reference: everything of one run's transactions that was delivered too early, or not whole."""
    yield from _precommitted(history)
    yield from _torn(history, timeline, logs, ends)


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    if finding.kind == "precommitted-read":
        what = f"value {finding.value} at offset {finding.offset}"
        return f"Process {finding.process} was delivered {what} by the operation that sends it."
    return (
        f"Value {finding.value} is in no final read, although value {finding.other_value} of the same transaction was "
        "delivered to consumers that read only what is committed."
    )


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on the delivery, or on what the final read does not deliver, and on the state of the transaction."""
    if finding.kind == "torn-transaction":
        return attributed(withheld_in_the_end(frames, finding), UNKNOWN_END)
    return attributed(delivered(frames, finding, finding.offset, finding.value), sent_uncommitted(frames, finding))


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The send, the delivery, and what the replicas hold."""
    yield from witnesses.send(finding)
    if finding.kind == "precommitted-read":
        yield from witnesses.read_by(finding, finding.offset, finding.row)
    yield from witnesses.holders(finding)


def _precommitted(history: History) -> Iterator[Finding]:
    own = {(row["op"], where(row), row["value"]) for row in history.operations if row["f"] == "send" and row["txn"]}
    for read in history.reads:
        key = (read.op, read.where, read.value or 0)
        if key in own and read.value is not None and read.read_committed:
            own.remove(key)
            yield Finding(
                history.run, "precommitted-read", *read.where,
                offset=read.offset,
                value=read.value,
                leader_epoch=read.leader_epoch,
                row=read.row,
                time_ns=read.time_ns,
                process=read.process,
            )  # fmt: skip


def _torn(history: History, timeline: Timeline, logs: ReplicaLogs, ends: PartitionEnds) -> Iterator[Finding]:
    first = proofs(history, timeline, logs, ends)
    aborted = {(place, value) for place, _, value in replaced(history, timeline, logs, ends, "abort")}
    offsets = _known_offsets(history)
    transactions: dict[int, list[Send]] = defaultdict(list)
    for send in history.sends:
        if send.txn and send.type == "info":
            transactions[send.op].append(send)
    for sends in transactions.values():
        seen = [(first[s.where, s.value], s.value) for s in sends if (s.where, s.value) in first]
        for send in sends:
            there = (send.where, send.value) in history.final_values or history.was_delivered(send)
            offset, given = offsets.get((send.where, send.value)), (send.where, send.value) in history.read_values
            gone = ends.missing(send.where, None, read=True) or ends.missing(send.where, offset, read=given)
            if seen and not there and gone:
                yield Finding(
                    history.run, "torn-transaction", *send.where,
                    offset=offset,
                    value=send.value,
                    excuse="unclean" if (send.where, send.value) in aborted else _excuse(timeline, ends, send, offset),
                    row=send.row,
                    time_ns=send.completed_ns,
                    process=send.process,
                    other_value=min(seen)[1],
                    since_ns=send.invoked_ns,
                )  # fmt: skip


def _known_offsets(history: History) -> dict[tuple[TopicPartition, int | None], int]:
    """The offsets of records of unknown outcome: for each the lowest in any row."""
    found: dict[tuple[TopicPartition, int | None], int] = {}
    sent = [r for r in history.operations if (r["f"], r["type"]) == ("send", "info") and r["offset"] is not None]
    of_sends = [((where(row), row["value"]), row["offset"]) for row in sent]
    for key, offset in [*of_sends, *(((read.where, read.value), read.offset) for read in history.reads)]:
        found[key] = min(offset, found.get(key, offset))
    return found


def _excuse(timeline: Timeline, ends: PartitionEnds, send: Send, offset: int | None) -> Excuse | None:
    """What may have removed a record whose offset may be unknown."""
    if ends.may_be_deleted(send.where, offset, send.invoked_ns):
        return "retention"
    able = timeline.leaders_since(send.where, send.invoked_ns)
    elections = timeline.unclean_elections.get(send.where, [])
    if timeline.sampled:
        return "unclean" if any(election.time_ns >= send.invoked_ns for election in elections) else None
    if offset is None:
        gone = any(gave_up_some(election, term) for election in elections for term in able)
    else:
        wrote = [term for term in able if term.first_log_end <= offset < term.log_end]
        gone = any(election.gave_up(term.leader_epoch, offset) for election in elections for term in wrote)
    return "unclean" if gone else None
