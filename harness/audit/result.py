"""A line of ``audit.jsonl``: what an audit found and measured in one window; publishes the schema of a line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.checker import EXIT_CODES, EvidenceTier, Outcome
from harness.errors import ExitCode, InvalidRun
from harness.json_schema import published, schema_of
from harness.unwritable import writing_below

NAME = "audit.jsonl"
SCHEMA_VERSION = 1


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Latency(_Frozen):
    """Times in milliseconds.

    Attributes:
        p50_ms: the median.
        p99_ms: the 99th percentile, by nearest rank.
        max_ms: the greatest.
    """

    p50_ms: float
    p99_ms: float
    max_ms: float


class PartitionMeasures(_Frozen):
    """What became of the sends to a partition.

    Attributes:
        partition: its number in the canary topic.
        sent: sends that began in the window.
        acknowledged: of these.
        availability: the share of the window's time that is in no gap longer than two sends and two seconds.
        longest_gap_s: the longest time without an acknowledgement, from the last one before the window on, in seconds.
    """

    partition: int
    sent: int
    acknowledged: int
    availability: float
    longest_gap_s: float


class Loss(_Frozen):
    """Acknowledged records of a partition that are not at their offsets any more.

    Attributes:
        partition: its number in the canary topic.
        records: how many.
        first_offset: the lowest offset among them.
        last_offset: the highest one, inclusive.
        sent_in: by the number of a window, how many began there.
        seen_ns: when the first of them was last known to be there, nanoseconds since the Unix epoch.
        missed_ns: when they were found to be gone.
    """

    partition: int
    records: int
    first_offset: int
    last_offset: int
    sent_in: Mapping[str, int]
    seen_ns: int
    missed_ns: int


class Answered(_Frozen):
    """What a change of leaders, or an event that an operator told of, has lost.

    Attributes:
        event: what happened.
        told: whether an operator told of it; else metadata or the leader epochs of records show it.
        at: when, in UTC; of a change that was seen the time by which it had happened.
        partition: its number in the canary topic.
        examined: acknowledged canary records before it that were looked for after it, and found or missed.
        gone: of those and older losses, how many are lost that were last seen before it and missed after it.
        first_offset: the lowest offset among these; null: none is gone.
        last_offset: the highest one, inclusive; null: none is gone.
        undecided: acknowledged canary records before it that were looked for and are neither found nor missed yet.
        between_ns: between which times it happened, nanoseconds since the Unix epoch, where the next window answers
            again, for some of these may still be decided; null: this answer is the last one.
        again: whether the window before has answered it, too; this answer replaces that one.
    """

    event: str
    told: bool
    at: str
    partition: int
    examined: int
    gone: int
    first_offset: int | None = None
    last_offset: int | None = None
    undecided: int = 0
    between_ns: tuple[int, int] | None = None
    again: bool = False


class WindowResult(_Frozen):
    """One window.

    Attributes:
        schema_version: of this object.
        window: its number, from 1.
        began: when, in UTC.
        ended: when its last send had begun, in UTC.
        outcome: of the reference checker on the window's history, see docs/anomalies.md.
        interrupted: whether the audit was killed in it; then no consumer's polls are in its history.
        blind_s: for how many seconds before it the audit did not run.
        sent: sends that began in it.
        acknowledged: of these.
        failed: of these, proven never to have been stored.
        unknown: of these, whose outcome is not known.
        lost: lost writes that the checker found, of this window and of earlier ones.
        anomalies: by kind, how many were found.
        reasons: why the outcome decides nothing, a sentence each.
        evidence: on which it rests, see docs/anomalies.md; null: it was not judged.
        not_asked: the kinds of anomaly that this evidence cannot show, sorted.
        carried: records of earlier windows that were looked for again.
        undecided: acknowledged records of which it is not known yet whether they are there.
        unverified: of those, how many were given up in this window because their time was over.
        ack: from sending to the acknowledgement; null: there was none.
        read: from sending to the first poll of a consumer that was given the record; null: there was none.
        partitions: what became of the sends to each.
        missed: which objectives it missed, a sentence each.
        losses: the lost records, by partition.
        answers: to what each change of leaders and each event has lost.
        run_directory: the window's evidence, relative to this file; null: nothing was found, and it was removed.
    """

    schema_version: Literal[1] = 1
    window: int
    began: str
    ended: str
    outcome: Outcome
    interrupted: bool
    blind_s: float
    sent: int
    acknowledged: int
    failed: int
    unknown: int
    lost: int
    anomalies: Mapping[str, int]
    reasons: tuple[str, ...]
    evidence: EvidenceTier | None
    not_asked: tuple[str, ...]
    carried: int
    undecided: int
    unverified: int
    ack: Latency | None
    read: Latency | None
    partitions: tuple[PartitionMeasures, ...]
    missed: tuple[str, ...] = ()
    losses: tuple[Loss, ...]
    answers: tuple[Answered, ...]
    run_directory: str | None

    @property
    def exit_code(self) -> ExitCode:
        """That of a command which saw this window alone; to miss an objective is as grave as a violation."""
        return ExitCode.VIOLATION if self.missed else EXIT_CODES[self.outcome]


def append(directory: Path, result: WindowResult) -> None:
    """Add a line to ``audit.jsonl``.

    Raises:
        EnvironmentFault: it cannot be written.
    """
    with writing_below(directory), (directory / NAME).open("a", encoding="utf-8") as file:
        file.write(result.model_dump_json() + "\n")


def read(directory: Path) -> list[WindowResult]:
    """The lines of ``audit.jsonl``; one that was not written to its end is removed, and it is the last one.

    Raises:
        InvalidRun: another line is no result of a window.
    """
    path = directory / NAME
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(WindowResult.model_validate_json(line, strict=False))
        except ValidationError:
            if number < len(lines) or line.endswith(b"\n"):
                raise InvalidRun(f"{path}, line {number} is no result of a window.", "Remove that line.") from None
            with writing_below(directory):
                path.write_bytes(b"".join(lines[:-1]))
    return found


def schema() -> str:
    """The JSON Schema of a line, as ``docs/schemas/audit-window-1.json`` has it."""
    name = f"audit-window-{SCHEMA_VERSION}.json"
    return published(name, "A line of audit.jsonl of seawall audit", schema_of(WindowResult, "serialization"))
