"""The result of one cell of a night: a line of ``results.jsonl``, from which every other output is written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict

from harness.checker import EvidenceTier

SCHEMA_VERSION = 1


class CellOutcome(StrEnum):
    """How a cell ended: the outcome of its run, or why it has none. The first seven took a run."""

    PASS = "pass"
    AS_PREDICTED = "as-predicted"
    VIOLATION = "violation"
    NOT_REPRODUCED = "not-reproduced"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    DISAGREEMENT = "disagreement"
    """The two engines gave different verdicts: one of them is wrong."""
    ENVIRONMENT = "environment"
    """The machine or the target could not do what the cell needs, although it has the capability."""
    TIMEOUT = "timeout"
    """The cell passed its hard time limit and was ended."""
    ERROR = "error"
    """seawall, or the command of the cell, failed in a way that is no verdict."""
    SKIPPED = "skipped"
    """A capability that the cell needs is missing here; ``reason`` names it."""
    NOT_RUN = "not-run"
    """The budget, or a cancellation, came first."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Incident(_Frozen):
    """Anomalies of one kind in one place, without values and offsets, which differ with every seed.

    Attributes:
        kind: of the anomalies.
        place: ``topic/partition``, ``broker N``, or empty for the whole run.
        count: how many anomalies there are of this kind in this place.
    """

    kind: str
    place: str
    count: int


class Try(_Frozen):
    """One execution of a cell. Only what is inconclusive, invalid or of the environment is tried again.

    Attributes:
        outcome: how it ended.
        exit_code: of its command; None: it was ended.
        seconds: how long it took.
        run: its run directory; None when nothing was recorded or kept.
    """

    outcome: CellOutcome
    exit_code: int | None
    seconds: float
    run: str | None


class Measures(_Frozen):
    """What trends show; None where the run says nothing about it.

    Attributes:
        acknowledged_per_s: acknowledged sends per second.
        p99_ms: the 99th percentile of the latency of sends in milliseconds.
        longest_outage_s: the longest time in seconds without an acknowledgement of a partition.
        recovery_s: seconds from the last healing until every ISR was full.
    """

    acknowledged_per_s: float | None = None
    p99_ms: float | None = None
    longest_outage_s: float | None = None
    recovery_s: float | None = None


class CellResult(_Frozen):
    """The result of one cell.

    Attributes:
        schema_version: of a line.
        night: the identifier of the night, by default its date in UTC.
        cell: its identity, unique in a night: of kind, target, generation, scenario, settings and seed.
        series: the same without the seed: what is compared across nights.
        generation: the generation of the built-in brokers, or the release of Kafka.
        kind: of the entry of the plan.
        target: as ``--target`` spells it.
        scenario: its name; None for other kinds.
        seed: None for a command without seeds.
        settings: what ``--set`` overrode.
        duration_s: for how many seconds random faults were to go on; None: as in the scenario.
        bank: the cell is an entry of the seed bank.
        outcome: how it ended.
        exit_code: of its last try; None: there was none, or it was ended.
        signature: digest of the kinds and places of ``incidents``; None where there are none.
        incidents: gravest first: those that nothing predicted or excused.
        story: a few sentences: what was lost, where, and why.
        reason: why it was skipped or not run, or the reasons of a verdict that decides nothing.
        reproduce: the command that runs it again.
        run: the run directory, relative to the directory of the night; None when nothing was recorded or kept.
        report: the HTML report, relative to the directory of the night.
        started: UTC, ISO 8601.
        seconds: how long all tries together took.
        tries: every execution.
        measures: what trends show.
        versions: of seawall, the target, Python, and of others that the run names.
        evidence: what was observed of the run; None: there is no verdict.
        not_asked: the kinds of anomaly that this cannot show, sorted.
        plan: SHA-256 of the plan's content.
        shard: ``2/5``; None: the night was not divided.
    """

    schema_version: Literal[1] = 1
    night: str
    cell: str
    series: str
    kind: Literal["run", "simulate", "command"]
    target: str
    generation: str | None = None
    scenario: str | None = None
    seed: int | None = None
    settings: Mapping[str, str] = {}
    duration_s: float | None = None
    bank: bool = False
    outcome: CellOutcome
    exit_code: int | None
    signature: str | None = None
    incidents: tuple[Incident, ...] = ()
    story: tuple[str, ...] = ()
    reason: str = ""
    reproduce: str
    run: str | None = None
    report: str | None = None
    started: str | None = None
    seconds: float = 0.0
    tries: tuple[Try, ...] = ()
    measures: Measures = Measures()
    versions: Mapping[str, str] = {}
    evidence: EvidenceTier | None = None
    not_asked: tuple[str, ...] = ()
    plan: str
    shard: str | None = None


def signature_of(incidents: Iterable[Incident]) -> str | None:
    """Digest of the kinds and places of incidents, whatever their order and counts; None where there are none."""
    found = sorted({f"{one.kind} {one.place}" for one in incidents})
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16] if found else None
