"""Every transaction is closed on every partition that it wrote to, by the marker of its outcome (R12).

In the final leader's log the records of a transaction are closed by the next marker of their producer. A transaction is
known to be committed when its client was answered so, when a read_committed consumer was delivered one of its records,
or when any of its records is closed by a commit marker; and to have failed when its client proved it. A commit marker
that may have taken the place of another one, after an unclean election (see :mod:`checkers.views.transaction_markers`),
proves nothing, nor does what was delivered because of it.

* ``wrong-marker``: records of a transaction that is known to be committed are closed by an abort marker, so that
  consumers are not given them; or records of one that failed are closed by a commit marker.
* ``open-transaction``: records of a transaction are closed by no marker. The last stable offset stays there, so
  read_committed consumers are given nothing from the first of them on.

One anomaly per transaction and partition: the first such record, and of wrongly marked ones the first that nothing
excuses. Records without a producer id in the log are not judged. A marker that closes nothing is no anomaly:
coordinators write markers to partitions that were added to a transaction and not written to, and write them again after
a failover.

Severity: ``VIOLATION``. An ``open-transaction`` is ``INDETERMINATE`` in runs that do not promise to settle, for the
coordinator writes markers in its own time; and ``DOCUMENTED`` when an unclean election began a later epoch than the
record's and the configuration permits such elections: it may have given the marker up. A ``wrong-marker`` is, when one
between the record and that marker gave up something behind the record. Both are ``DOCUMENTED`` also when lossy failures
may have taken the right marker since the record was sent, and before the wrong one was written; and ``INDETERMINATE``
when they may have taken the coordinator's log (see :mod:`checkers.views.lossy_failures`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from checkers.views.frames import Frames
from checkers.views.history import History
from checkers.views.partition_ends import PartitionEnds
from checkers.views.replica_logs import ReplicaLogs
from checkers.views.row import Send
from checkers.views.timeline import Timeline
from checkers.views.transaction_markers import TransactionEnd, proofs, transaction_ends
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import attributed
from checkers.wire_tap.send_grounds import ended_as_reported, ended_at_all
from harness.anomaly import (
    NO_WORD,
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
from harness.findings import Finding
from harness.outcome import Word

WRONG_MARKER = AnomalyKind(
    name="wrong-marker",
    invariants=("C9", "C13", "R12"),
    meaning="A transaction that was committed is closed by an abort marker, or the other way round.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.REPLICA_LOGS, Needs.VALUES, Needs.ENDS}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.NEVER,
        fault=False,
        lossy_failure=LossyFailure.BEFORE_MARKER,
        with_cause=False,
        own_topic="transaction.state.log.replication.factor",
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)

OPEN_TRANSACTION = AnomalyKind(
    name="open-transaction",
    invariants=("R12",),
    meaning="No marker closes the records of a transaction.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.REPLICA_LOGS, Needs.VALUES, Needs.ENDS}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.NEVER,
        fault=False,
        lossy_failure=LossyFailure.BEFORE_MARKER,
        with_cause=False,
        own_topic="transaction.state.log.replication.factor",
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=InScenarios(word=Word.STUCK, predicted_by_word=False, after_any_loss=False),
    permitted_by="",
)
KINDS = (WRONG_MARKER, OPEN_TRANSACTION)


class Written(NamedTuple):
    """A record of a transaction in the final leader's log, and what closes it."""

    send: Send
    record: TransactionEnd


def find(history: History, timeline: Timeline, logs: ReplicaLogs, ends: PartitionEnds) -> Iterator[Finding]:
    """Reference: every transaction of one run that is closed wrongly, or not at all."""
    transactions: dict[int, list[Written]] = defaultdict(list)
    for place in {place for place, _ in history.transactional}:
        for one in transaction_ends(history, timeline, logs, ends, place):
            send = history.transactional[place, one.value]
            transactions[send.op].append(Written(send, one))
    proven = proofs(history, timeline, logs, ends)
    ended_sends = [s for s in history.sends if s.txn and (s.type == "ok" or (s.where, s.value) in proven)]
    committed = {s.op for s in ended_sends if s.type != "fail"}
    for op, written in transactions.items():
        ended = _ended(written, known=op in committed)
        for place in sorted({one.send.where for one in written}):
            group = sorted((w for w in written if w.send.where == place), key=_position)
            wrong = [w for w in group if w.record.closed is not None and ended not in (None, w.record.closed)]
            if wrong:
                yield _finding(
                    timeline, "wrong-marker", next((w for w in wrong if w.record.instead_ns is None), wrong[0])
                )
            unclosed = next((w for w in group if w.record.closed is None), None)
            if unclosed is not None:
                yield _finding(timeline, "open-transaction", unclosed)


def left_open(finding: Finding, guarantees: Mapping[str, Any]) -> str:
    """Why it cannot be decided whether a marker would have come; empty: it can."""
    if finding.kind != OPEN_TRANSACTION.name or finding.excuse is not None or guarantees.get("settles") is True:
        return ""
    return "the coordinator writes markers in its own time, and the run does not promise to settle"


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    record = f"Value {finding.value} at offset {finding.offset} belongs to a transaction"
    if finding.kind == "open-transaction":
        return f"{record} that no marker closes in the final leader's log."
    ended, closed = ("is known to be committed", "an abort") if finding.committed else ("failed", "a commit")
    return f"{record} that {ended}, and {closed} marker closes it in the final leader's log."


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on how the client says that the transaction ended, or on that it ended at all."""
    if finding.kind == OPEN_TRANSACTION.name:
        return attributed(ended_at_all(frames, finding))
    return attributed(ended_as_reported(frames, finding, commits=finding.committed is True))


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The send, the deliveries of the record, and what the replicas hold."""
    yield from witnesses.send(finding)
    yield from witnesses.reads(finding, finding.offset, finding.value)
    yield from witnesses.holders(finding)


def _position(one: Written) -> tuple[int, int, int]:
    return one.record.offset, one.record.value, one.record.leader_epoch


def _ended(written: Sequence[Written], *, known: bool) -> Literal["commit", "abort"] | None:
    if any(one.send.type == "fail" for one in written):
        return "abort"
    own = any(one.record.closed == "commit" and one.record.instead_ns is None for one in written)
    return "commit" if known or own else None


def _finding(timeline: Timeline, kind: str, one: Written) -> Finding:
    record, is_open = one.record, kind == "open-transaction"
    later = any(epoch > record.leader_epoch for _, epoch in timeline.unclean.get(one.send.where, []))
    return Finding(
        timeline.run, kind, *one.send.where,
        offset=record.offset,
        value=record.value,
        leader_epoch=record.leader_epoch,
        excuse="unclean" if (later if is_open else record.instead_ns is not None) else None,
        row=one.send.last.row,
        time_ns=one.send.last.time_ns,
        process=one.send.last.process,
        other_offset=record.closed_at,
        since_ns=one.send.invoked_ns,
        committed=None if is_open else record.closed == "abort",
    )  # fmt: skip
