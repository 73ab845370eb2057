"""A leader that is asked for the first record as young as a time leaves none out that had been delivered.

* ``unfounded-lookup``: a consumer asked from which offset on records are as young as a time (ListOffsets with a
  timestamp, ``offsetsForTimes``), and was answered with an offset behind a record that is as young, or that there is
  none, although that record had been delivered to a consumer before it asked, and the final leader's log still holds
  it. A consumer that begins there leaves the record out.

What a consumer is given is below a high watermark, so every later leader has it, and finds it. The record's timestamp
is the one with which it was delivered, so that it does not matter who stamps it. A lookup reads uncommitted records,
too: only the high watermark bounds it. Not judged is an answer before the record, for brokers may answer with the
beginning of a batch; nor an answer that a leader of an earlier epoch than the record's may have given, which had not
heard of its successor when it was asked.

Severity: ``VIOLATION``. ``DOCUMENTED`` when the answer is that there is none, in a generation in which a new leader
answers by a high watermark that may be lower than its predecessor's (before KIP-207, 2.2); when the record had been
deleted on purpose by then (see :mod:`checkers.views.deletions`), or an unclean election before had given it up, and the
configuration permits that: a broker that starts again may have found it again since.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from checkers.views.configured import Configured
from checkers.views.frames import Frames
from checkers.views.generations import since
from checkers.views.history import History
from checkers.views.partition_ends import PartitionEnds
from checkers.views.row import Read, Row, where
from checkers.views.timeline import Timeline
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import attributed
from checkers.wire_tap.poll_grounds import answered_for_time
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
from harness.excuse import Excuse
from harness.findings import Finding
from harness.model import TopicPartition

UNFOUNDED_LOOKUP = AnomalyKind(
    name="unfounded-lookup",
    invariants=("C7",),
    meaning="A leader answered a lookup by time with an offset behind a record that is as young.",
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
KINDS = (UNFOUNDED_LOOKUP,)


class _Lookup(NamedTuple):
    """A lookup that was answered: ``begun``, the row of its invocation; ``row``, that of the answer."""

    begun: int
    begun_ns: int
    timestamp_ms: int
    row: Row


def find(history: History, timeline: Timeline, ends: PartitionEnds) -> Iterator[Finding]:
    """Reference: every lookup of one run that left out a record which had been delivered."""
    given: dict[TopicPartition, list[Read]] = defaultdict(list)
    asked = _lookups(history)
    for read in history.reads if asked else ():
        if read.timestamp_ms is not None:
            given[read.where].append(read)
    for place, lookups in asked.items():
        reads = sorted(given[place], key=_at)
        youngest = [*accumulate((read.timestamp_ms or 0 for read in reads), max)]
        for lookup in lookups:
            held = (_held(timeline, ends, read, lookup) for read in _left_out(reads, youngest, lookup))
            left_out = [record for record in held if record is not None]
            if left_out:
                first = min(left_out, key=lambda one: (one["offset"], one["value"], one["leader_epoch"]))
                yield _finding(timeline, place, lookup, first)


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    answer = "that there is none" if finding.other_offset is None else f"with offset {finding.other_offset}"
    return (
        f"A leader answered process {finding.process}, which asked for the first record as young as a time, {answer}, "
        f"although value {finding.value} at offset {finding.offset} is as young, had been delivered, and is there in "
        "the end."
    )


def permitted(finding: Finding, configured: Configured) -> str:
    """See :class:`checkers.views.own_judgements.Permitted`."""
    if finding.other_offset is not None or since(configured.generation, "2.8"):
        return ""
    return "a new leader answers by a high watermark that may be lower than its predecessor's (before KIP-207)"


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on the answer that the consumer reports."""
    return attributed(answered_for_time(frames, finding))


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The answer, a delivery of the record that it leaves out, and who holds that."""
    answer = "no offset" if finding.other_offset is None else f"offset {finding.other_offset}"
    yield Evidence("history", {"index": finding.row or 0}, f"process {finding.process} was answered with {answer}")
    yield from witnesses.reads(finding, finding.offset, finding.value)
    yield from witnesses.holders(finding)


def _lookups(history: History) -> dict[TopicPartition, list[_Lookup]]:
    own = [row for row in history.operations if row["f"] == "offset_for_time" and row["topic"] is not None]
    begun = {row["op"]: row for row in own if row["type"] == "invoke" and row["timestamp_ms"] is not None}
    found: dict[TopicPartition, list[_Lookup]] = defaultdict(list)
    for row in own:
        if row["type"] == "ok" and row["op"] in begun:
            asked = begun[row["op"]]
            found[where(row)].append(_Lookup(asked["index"], asked["time_ns"], asked["timestamp_ms"], row))
    return found


def _at(read: Read) -> tuple[int, int]:
    return read.offset, read.row


def _left_out(reads: Sequence[Read], youngest: Sequence[int], lookup: _Lookup) -> Iterator[Read]:
    """Deliveries, before the lookup, of records before its answer that are as young as was asked for, the last first.

    ``youngest``: the youngest timestamp of each delivery and all before it, so that the search ends where none is left.
    """
    answer = lookup.row["offset"]
    for read, latest in zip(reversed(reads), reversed(youngest), strict=True):
        if latest < lookup.timestamp_ms:
            return
        is_before = answer is None or read.offset < answer
        if is_before and read.row < lookup.begun and (read.timestamp_ms or 0) >= lookup.timestamp_ms:
            yield read


def _held(timeline: Timeline, ends: PartitionEnds, read: Read, lookup: _Lookup) -> Row | None:
    """The record of the delivery in the final leader's log, if every leader that may have answered had it."""
    for record in ends.final_records(read.where, read.offset):
        epoch, value = record["leader_epoch"], record["value"]
        is_it = value is not None and value == read.value and epoch >= 0 and read.leader_epoch in (None, epoch)
        if is_it and not timeline.may_have_lacked(read.where, epoch, lookup.begun_ns, lookup.row["time_ns"]):
            return record
    return None


def _finding(timeline: Timeline, place: TopicPartition, lookup: _Lookup, record: Row) -> Finding:
    offset, epoch, time_ns = record["offset"], record["leader_epoch"], lookup.row["time_ns"]
    is_given_up = timeline.thrown_back(place, epoch, offset, time_ns)
    is_deleted = offset < timeline.deleted_to(place, time_ns)
    excuse: Excuse | None = "retention" if is_deleted else "unclean" if is_given_up else None
    return Finding(
        timeline.run, "unfounded-lookup", *place,
        offset=offset,
        value=record["value"],
        leader_epoch=epoch,
        excuse=excuse,
        row=lookup.row["index"],
        time_ns=time_ns,
        process=lookup.row["process"],
        other_offset=lookup.row["offset"],
    )  # fmt: skip
