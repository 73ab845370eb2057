"""Reads what a try came to: from the run directory that it left, from its exit code, and from what it printed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from harness.checker import Anomaly, EvidenceTier, Extent, RunVerdict, Verdict, from_json
from harness.errors import ExitCode, InvalidRun
from harness.history.run_directory import RunDirectory
from harness.history.schema import TABLES
from harness.history.table_file import TooManyRows, read_columns, require_readable
from harness.nightly.attempt import LOG
from harness.nightly.cells import Cell
from harness.nightly.result import CellOutcome, Incident, Measures

_OUTCOMES: Mapping[int, CellOutcome] = {
    ExitCode.PASS: CellOutcome.PASS,
    ExitCode.VIOLATION: CellOutcome.VIOLATION,
    ExitCode.INCONCLUSIVE: CellOutcome.INCONCLUSIVE,
    ExitCode.INVALID: CellOutcome.INVALID,
    ExitCode.ENVIRONMENT: CellOutcome.ENVIRONMENT,
}
_VERDICTS = (ExitCode.PASS, ExitCode.VIOLATION, ExitCode.INCONCLUSIVE, ExitCode.INVALID)
_VIOLATIONS = (CellOutcome.VIOLATION, CellOutcome.NOT_REPRODUCED)
_MOST_SENTENCES = 4
_MOST_CHARACTERS = 2_000
_MOST_MEASURED_ROWS = 1_000_000
_SIMULATED = re.compile(r"^seed (\d+): \S+ (\S+?)(?: at offset \d+)?(?:, broker [\d, ]+)?, [\d.]+ ms .*$", re.MULTILINE)
"""How ``seawall simulate`` explains the first violation of each kind: its invariant, its kind, its place."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a try came to; the fields are those of :class:`harness.nightly.result.CellResult`.

    Attributes:
        run: its run directory; None: it left none.
        seed: that showed the violation, where the cell explored many; else None.
        kafka: the release that ran, as far as the run says.
    """

    outcome: CellOutcome
    reason: str = ""
    incidents: tuple[Incident, ...] = ()
    story: tuple[str, ...] = ()
    measures: Measures = field(default_factory=Measures)
    versions: Mapping[str, str] = field(default_factory=dict)
    run: Path | None = None
    reproduce: str | None = None
    seed: int | None = None
    kafka: str | None = None
    evidence: EvidenceTier | None = None
    not_asked: tuple[str, ...] = ()


def read(cell: Cell, directory: Path, code: int, *, is_late: bool) -> Reading:
    """What the try in ``directory`` came to, which ended with exit code ``code`` (of a signal negative)."""
    printed = _printed(directory / LOG)
    run = _run_directory(directory) if cell.kind == "run" else None
    if run is not None:
        found = _of_run(run, code, printed)
    elif cell.kind == "simulate":
        found = _of_simulation(code, printed)
    else:
        found = _of_exit_code(code, printed, is_verdict=cell.kind == "command")
    if is_late and found.outcome not in _VIOLATIONS:
        late = f"It passed its time limit of {cell.time_limit_s:g} s and was ended."
        return Reading(CellOutcome.TIMEOUT, late, versions=found.versions, run=run, kafka=found.kafka)
    return found


def _run_directory(directory: Path) -> Path | None:
    """The directory of the only run below ``directory``, without the links to it."""
    for link in (*directory.glob("latest"), *directory.glob(".latest-*")):
        link.unlink(missing_ok=True)
    return next((path.parent for path in sorted(directory.glob("*/*/run.json"))), None)


def _of_exit_code(code: int, printed: str, *, is_verdict: bool) -> Reading:
    """What an exit code means by itself; ``is_verdict``: without a run directory, too."""
    last = _last(printed, "seawall: ")
    reproduce = _last(printed, "reproduce: ") or None
    if code < 0 or code == ExitCode.INTERRUPTED:
        by = f"signal {-code}" if code < 0 else "a signal"
        return Reading(CellOutcome.ENVIRONMENT, f"{by} ended it from outside.", reproduce=reproduce)
    outcome = _OUTCOMES.get(code, CellOutcome.ERROR)
    if code in _VERDICTS and not is_verdict:
        return Reading(CellOutcome.ERROR, f"It ended with {code} and left no verdict. {last}".strip())
    if outcome is CellOutcome.PASS:
        return Reading(outcome)
    lines = [line for line in printed.splitlines() if line.strip() and not line.startswith("reproduce: ")]
    said = last or _shortened(lines[-1] if lines else "")
    return Reading(outcome, f"It ended with exit code {code}{f': {said}' if said else '.'}", reproduce=reproduce)


# ----------------------------------------------------------------------------------------------------------------- runs


def _of_run(run: Path, code: int, printed: str) -> Reading:
    by_code = _of_exit_code(code, printed, is_verdict=False)
    try:
        directory = RunDirectory.open(run)
        manifest, document = directory.manifest(), directory.read_verdict()
        verdict = None if document is None else from_json(document)
    except InvalidRun as error:
        return Reading(CellOutcome.ERROR, str(error), run=run)
    known = Reading(by_code.outcome, versions=manifest.versions, run=run, kafka=manifest.versions.get("kafka"))
    if verdict is None or (code in _VERDICTS and code != verdict.exit_code):
        return replace(known, reason=manifest.why or by_code.reason, reproduce=by_code.reproduce)
    if code not in _VERDICTS and verdict.exit_code != ExitCode.VIOLATION:
        return replace(known, reason=by_code.reason)
    return replace(
        known,
        outcome=CellOutcome(verdict.outcome.value),
        reason=_reason(verdict),
        incidents=_incidents(verdict),
        story=tuple(_story(verdict)),
        measures=_measures(directory, verdict),
        evidence=verdict.evidence,
        not_asked=tuple(verdict.not_asked),
    )


def _reason(verdict: RunVerdict) -> str:
    unmet = [f"Predicted and not observed: {one.kind}." for one in verdict.unmet]
    return _shortened(" ".join((*verdict.reasons, *unmet)))


def _incidents(verdict: RunVerdict) -> tuple[Incident, ...]:
    """What nothing predicted or excused, by kind and place, the most frequent first."""
    counts: Counter[tuple[str, str]] = Counter()
    for extent in verdict.extents:
        if Verdict.VIOLATION in extent.verdicts:
            counts[extent.kind, _place(verdict, extent)] += extent.count
    order = list(dict.fromkeys(one.kind for one in verdict.anomalies if one.verdict is Verdict.VIOLATION))
    ranked = sorted(counts, key=lambda one: (order.index(one[0]) if one[0] in order else len(order), one))
    return tuple(Incident(kind=kind, place=place, count=counts[kind, place]) for kind, place in ranked)


def _place(verdict: RunVerdict, extent: Extent) -> str:
    if extent.topic is not None:
        return f"{extent.topic}/{extent.partition}"
    nodes = {node for one in verdict.anomalies if one.kind == extent.kind and one.topic is None for node in _nodes(one)}
    return f"broker {min(nodes)}" if len(nodes) == 1 else ""


def _nodes(anomaly: Anomaly) -> Iterator[int]:
    return (int(one.row["node"]) for one in anomaly.evidence if "node" in one.row)


def _story(verdict: RunVerdict) -> Iterator[str]:
    """The losses' stories, else what was promised and seen instead of each kind."""
    broken = [one for one in verdict.anomalies if one.verdict is Verdict.VIOLATION]
    if not broken:
        return
    told = [f"{one.topic}/{one.partition}: {one.words}" for one in verdict.losses]
    firsts = {one.kind: one for one in reversed(broken)}
    others = [f"{kind}: {one.why}" for kind, one in reversed(firsts.items())]
    sentences = [*told[: _MOST_SENTENCES - 1], *others][:_MOST_SENTENCES]
    yield from map(_shortened, sentences)


