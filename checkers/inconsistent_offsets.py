"""One offset of a partition holds one value, in all acknowledgements and polls.

``inconsistent-offsets``: acknowledgements and polls name two or more values for one offset (Jepsen's anomaly of that
name). The anomaly's value is the one that was named first; the evidence names the others.

Severity: ``VIOLATION``. ``WEAK`` when fewer than two of the values were ever delivered to a consumer or acknowledged to
a sender that waited for all in-sync replicas. ``DOCUMENTED`` when an unclean election gave up a record of the oldest
epoch that a poll names there (when none does: came after the first value was named) and the configuration permits such
elections.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from checkers.views.frames import Frames
from checkers.views.history import History
from checkers.views.partition_ends import PartitionEnds
from checkers.views.replica_logs import ReplicaLogs
from checkers.views.row import ALL, where
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
from harness.excuse import Excuse
from harness.findings import Finding
from harness.model import TopicPartition

INCONSISTENT_OFFSETS = AnomalyKind(
    name="inconsistent-offsets",
    invariants=("C2",),
    meaning="Acknowledgements and reads name two or more values for one offset.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.ENDS}),
    follows_from=("lost-write", "vanished-read"),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.NEVER,
        fault=False,
        lossy_failure=LossyFailure.AFTER_KNOWN,
        with_cause=True,
        own_topic=None,
        while_leading=False,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.RECORD_GIVEN_UP),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (INCONSISTENT_OFFSETS,)


class Sighting(NamedTuple):
    """An acknowledgement or a poll that names ``value`` at ``offset``. ``strong``: it promises that the record stays.

    The offset that an operation of unknown outcome names counts like an acknowledgement once the record was delivered;
    in a transaction, once it was delivered to a read_committed consumer.
    """

    where: TopicPartition
    offset: int
    value: int
    row: int
    time_ns: int
    strong: bool
    leader_epoch: int | None


def sightings(history: History) -> list[Sighting]:
    """Every row that places a value at an offset, in the order of the history."""
    acks = [
        Sighting(s.where, s.offset, s.value, s.row, s.completed_ns, s.acks == ALL, None)
        for s in history.sends
        if s.type == "ok" and s.offset is not None
    ]
    polls = [
        Sighting(r.where, r.offset, r.value, r.row, r.time_ns, True, r.leader_epoch)
        for r in history.reads
        if r.sound and r.value is not None
    ]
    shown = {(s.where, s.value) for s in history.sends if s.type != "fail" and history.was_delivered(s)}
    unended = [
        Sighting(where(r), r["offset"], r["value"], r["index"], r["time_ns"], r["acks"] == ALL, None)
        for r in history.operations
        if (r["f"], r["type"]) == ("send", "info") and r["offset"] is not None and (where(r), r["value"]) in shown
    ]
    return sorted([*acks, *polls, *unended], key=lambda s: s.row)


def places(history: History, logs: ReplicaLogs, ends: PartitionEnds) -> dict[tuple[TopicPartition, int], set[int]]:
    """The offsets of every value, according to acknowledgements, polls and the final leader's log."""
    found: dict[tuple[TopicPartition, int], set[int]] = defaultdict(set)
    for seen in sightings(history):
        found[seen.where, seen.value].add(seen.offset)
    for place in logs.logged:
        for row in ends.final_log(place):
            if row["intact"]:
                found[place, row["value"]].add(row["offset"])
    return found


def first_seen(history: History) -> dict[tuple[TopicPartition, int], dict[int, int]]:
    """By place and offset when each value was first seen there."""
    found: dict[tuple[TopicPartition, int], dict[int, int]] = defaultdict(dict)
    for one in sightings(history):
        known = found[one.where, one.offset]
        known[one.value] = min(one.time_ns, known.get(one.value, one.time_ns))
    return found


def sent_ns(history: History) -> dict[tuple[TopicPartition, int], int]:
    """When the send of every value began."""
    return {(send.where, send.value): send.invoked_ns for send in history.sends}


def find(history: History, timeline: Timeline) -> Iterator[Finding]:
    """Reference: every offset of one run with two values."""
    seen: dict[tuple[TopicPartition, int], dict[int, list[Sighting]]] = {}
    for sighting in sightings(history):
        seen.setdefault((sighting.where, sighting.offset), {}).setdefault(sighting.value, []).append(sighting)
    begun = sent_ns(history)
    for values in seen.values():
        if len(values) > 1:
            yield _conflict(timeline, list(values.values()), begun)


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    return f"Offset {finding.offset} held value {finding.value} at first, and later value {finding.other_value}."


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on what names the first two of the values at the offset."""
    values = (finding.value, finding.other_value)
    named = [acknowledged(frames, finding, finding.offset, value) for value in values]
    return attributed(*named, *(delivered(frames, finding, finding.offset, value) for value in values))


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The first row that names each value there, and the cuts of the offset off a log."""
    yield from witnesses.values_at(finding)
    yield from witnesses.cuts(finding)


def _conflict(
    timeline: Timeline, values: list[list[Sighting]], begun: Mapping[tuple[TopicPartition, int], int]
) -> Finding:
    first, second = values[0][0], values[1][0]
    sent = [begun.get((first.where, group[0].value)) for group in values]
    return Finding(
        timeline.run, "inconsistent-offsets", *first.where,
        offset=first.offset,
        value=first.value,
        leader_epoch=min((s.leader_epoch for s in values[0] if s.leader_epoch is not None), default=None),
        excuse=_excuse(timeline, values),
        row=first.row,
        time_ns=first.time_ns,
        other_value=second.value,
        since_ns=None if None in sent else min(at for at in sent if at is not None),
        by_ns=min(s.time_ns for s in values[1]),
    )  # fmt: skip


def _excuse(timeline: Timeline, values: list[list[Sighting]]) -> Excuse | None:
    first = values[0][0]
    epochs = [s.leader_epoch for group in values for s in group if s.leader_epoch is not None]
    if sum(any(s.strong for s in group) for group in values) < 2:
        return "acks"
    oldest = min(epochs, default=None)
    return "unclean" if timeline.given_up(first.where, oldest, first.offset, first.time_ns) else None
