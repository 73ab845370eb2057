"""An acknowledged record is in the final read, at the offset of its acknowledgement.

``lost-write``: a send ended ``ok`` at offset o of a partition, and the final read of that partition does not
deliver its value at o. That covers a tail that is gone, a partition that is empty, a hole, a record that another
one replaced, and a record that no consumer had read before it went. A send whose acknowledgement carries no offset
(acks=0) is lost when the final read does not deliver its value anywhere in the partition.

Offsets beyond the end of the final read are judged only when it reached the final leader's high watermark; see
``PartitionEnds.judged``. Where no broker's rows show how a partition ended, as in an imported history,
``PartitionEnds.missing`` determines which records are known to be gone.

Severity: ``VIOLATION``. ``WEAK`` when the sender waited for less than all in-sync replicas, that may explain the loss
(see :mod:`checkers.verdicts.weak_acks`), and the record was neither delivered to a consumer nor known to be committed
(its leader's high watermark passed it in the record's own epoch). A leader's watermark does not prove that once the
leader has come back in the same epoch with a log that ends before the record; nor where a log holds another record of
that epoch at that offset, unless a log or a poll has this one in it, too.

``DOCUMENTED`` when the final leader's log starts behind it because it was deleted on purpose (see
:mod:`checkers.views.deletions`) and the configuration permits that. An acknowledgement without an offset (acks=0, or of
a batch that the leader had before) counts as at the lowest offset that its value was seen at; a value seen nowhere may
be among whatever was deleted since. ``DOCUMENTED`` also when an unclean election gave it up and the configuration
permits such elections: one that began a later epoch than the record's and whose winner did not have it (see
:mod:`checkers.views.unclean_elections`), or lacked the marker that committed it, so that the next one aborts it (see
:mod:`checkers.views.transaction_markers`); or, when the record's epoch is unknown, one after its invocation.

The record's leader epoch is the one in a replica's log, else the one in a poll, else that of the only leader whose log
end passed the offset while the send was under way. Where there are several, it is excused when one of their epochs is.
A sampled timeline may lack a leader, so there the last of these is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from checkers.inconsistent_offsets import first_seen, places
from checkers.views.frames import Frames
from checkers.views.history import History
from checkers.views.partition_ends import PartitionEnds
from checkers.views.replica_logs import ReplicaLogs
from checkers.views.row import ALL, Send
from checkers.views.terms import Term
from checkers.views.timeline import Timeline
from checkers.views.transaction_markers import replaced
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import attributed
from checkers.wire_tap.poll_grounds import withheld_in_the_end
from checkers.wire_tap.send_grounds import acknowledged, committed_if_transactional
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
from harness.outcome import Word

LOST_WRITE = AnomalyKind(
    name="lost-write",
    invariants=("C1", "C1b", "R9"),
    meaning="A send was acknowledged; the final read does not have its value at its offset.",
    shows_loss=True,
    shown_by_clients=True,
    relies_on=frozenset({Needs.HISTORY, Needs.ENDS}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.OF_A_SENT_RECORD,
        fault=False,
        lossy_failure=LossyFailure.AFTER_KNOWN,
        with_cause=False,
        own_topic=None,
        while_leading=False,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.RECORD_GIVEN_UP),
    in_scenarios=InScenarios(word=Word.LOST, predicted_by_word=True, after_any_loss=False),
    permitted_by="",
)
KINDS = (LOST_WRITE,)


def find(history: History, timeline: Timeline, logs: ReplicaLogs, ends: PartitionEnds) -> Iterator[Finding]:
    """Reference: every lost write of one run."""
    aborted, seen = replaced(history, timeline, logs, ends, "abort"), first_seen(history)
    is_unplaced = any(send.type == "ok" and send.offset is None for send in history.sends)
    offsets = places(history, logs, ends) if is_unplaced else {}
    for send in history.sends:
        read = (send.where, send.value) in history.read_values
        if send.type == "ok" and not _survives(history, send) and ends.missing(send.where, send.offset, read=read):
            hidden = (send.where, send.offset, send.value) in aborted
            stored = min(offsets.get((send.where, send.value), ()), default=None)
            lost = _lost(history, timeline, logs, ends, send, stored=stored, hidden=hidden)
            others = seen.get((send.where, send.offset or 0), {}).items() if send.offset is not None else ()
            instead_ns = min((time_ns for value, time_ns in others if value != send.value), default=None)
            yield lost if instead_ns is None else lost._replace(by_ns=max(instead_ns, send.completed_ns))


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    at = "" if finding.offset is None else f" at offset {finding.offset}"
    acks = "all" if finding.acks == ALL else finding.acks
    sentence = f"Value {finding.value} was acknowledged{at} (acks={acks}) and the final read does not deliver it there"
    if finding.other_value is not None:
        sentence += f": it delivers value {finding.other_value} instead"
    if finding.other_offset is not None:
        sentence += f"; the value is at offset {finding.other_offset}"
    return f"{sentence}. It had been committed." if finding.committed else f"{sentence}."


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The acknowledgement and its leader, the commit, the deliveries, and what became of the record."""
    yield from witnesses.send(finding)
    yield from witnesses.leader(finding, finding.leader_epoch)
    if finding.committed:
        yield from witnesses.committed(finding, finding.leader_epoch)
    yield from witnesses.reads(finding, finding.offset, finding.value)
    yield from witnesses.cuts(finding)
    yield from witnesses.fault(finding)
    yield from witnesses.holders(finding)


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on the acknowledgement, and on what the final read does not deliver."""
    return attributed(
        acknowledged(frames, finding, finding.offset, finding.value),
        committed_if_transactional(frames, finding),
        withheld_in_the_end(frames, finding),
    )


def _survives(history: History, send: Send) -> bool:
    if send.offset is None:
        return (send.where, send.value) in history.read_in_the_end
    return history.in_final_read(send.where, send.offset, send.value)


def excuse_of(
    history: History, timeline: Timeline, logs: ReplicaLogs, ends: PartitionEnds, send: Send
) -> Excuse | None:
    """What excuses that the record of an acknowledged send is not at its offset."""
    able = _able(timeline, send)
    epoch = _epoch(history, logs, send, _author(timeline, able))
    committed = _committed(history, timeline, logs, send, epoch)
    deleted = ends.may_be_deleted(send.where, send.offset, send.invoked_ns)
    return _excuse(history, timeline, send, _epochs(able, epoch), committed=committed, deleted=deleted)


def _lost(
    history: History,
    timeline: Timeline,
    logs: ReplicaLogs,
    ends: PartitionEnds,
    send: Send,
    *,
    stored: int | None,
    hidden: bool,
) -> Finding:
    able = _able(timeline, send)
    author = _author(timeline, able)
    epoch = _epoch(history, logs, send, author)
    committed = _committed(history, timeline, logs, send, epoch)
    at = stored if send.offset is None else send.offset
    deleted = ends.may_be_deleted(send.where, at, send.invoked_ns)
    excuse = _excuse(history, timeline, send, _epochs(able, epoch), committed=committed, deleted=deleted)
    return Finding(
        history.run, "lost-write", *send.where,
        offset=send.offset,
        value=send.value,
        leader_epoch=epoch,
        excuse=excuse or ("unclean" if hidden else None),
        row=send.row,
        time_ns=send.completed_ns,
        process=send.process,
        acks=send.acks,
        node=author.node if author else None,
        other_offset=_elsewhere(history, send),
        other_value=None if send.offset is None else history.replacement(send.where, send.offset),
        committed=committed,
        since_ns=send.invoked_ns,
    )  # fmt: skip


def _able(timeline: Timeline, send: Send) -> list[Term]:
    """The leaders that can have appended the record, judging by the time and, where those are known, their log ends."""
    if send.offset is None:
        return []
    led = timeline.leaders_during(send)
    return led if timeline.sampled else [term for term in led if term.first_log_end <= send.offset < term.log_end]


def _author(timeline: Timeline, able: Sequence[Term]) -> Term | None:
    """The only leader that can have appended the record; None: there are several, or not all are known."""
    return able[0] if len(able) == 1 and not timeline.sampled else None


def _epochs(able: Sequence[Term], epoch: int | None) -> list[int | None]:
    """The epochs that the record may be of."""
    return [term.leader_epoch for term in able] if epoch is None and able else [epoch]


def _epoch(history: History, logs: ReplicaLogs, send: Send, author: Term | None) -> int | None:
    if send.offset is None:
        return None
    recorded = _recorded_epoch(history, logs, send)
    return author.leader_epoch if recorded is None and author else recorded


def _recorded_epoch(history: History, logs: ReplicaLogs, send: Send) -> int | None:
    """The epoch of the record by the replicas' logs, or else by polls; None: neither has it."""
    of_logs = _logged_epochs(logs, send).get(send.value)
    polls = history.delivered.get((send.where, send.offset or 0, send.value), [])
    of_polls = [read.leader_epoch for read in polls if read.leader_epoch is not None]
    return min(of_polls, default=None) if of_logs is None else of_logs


