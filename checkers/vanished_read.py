"""A record that was delivered stays at its offset for every later reader.

``vanished-read``: a poll before the final read delivered a value at an offset, and the final read does not deliver
that value there. As with lost writes, only what the final read would have delivered is judged.

A record of a failed transaction is an ``aborted-read`` instead; one of a transaction of unknown outcome counts only
when a read_committed consumer was given it.

Severity: ``VIOLATION``, whatever the sender waited for: consumers are given committed records only. ``DOCUMENTED`` when
the final leader's log starts behind it because it was deleted on purpose (see :mod:`checkers.views.deletions`) and the
configuration permits that; or when an unclean election gave it up and the configuration permits such
elections: one that began a later epoch than the record's and whose winner did not have it (see
:mod:`checkers.views.unclean_elections`); or, when no poll names the record's epoch, one after the first delivery.
"""

from __future__ import annotations

from collections.abc import Iterator

from checkers.inconsistent_offsets import sent_ns
from checkers.views.frames import Frames
from checkers.views.history import History
from checkers.views.partition_ends import PartitionEnds
from checkers.views.replica_logs import ReplicaLogs
from checkers.views.row import Read
from checkers.views.timeline import Timeline
from checkers.views.transaction_markers import replaced
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import attributed
from checkers.wire_tap.poll_grounds import delivered, withheld_in_the_end
from checkers.wire_tap.send_grounds import committed_if_transactional
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
from harness.outcome import Word

VANISHED_READ = AnomalyKind(
    name="vanished-read",
    invariants=("C1b", "C8", "C11"),
    meaning="A consumer was given a record that the final read no longer has there.",
    shows_loss=True,
    shown_by_clients=True,
    relies_on=frozenset({Needs.HISTORY}),
    follows_from=("lost-write",),
    cause_at=CauseAt.SAME_RECORD,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.OF_A_SENT_RECORD,
        fault=False,
        lossy_failure=LossyFailure.AFTER_POLL_BEGUN,
        with_cause=False,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.RECORD_GIVEN_UP),
    in_scenarios=InScenarios(word=Word.LOST, predicted_by_word=False, after_any_loss=False),
    permitted_by="",
)
KINDS = (VANISHED_READ,)


def find(history: History, timeline: Timeline, logs: ReplicaLogs, ends: PartitionEnds) -> Iterator[Finding]:
    """Reference: every record of one run that was delivered and is gone, once."""
    first: dict[tuple[TopicPartition, int, int], Read] = {}
    epochs: dict[tuple[TopicPartition, int, int], list[int]] = {}
    for read in history.reads:
        if read.final or not read.sound or read.value is None or _was_never_promised(history, read):
            continue
        if history.in_final_read(read.where, read.offset, read.value):
            continue
        if ends.missing(read.where, read.offset, read=True):
            key = (read.where, read.offset, read.value)
            first.setdefault(key, read)
            epochs.setdefault(key, []).extend([] if read.leader_epoch is None else [read.leader_epoch])
    begun, aborted = sent_ns(history), replaced(history, timeline, logs, ends, "abort")
    for key, read in first.items():
        since_ns = begun.get((read.where, read.value or 0))
        yield _vanished(
            history, timeline, ends, read, min(epochs[key], default=None), since_ns=since_ns, hidden=key in aborted
        )


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    sentence = (
        f"Value {finding.value} was delivered at offset {finding.offset} and the final read does not deliver it there"
    )
    return (
        f"{sentence}."
        if finding.other_value is None
        else f"{sentence}: it delivers value {finding.other_value} instead."
    )


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on the delivery before, on what the producer says of it, and on what the final read does not deliver."""
    known = delivered(frames, finding, finding.offset, finding.value)
    return attributed(known, committed_if_transactional(frames, finding), withheld_in_the_end(frames, finding))


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The delivery, the send, the leader that had committed it, and what became of it."""
    yield from witnesses.reads(finding, finding.offset, finding.value)
    yield from witnesses.send(finding)
    yield from witnesses.committed(finding, finding.leader_epoch)
    yield from witnesses.cuts(finding)
    yield from witnesses.fault(finding)
    yield from witnesses.holders(finding)


def _was_never_promised(history: History, read: Read) -> bool:
    send = history.transactional.get((read.where, read.value or 0))
    return send is not None and history.is_uncommitted(send)


def _vanished(
    history: History,
    timeline: Timeline,
    ends: PartitionEnds,
    read: Read,
    leader_epoch: int | None,
    *,
    since_ns: int | None,
    hidden: bool,
) -> Finding:
    return Finding(
        history.run, "vanished-read", *read.where,
        offset=read.offset,
        value=read.value,
        leader_epoch=leader_epoch,
        excuse=_excuse(timeline, ends, read, leader_epoch, since_ns) or ("unclean" if hidden else None),
        row=read.row,
        time_ns=read.time_ns,
        other_value=history.replacement(read.where, read.offset),
        since_ns=since_ns,
    )  # fmt: skip


def _excuse(
    timeline: Timeline, ends: PartitionEnds, read: Read, leader_epoch: int | None, since_ns: int | None
) -> Excuse | None:
    if ends.begins_behind(read.where, read.offset, since_ns):
        return "retention"
    return "unclean" if timeline.given_up(read.where, leader_epoch, read.offset, read.time_ns) else None
