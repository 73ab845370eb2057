"""Defines verdicts: those on single anomalies, and the outcome of a run.

The engines (``checkers``, ``spark_analysis``), the reports and the command line share these types. ``verdict.json`` is
:class:`RunVerdict` as written by :func:`to_json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Final, Literal

from harness.errors import ExitCode, InvalidRun, UsageError
from harness.json_schema import published, schema_of
from harness.validation import Document, shortened, validated

SCHEMA: Final = "verdict-1.json"
"""The schema of ``verdict.json``, below ``docs/schemas``."""

SCHEMA_VERSION: Final = 1


class Verdict(StrEnum):
    """The verdict on one anomaly, gravest first."""

    VIOLATION = "VIOLATION"
    """The configuration promises that it never happens."""
    EXPECTED = "EXPECTED"
    """The scenario predicts it for this protocol generation."""
    DOCUMENTED = "DOCUMENTED"
    """The configuration permits it: unclean election, retention, lossy failure of every in-sync replica."""
    WEAK = "WEAK"
    """The acknowledgement was of acks 0 or 1."""
    INDETERMINATE = "INDETERMINATE"
    """The evidence does not suffice."""


EXCUSED = frozenset({Verdict.DOCUMENTED, Verdict.WEAK})
"""The verdicts with which a run passes."""


class Outcome(StrEnum):
    """The outcome of a run."""

    PASS = "pass"
    """Nothing was lost and nothing was predicted to be."""
    AS_PREDICTED = "as-predicted"
    """Exactly the predicted anomalies were observed."""
    VIOLATION = "violation"
    """An anomaly that nothing predicted or documented."""
    NOT_REPRODUCED = "not-reproduced"
    """A predicted anomaly did not happen: the reproduction failed."""
    INCONCLUSIVE = "inconclusive"
    """The evidence does not suffice to decide."""
    INVALID = "invalid"
    """A fault was not proven, or the history is incomplete: the run proves nothing."""

    @property
    def headline(self) -> str:
        """As the console and reports have it: ``AS PREDICTED``."""
        return self.value.upper().replace("-", " ")


EXIT_CODES: Mapping[Outcome, ExitCode] = {
    Outcome.PASS: ExitCode.PASS,
    Outcome.AS_PREDICTED: ExitCode.PASS,
    Outcome.VIOLATION: ExitCode.VIOLATION,
    Outcome.NOT_REPRODUCED: ExitCode.VIOLATION,
    Outcome.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
    Outcome.INVALID: ExitCode.INVALID,
}


class Side(StrEnum):
    """Where an anomaly comes from, by the frames of a wire tap."""

    BROKER = "broker"
    """The clients report what brokers answered, and that is what is wrong."""
    CLIENT = "client"
    """A client reports what no broker answered, or did what it does not report."""
    UNDECIDED = "undecided"
    """The frames do not show it."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A row that shows the anomaly.

    Attributes:
        table: ``history``, ``timeline``, ``replica_logs``, ``faults`` or ``wire``; others are documents of the run.
        row: the key of the row in it.
        says: its content in words.
    """

    table: str
    row: Mapping[str, int | str]
    says: str


@dataclass(frozen=True, slots=True)
class Attribution:
    """Whose an anomaly is, by the frames of a wire tap.

    Attributes:
        side: the broker's, the client's, or not decided.
        why: one sentence: what the frames show.
        frames: rows of the table ``wire`` that show it.
    """

    side: Side
    why: str
    frames: tuple[Evidence, ...] = ()

    @property
    def words(self) -> str:
        """All but the frames."""
        return f"By the wire tap: {self.side}. {self.why}"


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One breach of one promise. Fields that do not apply are None.

    Attributes:
        kind: Jepsen's name where it has one (``lost-write``, ``inconsistent-offsets``), else ours.
        verdict: the verdict on it.
        topic: where.
        partition: its number.
        offset: in the partition.
        value: of the record concerned.
        leader_epoch: of the record where any evidence has it; else of the leader concerned.
        evidence: rows that show it.
        why: one sentence: the promise, and what was seen instead.
        because: one sentence: why this verdict, and what in the configuration permits it.
        attribution: whose it is; None: the run had no wire tap, or it is of a kind that is not about clients.
    """

    kind: str
    verdict: Verdict
    topic: str | None
    partition: int | None
    offset: int | None
    value: int | None
    leader_epoch: int | None
    why: str
    evidence: tuple[Evidence, ...] = ()
    because: str = ""
    attribution: Attribution | None = None


