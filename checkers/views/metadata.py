"""What the cluster told a client of its partitions during the run, and what that proves although it may be stale.

Rows of the timeline of kind ``metadata`` (``guarantees.timeline`` is ``metadata``) are answers to a client: no node
says them of itself, and which broker answered is not known. A broker that is cut off may answer what was true long ago.
So an answer counts by its leader epoch, not by when it came: see :mod:`checkers.hw_regression`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from checkers.views.row import ALL, Row, where
from harness.anomaly import AnomalyKind
from harness.facts import NodeFacts
from harness.findings import Finding
from harness.metadata_facts import METADATA_REFUSALS, MetadataEpoch, MetadataRefusal
from harness.model import TopicPartition

KIND = "metadata"
"""The kind of the timeline's rows."""


@dataclass(frozen=True)
class Metadata:
    """What one cluster told.

    Attributes:
        rows: the timeline's rows of that kind.
    """

    run: str
    rows: Sequence[Row]

    @cached_property
    def watermarks(self) -> dict[TopicPartition, list[Row]]:
        """The answers that name a high watermark, by partition; by leader epoch, then in the order of the questions."""
        found: dict[TopicPartition, list[Row]] = {}
        for row in sorted(self.rows, key=lambda row: (row["leader_epoch"] or 0, row["sequence"])):
            if row["leader_epoch"] is not None and row["high_watermark"] is not None:
                found.setdefault(where(row), []).append(row)
        return found

    @cached_property
    def starts(self) -> dict[TopicPartition, Row]:
        """By partition, the first answer of a broker with the highest log start that any broker gave, if above 0."""
        told = [row for row in self.rows if row["log_start_offset"]]
        return {where(row): row for row in sorted(told, key=lambda row: (row["log_start_offset"], -row["sequence"]))}

    def highest(self, place: TopicPartition) -> int:
        """The highest high watermark that the cluster told of a partition; 0: none."""
        return max((row["high_watermark"] for row in self.watermarks.get(place, ())), default=0)


def parted(timeline: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The rows of nodes, and what the cluster told a client."""
    return [row for row in timeline if row["kind"] != KIND], [row for row in timeline if row["kind"] == KIND]


def told_of(node_facts: NodeFacts, finding: Finding, kind: AnomalyKind) -> str:
    """Below which watermarks a lost record was, and at which change of leader it vanished, in sentences or none.

    A record whose sender did not wait for all was perhaps never below one: the offset may be that of another record.
    """
    epochs = sorted(
        (one for one in node_facts.metadata if (one.topic, one.partition) == (finding.topic, finding.partition)),
        key=lambda one: one.leader_epoch,
    )
    epochs = [one for one in epochs if one.leader_epoch >= (finding.leader_epoch or 0)]
    if not kind.shows_loss or finding.offset is None or finding.acks not in (None, ALL) or not epochs:
        return ""
    above = [one for one in epochs if one.highest > finding.offset]
    if not above:
        return " The cluster told no high watermark above its offset."
    short = [one for one in epochs if one.leader_epoch > above[0].leader_epoch and one.lowest <= finding.offset]
    if not short:
        told = f"The cluster told high watermarks above its offset in leader epochs {_named(above)}"
        return f" {told}, and none at or below it after that."
    first = short[0]
    last = [one for one in above if one.leader_epoch < first.leader_epoch][-1]
    told = f"The leader of epoch {last.leader_epoch} told clients a high watermark of {last.highest}, above its offset"
    vanished = "it vanished when that one was elected, or in between"
    return f" {told}, and that of epoch {first.leader_epoch} one of {first.lowest}: {vanished}."


def _named(epochs: Sequence[MetadataEpoch]) -> str:
    numbers = [one.leader_epoch for one in epochs]
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def limits(node_facts: NodeFacts, acked: int, below: int) -> Iterator[str]:
    """What the answers leave open, in sentences.

    Args:
        node_facts: with what the cluster answered, and what it refused.
        acked: how many acknowledgements with acks=all there are that name an offset.
        below: how many of them are below some high watermark that the cluster told.
    """
    every = sorted(node_facts.metadata_refusals, key=lambda one: (-one.samples, one.refused))
    refusals, silent = ([one for one in every if one.asked == asked] for asked in METADATA_REFUSALS)
    if not node_facts.metadata:
        yield f"The cluster told no high watermark of a leader's epoch{_of(refusals)}: only its clients were asked."
        return
    if below < acked:
        yield f"{acked - below} acknowledgements with acks=all are above every high watermark that the cluster told."
    if refusals:
        yield f"Some questions for high watermarks were not answered{_of(refusals)}."
    if silent:
        yield f"Some questions for where logs begin were not answered{_of(silent)}."


def _of(refusals: Sequence[MetadataRefusal]) -> str:
    said = ", ".join(f"{one.refused} in {one.samples}" for one in refusals)
    return f" ({said} samples)" if said else ""
