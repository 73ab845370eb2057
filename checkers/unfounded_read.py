"""A consumer receives only records that a producer sent to that partition, unchanged.

* ``corrupt-read``: the record's hash, partition, key, headers or CreateTime is wrong, or it is not a workload's record
  at all; see :mod:`harness.payload`.
* ``unwritten-read``: no producer had sent that value to that partition yet, or ever.
* ``aborted-read``: the send definitely failed (Jepsen's G1a): it was proven never to have been appended. In a
  transaction it may have been appended, so there only read_committed deliveries count.

One anomaly per partition, offset and value, in this order of precedence. Final reads count.

Severity: ``VIOLATION``. An ``aborted-read`` of a transaction's record is ``DOCUMENTED`` when an unclean election before
it may have given up the marker that aborted the record, so that a commit marker took its place (see
:mod:`checkers.views.transaction_markers`), and the configuration permits such elections.
"""

from __future__ import annotations

from collections.abc import Iterator

from checkers.views.frames import Frames
from checkers.views.history import History
from checkers.views.partition_ends import PartitionEnds
from checkers.views.replica_logs import ReplicaLogs
from checkers.views.row import Read, Send
from checkers.views.timeline import Timeline
from checkers.views.transaction_markers import replaced
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import attributed
from checkers.wire_tap.poll_grounds import delivered, stored_damaged
from checkers.wire_tap.send_grounds import refused, sent_by_a_client
from harness.anomaly import (
    NO_WORD,
    NOTHING,
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

CORRUPT_READ = AnomalyKind(
    name="corrupt-read",
    invariants=("C15",),
    meaning=(
        "A consumer was given a record that is not what was sent to that partition: its hash, key, "
        "headers or CreateTime is wrong."
    ),
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

UNWRITTEN_READ = AnomalyKind(
    name="unwritten-read",
    invariants=("C3",),
    meaning="A consumer was given a value that no producer had sent to that partition.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.HISTORY, Needs.ENDS}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)

ABORTED_READ = AnomalyKind(
    name="aborted-read",
    invariants=("C3", "C9"),
    meaning="A consumer was given a value whose send was proven never to have happened.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.VALUES, Needs.ENDS}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.NEVER,
        fault=False,
        lossy_failure=LossyFailure.BEFORE_READ,
        with_cause=False,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=InScenarios(word=Word.DIRTY, predicted_by_word=False, after_any_loss=False),
    permitted_by="",
)
KINDS = (CORRUPT_READ, UNWRITTEN_READ, ABORTED_READ)


def find(history: History, timeline: Timeline, logs: ReplicaLogs, ends: PartitionEnds) -> Iterator[Finding]:
    """Reference: every record of one run that was delivered and should not have been, once."""
    groups: dict[tuple[object, int, int | None], list[Read]] = {}
    for read in history.reads:
        groups.setdefault((read.where, read.offset, read.value), []).append(read)
    sent = {(send.where, send.value): send for send in history.sends}
    committed = replaced(history, timeline, logs, ends, "commit")
    for reads in groups.values():
        first = reads[0]
        send = sent.get((first.where, first.value or 0))
        kind = _kind(reads, send)
        wronged = [r for r in reads if r.read_committed] if kind == "aborted-read" and send and send.txn else reads
        if kind is not None and wronged:
            of_txn = kind == "aborted-read" and send is not None and send.txn
            instead_ns = committed.get((first.where, first.offset, first.value or 0)) if of_txn else None
            begun_ns = send.invoked_ns if of_txn and send is not None else None
            yield _bad(history, kind, reads, wronged[0], instead_ns)._replace(since_ns=begun_ns)


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    what = "A record that is none of the workload's" if finding.value is None else f"Value {finding.value}"
    reasons = {
        "corrupt-read": "it is not what was sent: its hash, key, headers or CreateTime is wrong, or it is "
        "another partition's",
        "unwritten-read": "no producer had sent it to this partition",
        "aborted-read": "its send was proven to have failed",
    }
    return f"{what} was delivered at offset {finding.offset}, but {reasons[finding.kind]}."


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on the delivery, and on what the producer says of the send."""
    known = delivered(frames, finding, finding.offset, finding.value)
    match finding.kind:
        case "aborted-read":
            return attributed(known, refused(frames, finding))
        case "unwritten-read":
            return attributed(known, sent_by_a_client(frames, finding))
        case _:
            return attributed(known, stored_damaged(frames, finding))


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The delivery, the send if there was one, and what the replicas hold there."""
    yield from witnesses.reads(finding, finding.offset, finding.value)
    yield from witnesses.send(finding)
    yield from witnesses.holders(finding)


def _kind(reads: list[Read], send: Send | None) -> str | None:
    """What is wrong with a record that was delivered, in the order of the history; None: nothing."""
    if not all(read.sound for read in reads):
        return "corrupt-read"
    if send is None or reads[0].row < send.invoked_row:
        return "unwritten-read"
    return "aborted-read" if send.type == "fail" else None


def _bad(history: History, kind: str, reads: list[Read], first: Read, instead_ns: int | None) -> Finding:
    """``instead_ns``: since when a commit marker may have replaced the one that aborted it; None: never."""
    return Finding(
        history.run, kind, *first.where,
        offset=first.offset,
        value=first.value,
        leader_epoch=min((r.leader_epoch for r in reads if r.leader_epoch is not None), default=None),
        excuse="unclean" if instead_ns is not None and instead_ns <= first.time_ns else None,
        row=first.row,
        time_ns=first.time_ns,
    )  # fmt: skip