def _measures(directory: RunDirectory, verdict: RunVerdict) -> Measures:
    outages = [one.longest_outage_s for one in verdict.recovery]
    recoveries = [one.isr_full_after_s for one in verdict.recovery if one.isr_full_after_s is not None]
    per_s, p99_ms = _sends(directory)
    return Measures(
        acknowledged_per_s=per_s,
        p99_ms=p99_ms,
        longest_outage_s=round(max(outages), 3) if outages else None,
        recovery_s=round(max(recoveries), 3) if recoveries and len(recoveries) == len(outages) else None,
    )


def _sends(directory: RunDirectory) -> tuple[float | None, float | None]:
    """Acknowledged sends per second, and the 99th percentile of their latency in milliseconds."""
    table = TABLES["history"]
    try:
        files = directory.table_files("history")
        if sum(require_readable(table, file) for file in files) > _MOST_MEASURED_ROWS:
            return None, None
        history = pa.concat_tables([read_columns(table, file) for file in files])
    except (InvalidRun, TooManyRows):
        return None, None
    columns = ["process", "op", "mop", "value", "time_ns"]
    sends = history.filter(pc.equal(history["f"], "send"))
    asked = sends.filter(pc.equal(sends["type"], "invoke")).select(columns)
    answered = sends.filter(pc.equal(sends["type"], "ok")).select(columns)
    if not len(answered):
        return None, None
    pairs = answered.join(asked, ["process", "op", "mop", "value"], join_type="inner", right_suffix="_asked")
    if not len(pairs):
        return None, None
    took = pc.subtract(pairs["time_ns"], pairs["time_ns_asked"])
    span_s = (pc.max(pairs["time_ns"]).as_py() - pc.min(pairs["time_ns_asked"]).as_py()) / 1e9
    p99 = pc.quantile(took, 0.99)[0].as_py() / 1e6
    return (round(len(answered) / span_s, 1) if span_s else None), round(p99, 1)


# ---------------------------------------------------------------------------------------------------------- simulations


def _of_simulation(code: int, printed: str) -> Reading:
    """An exploration tells each kind of violation with its first seed."""
    by_code = _of_exit_code(code, printed, is_verdict=True)
    found = list(_SIMULATED.finditer(printed))
    if code != ExitCode.VIOLATION or not found:
        return by_code
    counts = Counter(one[2] for one in found)
    return Reading(
        CellOutcome.VIOLATION,
        by_code.reason,
        tuple(Incident(kind=kind, place="", count=number) for kind, number in counts.items()),
        tuple(_shortened(one[0]) for one in found[:_MOST_SENTENCES]),
        reproduce=by_code.reproduce,
        seed=min(int(one[1]) for one in found),
    )


# --------------------------------------------------------------------------------------------------------------- output


def _printed(log: Path) -> str:
    try:
        return log.read_text(errors="replace")
    except OSError:
        return ""


def _last(printed: str, prefix: str) -> str:
    """The last line that begins with ``prefix``, without it."""
    lines: Sequence[str] = [line for line in printed.splitlines() if line.startswith(prefix)]
    return _shortened(lines[-1].removeprefix(prefix)) if lines else ""


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"
