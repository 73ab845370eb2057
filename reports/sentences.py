"""The verdict in sentences: what was found, what was examined, and how to repeat the run."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.anomaly import LOST_WRITE
from harness.checker import EXIT_CODES, EvidenceTier, Outcome, Prediction, Verdict
from harness.history.run_directory import Manifest
from reports.glossary import OUTCOMES, is_gone
from reports.run import Run

_AGAIN: Final = "All below is what verdict.json holds now; `seawall check` of the run directory judges it again."


@dataclass(frozen=True, slots=True)
class Banner:
    """The top of the report.

    Attributes:
        outcome: of the run; the banner has its colour.
        finding: the rest of that sentence, without its full stop.
        promise: what the configuration promises.
        proof: what was looked at, one sentence each.
        reasons: why there is no verdict, and which predictions were not met.
        exit: the exit code and what it means.
        command: how to run it again.
    """

    outcome: Outcome
    finding: str
    promise: str
    proof: Sequence[str]
    reasons: Sequence[str]
    exit: str
    command: str


def banner(run: Run) -> Banner:
    """The banner of a run."""
    outcome = Outcome.INVALID if run.doubts else run.verdict.outcome
    unmet = [f"Predicted and not observed: {prediction(p)}." for p in run.verdict.unmet]
    return Banner(
        outcome,
        "the verdict is not known to be that of this run" if run.doubts else _finding(run),
        _promise(run.manifest.guarantees),
        [
            _writes(run),
            *_program(run),
            *_crashes(run),
            faults_proven(run),
            *_gaps(run),
            *run.verdict.limits,
        ],
        [*run.doubts, *([_AGAIN] if run.doubts else ()), *run.verdict.reasons, *unmet],
        f"{int(EXIT_CODES[outcome])} ({outcome.value}: {OUTCOMES[outcome]})",
        command(run.manifest),
    )


def command(manifest: Manifest) -> str:
    """The command line that repeats the run: as the runner recorded it, else put together from the manifest."""
    written = manifest.configuration.get("reproduce")
    if isinstance(written, str):
        return written
    generation = ["--generation", manifest.generation] if manifest.generation else []
    return shlex.join(["seawall", "run", manifest.scenario, *generation, "--seed", str(manifest.seed)])


def prediction(predicted: Prediction) -> str:
    """A prediction in words: ``lost-write in ledger, partition 0, offset 20``."""
    named = [predicted.topic, _named("partition", predicted.partition), _named("offset", predicted.offset)]
    place = ", ".join(word for word in named if word)
    return f"{predicted.kind} in {place}" if place else predicted.kind


def faults_proven(run: Run) -> str:
    """How many faults were proven, and which were not."""
    faults = run.faults
    unproven = [f.name for f in faults if not f.proven]
    if "faults" in run.left_out:
        return "Which faults were injected is not known here."
    if not faults:
        return "No fault was injected."
    if not unproven:
        return f"{count(len(faults), 'fault')} injected, each proven by a probe to have taken effect."
    proven = f"{len(faults) - len(unproven)} of {count(len(faults), 'fault')} proven to have taken effect"
    return f"Only {proven}; NOT proven: {', '.join(unproven)}."


def count(number: int, noun: str) -> str:
    """A number and its noun: ``1 fault``, ``2,000 faults``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _promise(guarantees: Mapping[str, Any]) -> str:
    """What the configuration promises of an acknowledged record."""
    least = guarantees.get("min_insync_replicas")
    isr = "" if least is None else f"; min.insync.replicas={least}"
    given_up = " or given up by an unclean election" if guarantees.get("unclean_election") else ""
    deleted = " or deleted by retention" if guarantees.get("retention") else ""
    exceptions = f", unless it is{f'{given_up}{deleted}'.removeprefix(' or')}" if given_up or deleted else ""
    return f"Promised: a record that is acknowledged with acks=all stays at its offset{exceptions}{isr}."


def _finding(run: Run) -> str:
    match run.verdict.outcome:
        case Outcome.PASS:
            return _passed(run)
        case Outcome.AS_PREDICTED:
            return _broken(run) if run.verdict.anomalies else "but the verdict lists no anomaly"
        case Outcome.VIOLATION:
            return f"{_broken(run, unpredicted=True)}, and nothing predicted it"
        case Outcome.NOT_REPRODUCED:
            return f"the predicted {_kinds(p.kind for p in run.verdict.unmet)} did not happen"
        case Outcome.INCONCLUSIVE:
            return "the evidence does not suffice to decide"
        case Outcome.INVALID:
            return "this run proves nothing"


