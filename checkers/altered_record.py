"""The final leader's log holds, at each offset, the record that was delivered or acknowledged there.

``altered-record``: below its high watermark the final leader's log, as collected at the end, holds another record than

* the one that the final read delivered at that offset. Committed records do not change, so what the leader serves is
  what its disk holds, and no disk may change afterwards;
* or, where the final read did not come so far, the one that the broker acknowledged at that offset. (Where the final
  read shows it, it is a ``lost-write``.)

:mod:`checkers.replica_divergence` compares the other replicas with the leader; this module finds what all replicas
agree on and clients saw otherwise. A damaged record is a ``damaged-record`` and is not compared.

Severity: ``VIOLATION``. Where only an acknowledgement shows the record, it is excused as a ``lost-write`` is. What the
final read delivered is excused only by a fault that put records of another cluster into a log of that partition: those,
and the records in their place, are ``DOCUMENTED``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checkers.lost_write import excuse_of
from checkers.views.frames import Frames
from checkers.views.history import History
from checkers.views.partition_ends import PartitionEnds
from checkers.views.replica_logs import ReplicaLogs
from checkers.views.row import Read, Row, Send
from checkers.views.run_demands import RunDamage
from checkers.views.timeline import Timeline
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import attributed
from checkers.wire_tap.poll_grounds import delivered
from checkers.wire_tap.send_grounds import acknowledged
from harness.anomaly import (
    NO_WORD,
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
from harness.payload import FOREIGN_VALUE

ALTERED_RECORD = AnomalyKind(
    name="altered-record",
    invariants=("R1",),
    meaning="The final log holds another record than the one delivered or acknowledged at its offset.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.REPLICA_LOGS, Needs.ENDS}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.NEVER,
        fault=False,
        lossy_failure=LossyFailure.AFTER_KNOWN,
        with_cause=False,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.RECORD_GIVEN_UP),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (ALTERED_RECORD,)


def find(
    history: History, timeline: Timeline, logs: ReplicaLogs, ends: PartitionEnds, damage: RunDamage
) -> Iterator[Finding]:
    """Reference: every offset of one run at which the final leader's log has another record."""
    seen: set[tuple[TopicPartition, int, int]] = set()
    for read in history.reads:
        if read.final and read.value is not None and (read.where, read.offset, read.value) not in seen:
            seen.add((read.where, read.offset, read.value))
            if all(one.sound for one in history.delivered[read.where, read.offset, read.value]):
                yield from _altered(history, ends, damage, read)
    for send in history.sends:
        if send.type == "ok" and send.offset is not None and (send.where, send.offset, send.value) not in seen:
            read_before = (send.where, send.value) in history.read_values
            if not ends.missing(send.where, send.offset, read=read_before):
                yield from _replaced(history, timeline, logs, ends, send, offset=send.offset)


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    who = "the final read was given" if finding.acks is None else "a producer got an acknowledgement for"
    held = "no workload's record" if finding.other_value is None else f"value {finding.other_value}"
    return (
        f"At offset {finding.offset} {who} value {finding.value}, and the log of node {finding.node}, which leads in "
        f"the end, holds {held} there."
    )


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on the acknowledgement, or on the delivery, of another record than the log's."""
    record = (finding.offset, finding.value)
    return attributed(acknowledged(frames, finding, *record), delivered(frames, finding, *record))


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The delivery or the acknowledgement of the record, and what every replica holds at its offset."""
    if finding.acks is not None:
        yield from witnesses.send(finding)
    yield from witnesses.reads(finding, finding.offset, finding.value)
    yield from witnesses.holders(finding)


def _altered(history: History, ends: PartitionEnds, damage: RunDamage, read: Read) -> Iterator[Finding]:
    assert read.value is not None
    held = _instead(ends, read.where, read.offset, read.value)
    if held:
        first = history.delivered[read.where, read.offset, read.value][0]
        other = _other(held)
        foreign = read.where in damage.swapped and max(read.value, other or 0) >= FOREIGN_VALUE
        yield Finding(
            history.run, "altered-record", *read.where,
            offset=read.offset,
            value=read.value,
            leader_epoch=_epoch(held),
            excuse="damage" if foreign else None,
            row=first.row,
            node=held[0]["node"],
            other_value=other,
        )  # fmt: skip


def _replaced(
    history: History, timeline: Timeline, logs: ReplicaLogs, ends: PartitionEnds, send: Send, *, offset: int
) -> Iterator[Finding]:
    held = _instead(ends, send.where, offset, send.value)
    if held:
        yield Finding(
            history.run, "altered-record", *send.where,
            offset=offset,
            value=send.value,
            leader_epoch=_epoch(held),
            excuse=excuse_of(history, timeline, logs, ends, send),
            row=send.row,
            time_ns=send.completed_ns,
            process=send.process,
            acks=send.acks,
            node=held[0]["node"],
            other_value=_other(held),
            since_ns=send.invoked_ns,
        )  # fmt: skip


def _instead(ends: PartitionEnds, place: TopicPartition, offset: int, value: int) -> Sequence[Row]:
    """What the final leader's log holds there, if that is committed, whole, and something else."""
    end = ends.by_partition[place]
    committed = min(end.high_watermark or 0, end.log_end_offset or 0)
    if end.node is None or not (end.log_start_offset or 0) <= offset < committed:
        return ()
    held = ends.final_records(place, offset)
    return held if all(row["intact"] and row["value"] != value for row in held) else ()


def _other(held: Sequence[Row]) -> int | None:
    return max((row["value"] for row in held if row["value"] is not None), default=None)


def _epoch(held: Sequence[Row]) -> int | None:
    return min((row["leader_epoch"] for row in held if row["leader_epoch"] >= 0), default=None)
