"""What a verdict is: the lattice of single observations, the anomaly, and the outcome of a run.

Engines live elsewhere (``checkers``, ``spark_analysis``); this module holds what they, the reports and the
command line must agree on. ``verdict.json`` is :class:`RunVerdict` written out by :func:`to_json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from harness.errors import ExitCode


class Verdict(StrEnum):
    """How one observation is judged, gravest first."""

    VIOLATION = "VIOLATION"
    """The configuration promises that it never happens."""
    EXPECTED = "EXPECTED"
    """The scenario predicts it for this protocol generation."""
    DOCUMENTED = "DOCUMENTED"
    """The configuration gave it away: unclean election, retention, lossy failure of every in-sync replica."""
    WEAK = "WEAK"
    """The acknowledgement was of acks 0 or 1."""
    INDETERMINATE = "INDETERMINATE"
    """The evidence does not suffice."""


class Outcome(StrEnum):
    """The outcome of a run."""

    PASS = "pass"
    """Nothing was lost and nothing was predicted to be."""
    AS_PREDICTED = "as-predicted"
    """Exactly the predicted anomalies were observed: guilty, and known to be."""
    VIOLATION = "violation"
    """An anomaly that nothing predicted or documented."""
    NOT_REPRODUCED = "not-reproduced"
    """A predicted anomaly did not happen: the reproduction failed."""
    INCONCLUSIVE = "inconclusive"
    """The evidence does not suffice to decide."""
    INVALID = "invalid"
    """A fault was not proven, or the history is incomplete: the run proves nothing."""


EXIT_CODES: Mapping[Outcome, ExitCode] = {
    Outcome.PASS: ExitCode.PASS,
    Outcome.AS_PREDICTED: ExitCode.PASS,
    Outcome.VIOLATION: ExitCode.VIOLATION,
    Outcome.NOT_REPRODUCED: ExitCode.VIOLATION,
    Outcome.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
    Outcome.INVALID: ExitCode.INVALID,
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """A row that shows the anomaly: the table, what identifies the row in it, and what it says in words."""

    table: str
    row: Mapping[str, int | str]
    says: str


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One breach of one promise. Fields that do not apply are None.

    Attributes:
        kind: Jepsen's name where it has one (``lost-write``, ``inconsistent-offsets``), else ours.
        why: one sentence: what was promised, and what was seen instead.
        because: one sentence: why this verdict, and what in the configuration gave it away.
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


@dataclass(frozen=True, slots=True)
class Prediction:
    """An anomaly that a scenario predicts. None matches anything."""

    kind: str
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None

    def matches(self, anomaly: Anomaly) -> bool:
        """Whether ``anomaly`` is one that this prediction means."""
        pairs = ((self.topic, anomaly.topic), (self.partition, anomaly.partition), (self.offset, anomaly.offset))
        return self.kind == anomaly.kind and all(mine is None or mine == theirs for mine, theirs in pairs)


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The verdict on one run.

    Attributes:
        reasons: one sentence each for an invalid or inconclusive outcome.
        unmet: predictions that nothing matched.
        counts: acknowledged, failed and indeterminate sends, polled records, faults proven ... by name.
    """

    run: str
    outcome: Outcome
    engine: str
    anomalies: Sequence[Anomaly] = ()
    reasons: Sequence[str] = ()
    predicted: Sequence[Prediction] = ()
    unmet: Sequence[Prediction] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of a command that checked this run alone."""
        return EXIT_CODES[self.outcome]


def to_json(verdict: RunVerdict) -> dict[str, Any]:
    """``verdict.json`` as plain data."""
    return {**asdict(verdict), "exit_code": int(verdict.exit_code)}


def from_json(document: Mapping[str, Any]) -> RunVerdict:
    """The inverse of :func:`to_json`."""
    anomalies = tuple(
        Anomaly(
            **{
                **a,
                "verdict": Verdict(a["verdict"]),
                "evidence": tuple(Evidence(**e) for e in a["evidence"]),
            }
        )
        for a in document["anomalies"]
    )
    return RunVerdict(
        run=document["run"],
        outcome=Outcome(document["outcome"]),
        engine=document["engine"],
        anomalies=anomalies,
        reasons=tuple(document["reasons"]),
        predicted=tuple(Prediction(**p) for p in document["predicted"]),
        unmet=tuple(Prediction(**p) for p in document["unmet"]),
        counts=dict(document["counts"]),
    )