def _passed(run: Run) -> str:
    seen = sorted({a.kind for a in run.verdict.anomalies})
    if LOST_WRITE not in seen:
        return "no acknowledged write was lost" + (f"; seen and excused: {_kinds(seen)}" if seen else "")
    lost = _were_lost(run.verdict.total(LOST_WRITE))
    return f"{lost}, and the configuration or the acks had given that away"


def _broken(run: Run, *, unpredicted: bool = False) -> str:
    """What was found; ``unpredicted``: without what is excused, or was predicted."""
    kinds = sorted({a.kind for a in run.verdict.anomalies if a.verdict is Verdict.VIOLATION or not unpredicted})
    found = {kind: run.verdict.total(kind) - (run.verdict.excused(kind) if unpredicted else 0) for kind in kinds}
    others = ", ".join(f"{number:,} {kind}" for kind, number in found.items() if kind != LOST_WRITE)
    if LOST_WRITE not in found:
        none = "no acknowledged write was lost" + (" without an excuse" if run.verdict.total(LOST_WRITE) else "")
        there = "there are" if sum(found.values()) > 1 else "there is"
        return f"{none}, but {there} {others}" if others else "an anomaly was counted"
    return _were_lost(found[LOST_WRITE]) + (f" (also {others})" if others else "")


def _were_lost(number: int) -> str:
    return f"{count(number, 'acknowledged write')} {'was' if number == 1 else 'were'} lost"


def _kinds(kinds: Iterable[str]) -> str:
    return ", ".join(sorted(set(kinds))) or "anomaly"


def _writes(run: Run) -> str:
    acknowledged = run.verdict.counts.get("sends_ok", run.acknowledged())
    return f"{count(acknowledged, 'write')} acknowledged{_committed(run)}; {_lost(run, acknowledged)}."


def _program(run: Run) -> Iterator[str]:
    """What became of a user's program, if there was one."""
    program = run.manifest.program
    if program:
        times = {name: count(program.get(name, 0), "time") for name in ("started", "killed", "exited")}
        yield (
            f"The user's program put out {count(run.verdict.counts.get('outputs', 0), 'record')}; its copies were "
            f"started {times['started']}, killed {times['killed']}, and ended by themselves {times['exited']}."
        )


def _crashes(run: Run) -> Iterator[str]:
    """How many clients were killed, if any was."""
    if crashes := run.verdict.counts.get("crashes", 0):
        yield f"{count(crashes, 'client')} killed, without leaving a group or ending a transaction."


def _committed(run: Run) -> str:
    """How many writes were seen below a high watermark, of those for which that is counted: those with acks=all."""
    counts = run.verdict.counts
    claims, below = counts.get("acked_all"), counts.get("acked_below_high_watermark")
    if claims is None or below is None:
        return ""
    if not claims:
        return ", none with acks=all"
    told = run.verdict.evidence in (EvidenceTier.METADATA, EvidenceTier.LOGS)
    if not run.watched and not told:
        return f", {claims:,} with acks=all"
    seen = "all" if below == claims else "none" if not below else f"{below:,}"
    how = "at offsets below a high watermark that the cluster told" if told else "seen below a leader's high watermark"
    return f", {claims:,} with acks=all, {seen} of them {how}"


def _lost(run: Run, acknowledged: int) -> str:
    lost = run.verdict.total(LOST_WRITE)
    if lost:
        return f"{'all' if lost == acknowledged else f'{lost:,}'} lost{_excused(lost, run.verdict.excused(LOST_WRITE))}"
    otherwise = {one.kind for one in run.verdict.anomalies if one.verdict is Verdict.VIOLATION and is_gone(one.kind)}
    if otherwise:
        return f"the loss shows as {' and '.join(sorted(otherwise))}"
    decided = run.verdict.outcome not in (Outcome.INCONCLUSIVE, Outcome.INVALID)
    return "none lost" if decided else "no loss found, which proves nothing here"


def _excused(lost: int, excused: int) -> str:
    return f", {'all' if excused == lost else f'{excused:,}'} of them excused" if excused else ""


def _gaps(run: Run) -> Iterator[str]:
    if run.manifest.state != "complete":
        yield f"The run is {run.manifest.state}, not complete."
    yield from run.left_out.values()
    unhealed = [f.name for f in run.faults if f.injected_ns is not None and not f.heal_proven]
    if unhealed:
        yield f"Healing not proven: {', '.join(unhealed)}."


def _named(noun: str, number: int | None) -> str:
    return "" if number is None else f"{noun} {number}"
