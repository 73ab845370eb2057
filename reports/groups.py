"""Consumer groups: each one's position, and what the partition holds there in the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.model import TopicPartition, partition_named
from reports.rows import State
from reports.run import Run


@dataclass(frozen=True, slots=True)
class Standing:
    """A group on one partition.

    Attributes:
        position: the offset up to which, exclusive, it has read or committed.
        start_offset: of the final leader's log; ``end_offset``: its high watermark. None: there was no final leader.
        remark: what that means for the group's next poll.
        alarming: whether the group will miss records, or read some again.
    """

    group: str
    partition: TopicPartition
    position: int
    start_offset: int | None
    end_offset: int | None
    remark: str
    alarming: bool


def standings(run: Run) -> Sequence[Standing]:
    """Every group that the schedule has used, partition by partition; empty where there is no schedule log."""
    return [
        _standing(run, group, partition_named(name), position)
        for group in sorted(run.groups)
        for name, position in sorted(run.groups[group]["position"].items())
    ]


def _standing(run: Run, group: str, partition: TopicPartition, position: int) -> Standing:
    leader = max(_final_leaders(run, partition), key=lambda s: (s.leader_epoch or 0, s.time_ns), default=None)
    if leader is None or leader.high_watermark is None:
        return Standing(group, partition, position, None, None, "no broker led the partition in the end", alarming=True)
    start, end = leader.log_start_offset or 0, leader.high_watermark
    remark, alarming = _remark(position, start, end)
    return Standing(group, partition, position, start, end, remark, alarming)


def _final_leaders(run: Run, partition: TopicPartition) -> Iterator[State]:
    for states in run.rows_of(partition).states.values():
        yield from (state for state in states if state.kind == "final" and state.role == "leader")


def _remark(position: int, start: int, end: int) -> tuple[str, bool]:
    if position > end:
        return f"{position - end} beyond the end: the next poll is out of range, or skips what was written since", True
    if position < start:
        return f"{start - position} before the start: what it has not read there is gone", True
    return ("at the end" if position == end else f"{end - position} to read"), False
