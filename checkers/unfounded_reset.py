"""A broker refuses a consumer's position as out of range only where its log does not reach it.

* ``unfounded-reset``: a consumer learned that its position is not in the log (OFFSET_OUT_OF_RANGE, or a truncation by
  epochs, KIP-320), although the record right before that position had been delivered to a consumer, and the final
  leader's log still holds it. A client with ``auto.offset.reset`` then goes back to the beginning, and delivers every
  record again, or goes on at the end, and leaves some out.

What a consumer is given is below a high watermark, so every later leader has it, and its log ends behind it. The
position is exactly behind that record, and so within every leader's log. Not judged are positions before which the log
holds a marker, or which no consumer had reached; records of which the leader epoch is not known; and rows that do not
say which position it was. Where a leader of an earlier epoch than the record's had not heard of its successor since the
record was delivered, that one may have answered: before KIP-320 (2.1) clients believe what it says of itself, and not
every client since then knows better. A truncation is judged only if that consumer itself was given the record: epochs
tell it of what it has read before, which may be another record at that offset.

Severity: ``VIOLATION``. ``DOCUMENTED`` when records up to the position, and beyond, had been deleted on purpose by then
(see :mod:`checkers.views.deletions`), or an unclean election before had given up the record, and the configuration
permits that: another log, or a broker that starts again, may have brought it back since.
"""

from __future__ import annotations

from collections.abc import Iterator

from checkers.views.frames import Frames
from checkers.views.history import History
from checkers.views.partition_ends import PartitionEnds
from checkers.views.row import Row, where
from checkers.views.timeline import Timeline
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import attributed
from checkers.wire_tap.poll_grounds import refused_position
from harness.anomaly import (
    NO_WORD,
    AnomalyKind,
    CauseAt,
    Excuses,
    Found,
    LossyFailure,
    Retention,
    Sampled,
    Unseen,
)
from harness.checker import Attribution, Evidence
from harness.client_ports import TRUNCATED
from harness.excuse import Excuse
from harness.findings import Finding
from harness.model import TopicPartition

UNFOUNDED_RESET = AnomalyKind(
    name="unfounded-reset",
    invariants=("C7",),
    meaning="A broker put a consumer's position outside of its log, which holds the record right before it.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset(),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.BEFORE_THE_POLL,
        fault=False,
        lossy_failure=LossyFailure.BEFORE_SEEN,
        with_cause=False,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.RECORD_GONE),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (UNFOUNDED_RESET,)


def find(history: History, timeline: Timeline, ends: PartitionEnds) -> Iterator[Finding]:
    """Reference: every position of one run's consumers that was refused although the log reached it."""
    for row in history.operations:
        if row["f"] == "out_of_range" and row["offset"]:
            place = where(row)
            held = [
                one for one in ends.final_records(place, row["offset"] - 1) if _was_reached(history, timeline, one, row)
            ]
            for record in sorted(held, key=lambda one: (one["value"], one["leader_epoch"]))[:1]:
                yield _finding(timeline, place, row, record)


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    return (
        f"A broker's answer put offset {finding.other_offset}, the position of process {finding.process}, outside of "
        f"the log, although value {finding.value} at offset {finding.offset} had been delivered, and is "
        "there in the end."
    )


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on the answer by which the consumer learned it."""
    return attributed(refused_position(frames, finding))


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """What the consumer learned, and a delivery of the record before its position, and who holds it."""
    words = f"process {finding.process} learned that its position, offset {finding.other_offset}, is not in the log"
    yield Evidence("history", {"index": finding.row or 0}, words)
    yield from witnesses.reads(finding, finding.offset, finding.value)
    yield from witnesses.holders(finding)


def _was_reached(history: History, timeline: Timeline, record: Row, refusal: Row) -> bool:
    """Whether a consumer had been given this record of the final log, and since then every leader was one that had it.

    It had before, or is in the same operation.
    """
    place, epoch = where(record), record["leader_epoch"]
    times = [
        read.time_ns
        for read in history.delivered.get((place, record["offset"], record["value"]), [])
        if (read.row < refusal["index"] or read.op == refusal["op"])
        and read.leader_epoch in (None, epoch)
        and (read.process == refusal["process"] or refusal["error"] != TRUNCATED)
    ]
    if record["value"] is None or epoch < 0 or not times:
        return False
    return not timeline.may_have_lacked(place, epoch, min(times), refusal["time_ns"])


def _finding(timeline: Timeline, place: TopicPartition, refusal: Row, record: Row) -> Finding:
    position, epoch = refusal["offset"], record["leader_epoch"]
    is_given_up = timeline.thrown_back(place, epoch, record["offset"], refusal["time_ns"])
    is_deleted = position < timeline.deleted_to(place, refusal["time_ns"])
    excuse: Excuse | None = "retention" if is_deleted else "unclean" if is_given_up else None
    return Finding(
        timeline.run, "unfounded-reset", *place,
        offset=record["offset"],
        value=record["value"],
        leader_epoch=epoch,
        excuse=excuse,
        row=refusal["index"],
        time_ns=refusal["time_ns"],
        process=refusal["process"],
        other_offset=position,
    )  # fmt: skip