def _logged_epochs(logs: ReplicaLogs, send: Send) -> dict[int, int]:
    """The lowest epoch in which the replicas' logs hold each value at the offset of a send."""
    found: dict[int, int] = {}
    for row in logs.logged.get(send.where, {}).get(send.offset or 0, []):
        if row["value"] is not None and row["leader_epoch"] >= 0:
            found[row["value"]] = min(row["leader_epoch"], found.get(row["value"], row["leader_epoch"]))
    return found


def _committed(history: History, timeline: Timeline, logs: ReplicaLogs, send: Send, epoch: int | None) -> bool:
    """Whether the high watermark of a leader that had the record passed it."""
    if send.offset is None or _is_another_s(history, logs, send, epoch):
        return False
    able = [term for term in timeline.leaders_since(send.where, send.invoked_ns) if term.leader_epoch == epoch]
    passed = [term for term in able if term.high_watermark > send.offset]
    lacking = [t.begin_ns for t in able if t.begin_ns > send.completed_ns and t.first_log_end <= send.offset]
    gone_ns = min(lacking, default=None)
    return any(gone_ns is None or term.begin_ns < gone_ns for term in passed)


def _is_another_s(history: History, logs: ReplicaLogs, send: Send, epoch: int | None) -> bool:
    """Whether another record has the offset in the epoch that this one has only by its presumed leader."""
    others = [known for value, known in _logged_epochs(logs, send).items() if value != send.value]
    return epoch is not None and epoch in others and _recorded_epoch(history, logs, send) is None


def _excuse(
    history: History, timeline: Timeline, send: Send, epochs: Iterable[int | None], *, committed: bool, deleted: bool
) -> Excuse | None:
    place, offset = send.where, send.offset
    polled = offset is not None and any(not r.final for r in history.delivered.get((place, offset, send.value), []))
    if deleted:
        return "retention"
    if send.acks != ALL and not committed and not polled:
        return "acks"
    gone = any(timeline.given_up(place, epoch, offset, send.invoked_ns) for epoch in epochs)
    return "unclean" if gone else None


def _elsewhere(history: History, send: Send) -> int | None:
    return history.read_in_the_end.get((send.where, send.value))