def offsets(first: int, end: int) -> str:
    """Offsets up to ``end``, exclusive: ``offset 4``, ``offsets 4 to 6``."""
    return f"offset {first}" if end - 1 == first else f"offsets {first} to {end - 1}"


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Consecutive offsets at each of which there are anomalies of one kind.

    Attributes:
        first_offset: the lowest.
        end_offset: exclusive.
        count: how many anomalies there are at these offsets.
        highest_value: likewise.
        lowest_value: of the records concerned; None where they name none, as is ``highest_value``.
    """

    first_offset: int
    end_offset: int
    count: int
    lowest_value: int | None
    highest_value: int | None


@dataclass(frozen=True, slots=True)
class Extent:
    """All anomalies of one kind in one partition with the same excuse, or none: their number and places.

    Attributes:
        kind: of the anomalies.
        topic: with ``partition`` the place; None for anomalies of a node.
        partition: its number.
        verdicts: those on the examples, gravest first.
        count: the number of anomalies.
        examples: how many of them the verdict's ``anomalies`` show with their evidence.
        ranges: their offsets; the lowest ranges where there are too many.
        more_ranges: the number of further ranges.
        in_more_ranges: the number of anomalies in them.
        without_offset: the number of anomalies without an offset.
    """

    kind: str
    topic: str | None
    partition: int | None
    verdicts: tuple[Verdict, ...]
    count: int
    examples: int
    ranges: tuple[OffsetRange, ...]
    more_ranges: int
    in_more_ranges: int
    without_offset: int


@dataclass(frozen=True, slots=True)
class Prediction:
    """An anomaly that a scenario predicts. None matches anything.

    Attributes:
        kind: of the anomaly.
        topic: where.
        partition: its number.
        offset: in the partition.
        verdict: the one without the prediction. An anomaly that the configuration permits does not reproduce a
            violation, so it matches only a prediction with its verdict.
    """

    kind: str
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    verdict: Verdict = Verdict.VIOLATION

    def __post_init__(self) -> None:
        object.__setattr__(self, "verdict", Verdict(self.verdict))

    def matches(self, anomaly: Anomaly) -> bool:
        """Whether ``anomaly``, judged without predictions, is one that this prediction means."""
        return self.verdict is anomaly.verdict and self.names(anomaly)

    def names(self, anomaly: Anomaly) -> bool:
        """Whether ``anomaly`` is of this kind and at this place, whatever its verdict."""
        pairs = ((self.topic, anomaly.topic), (self.partition, anomaly.partition), (self.offset, anomaly.offset))
        return self.kind == anomaly.kind and all(mine is None or mine == theirs for mine, theirs in pairs)


@dataclass(frozen=True, slots=True)
class CopyStory:
    """One replica's copy of a lost range, by its broker's timeline.

    Times are in nanoseconds of the run's clock.

    Attributes:
        node: the broker.
        first_offset: of the range.
        end_offset: exclusive.
        held_ns: by when it had the whole range.
        event: what removed it: truncation, log_start, power_loss, wipe_disk, corrupt_log or restart; in a sampled
            timeline ``unseen`` if its broker restarted between two observations without further proof; None: nothing.
        reason: from the row about it, or the fault's proof.
        gone_ns: when; with ``incarnation`` and ``sequence`` the row of the node's timeline that shows it. In a sampled
            timeline: when it was first seen to be gone.
        incarnation: of the node in that row.
        sequence: of that row.
        seen_ns: the last row before that in which it was still there.
    """

    node: int
    first_offset: int
    end_offset: int
    held_ns: int
    event: str | None = None
    reason: str | None = None
    gone_ns: int | None = None
    incarnation: int | None = None
    sequence: int | None = None
    seen_ns: int | None = None


@dataclass(frozen=True, slots=True)
class LossStory:
    """The story of lost records at consecutive offsets of one partition and one leader epoch.

    Times are in nanoseconds of the run's clock.

    Attributes:
        topic: where.
        partition: its number.
        first_offset: the lowest.
        end_offset: exclusive.
        leader_epoch: of the records; None: unknown, and so is the rest, unless in a sampled timeline only one broker
            can have led when they were acknowledged.
        acks: the least of their senders' acks.
        acknowledged_by: the leader of that epoch.
        first_acknowledged_ns: when the first of them was acknowledged.
        last_acknowledged_ns: when the last of them was.
        committed_by: the leader whose high watermark passed all of them in that epoch.
        committed_ns: by when.
        copies: every copy of any of them, by its time.
        survivors: the nodes on whose disks some of them still are.
        last_copy: the copy that was removed last; None when there are survivors, or no row has the event. In a sampled
            timeline the last one in the ISR, where that is known; else the last one, if the observations show it.
        fault: the last fault that was injected before that.
        election: the last election before that which began a later epoch: leader, leader_epoch, time_ns, clean, cause.
        words: all of this in a sentence.
    """

    topic: str
    partition: int
    first_offset: int
    end_offset: int
    leader_epoch: int | None
    acks: int
    acknowledged_by: int | None
    first_acknowledged_ns: int
    last_acknowledged_ns: int
    committed_by: int | None
    committed_ns: int | None
    copies: tuple[CopyStory, ...]
    survivors: tuple[int, ...]
    last_copy: CopyStory | None
    fault: str | None
    election: Mapping[str, Any] | None
    words: str


@dataclass(frozen=True, slots=True)
class Outage:
    """A second or more without an acknowledgement of a partition, in which a client tried to send.

    It begins with the last acknowledgement before, or the first attempt, and ends with the next acknowledgement, or
    else with the last attempt, or its completion.

    Attributes:
        begin_ns: in nanoseconds of the run's clock.
        end_ns: likewise.
    """

    begin_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Recovery:
    """How soon a partition was whole and in service again, without a verdict.

    Times are in nanoseconds of the run's clock.

    Attributes:
        topic: the partition's.
        partition: its number.
        healed_ns: when the last fault of the run was proven healed; None: there was none.
        isr_full_ns: since when every replica was in the controller's ISR until the end; None: not at the end.
        first_ack_ns: the first acknowledgement after ``healed_ns``; None: there was none.
        outages: see :class:`Outage`; in order.
    """

    topic: str
    partition: int
    healed_ns: int | None
    isr_full_ns: int | None
    first_ack_ns: int | None
    outages: tuple[Outage, ...]

    @property
    def isr_full_after_s(self) -> float | None:
        """How long after the last healing the ISR was full; 0 when it was before."""
        if self.healed_ns is None or self.isr_full_ns is None:
            return None
        return max(0, self.isr_full_ns - self.healed_ns) / 1e9

    @property
    def longest_outage_s(self) -> float:
        """The longest of the outages; 0 without any."""
        return max((one.end_ns - one.begin_ns for one in self.outages), default=0) / 1e9


class EvidenceTier(StrEnum):
    """What was observed of a run, least first.

    Each shows all that those before it show, but that replica logs alone show nothing of the metadata.
    """

    CLIENTS = "clients only"
    METADATA = "clients and the cluster's metadata"
    DISKS = "clients and replica logs"
    LOGS = "clients, the cluster's metadata and replica logs"
    SAMPLES = "clients, replica logs and samples of the brokers' states"
    BROKERS = "clients, replica logs and all changes of the brokers' states"


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The verdict on one run.

    Attributes:
        run: the run's id.
        outcome: of the run.
        engine: what checked it: ``spark`` or ``reference``.
        anomalies: examples of each kind in each partition, with their evidence.
        extents: the number and places of all anomalies of each kind.
        reasons: one sentence each for an invalid or inconclusive outcome.
        predicted: what the scenario predicts.
        unmet: predictions that nothing matched.
        counts: acknowledged, failed and indeterminate sends, polled records, faults proven ... by name.
        losses: the story of each lost range.
        recovery: how soon each partition was in service again.
        limits: what the evidence cannot show, one sentence each.
        evidence: what was observed.
        not_asked: the kinds of anomaly that this cannot show, sorted.
    """

    run: str
    outcome: Outcome
    engine: str
    anomalies: Sequence[Anomaly] = ()
    reasons: Sequence[str] = ()
    predicted: Sequence[Prediction] = ()
    unmet: Sequence[Prediction] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    losses: Sequence[LossStory] = ()
    recovery: Sequence[Recovery] = ()
    limits: Sequence[str] = ()
    evidence: EvidenceTier = EvidenceTier.BROKERS
    not_asked: Sequence[str] = ()
    extents: Sequence[Extent] = ()

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of a command that checked this run alone."""
        return EXIT_CODES[self.outcome]

    def total(self, kind: str) -> int:
        """The number of anomalies of a kind, of which ``anomalies`` may have only examples."""
        return max(self.counts.get(kind, 0), sum(a.kind == kind for a in self.anomalies))

    def excused(self, kind: str) -> int:
        """How many of them the configuration or the acks excuse."""
        return sum(one.count for one in self.extents if one.kind == kind and EXCUSED.issuperset(one.verdicts))


@dataclass(frozen=True, slots=True)
class VerdictFile(RunVerdict):
    """``verdict.json``: the verdict on a run, and what it was made of.

    Attributes:
        inputs: the SHA-256 of each document and table that the checker read, by name; empty for a run behind a URI.
            The output of ``seawall check --json`` has neither this nor the digest.
        digest: the SHA-256 of all the rest; see ``harness/history/seal.py``.
        schema_version: of this document.
    """

    inputs: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""
    schema_version: Literal[1] = 1


def schema() -> str:
    """The JSON Schema of ``verdict.json``, as ``docs/schemas/verdict-1.json`` has it."""
    found = schema_of(VerdictFile)
    found["properties"]["exit_code"] = {
        "enum": sorted({int(code) for code in EXIT_CODES.values()}),
        "description": "Of a command that checked this run alone.",
    }
    found["required"] = [*(key for key in found["required"] if key not in ("inputs", "digest")), "exit_code"]
    return published(SCHEMA, "verdict.json of a run directory of seawall", found)


def to_json(verdict: RunVerdict) -> dict[str, Any]:
    """``verdict.json`` as plain data; :func:`harness.history.seal.sealed` adds what it was made of."""
    return {"schema_version": SCHEMA_VERSION, **asdict(verdict), "exit_code": int(verdict.exit_code)}


def differing_parts(one: RunVerdict, other: RunVerdict) -> list[str]:
    """The parts of ``verdict.json`` in which two engines' verdicts on a run differ, except their names; sorted."""
    mine, theirs = to_json(one), to_json(other)
    return sorted(part for part in mine if part != "engine" and mine[part] != theirs[part])


def from_json(document: Mapping[str, Any]) -> RunVerdict:
    """The inverse of :func:`to_json`.

    Raises:
        InvalidRun: a key is missing, or its value has the wrong type; names the key.
    """
    if (version := document.get("schema_version", SCHEMA_VERSION)) != SCHEMA_VERSION:
        raise InvalidRun(
            f"verdict.json: schema_version {shortened(version)} is not this version's {SCHEMA_VERSION}.",
            "Check the run again.",
        )
    try:
        found = validated(_Document, document, "", whole="it").root
    except UsageError as error:
        raise InvalidRun(f"verdict.json: {error.sentence}", "Check the run again.") from None
    values = ((one.name, getattr(found, one.name)) for one in fields(found))
    lists: dict[str, Any] = {name: tuple(value) for name, value in values if isinstance(value, list)}
    return replace(found, **lists)


class _Document(Document[RunVerdict]):
    """``verdict.json`` with validated types; missing parts are empty."""
