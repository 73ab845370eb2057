"""Runs the cells of a night, several at a time, within its budget, and writes their results after each one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from harness.nightly import results_file
from harness.nightly.attempt import Attempt
from harness.nightly.cells import Cell
from harness.nightly.conclusion import FAILURES, SKIPS
from harness.nightly.expected_outcome import compared
from harness.nightly.keeping import prune
from harness.nightly.night_directory import Night, NightDirectory
from harness.nightly.prose import seconds as lasting
from harness.nightly.reading import Reading, read
from harness.nightly.result import CellOutcome, CellResult, Measures, Try, signature_of

RETRIED = (CellOutcome.INCONCLUSIVE, CellOutcome.INVALID, CellOutcome.ENVIRONMENT)
"""What may be tried again. A violation never is: it would be a search for a pass."""

_POLL_S = 0.1
_WAITING = "The night has not come to it."


class Listener(Protocol):
    """Learns how a night gets on."""

    def started(self, cell: Cell, number: int) -> None:
        """A try of a cell began; ``number`` counts from 1."""

    def ended(self, result: CellResult) -> None:
        """A cell has its result."""

    def ticked(self, progress: Progress) -> None:
        """Some time went by."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a night is.

    Attributes:
        done: how many cells have a result, without those that cannot run here.
        running: each with the seconds since its try began and the seconds that it is likely to take.
        left_s: how long the rest is likely to take.
    """

    done: int
    running: Sequence[tuple[Cell, float, float]]
    left: int
    failures: int
    left_s: float


@dataclass(slots=True)
class _Under:
    """A cell under way: its try, those before, and when the first of them began."""

    attempt: Attempt
    started: datetime
    tries: list[Try] = field(default_factory=list)


class Execution:
    """The execution of a night in its directory, which must be held.

    Args:
        directory: of the night.
        night: what was decided at its start.
        listener: learns how it gets on.
        written: called with all results, in order, whenever they were written.

    Attributes:
        results: by the identity of cells; what has not run is ``not-run``.
    """

    def __init__(
        self,
        directory: NightDirectory,
        night: Night,
        listener: Listener,
        written: Callable[[Sequence[CellResult]], None] = lambda results: None,
    ) -> None:
        self._directory, self._night, self._listener, self._written = directory, night, listener, written
        self.results: dict[str, CellResult] = {}
        self._lines: dict[str, str] = {}
        self._queue: list[Cell] = []
        self._running: dict[str, _Under] = {}
        self._began = time.monotonic()
        before = {one.cell: one for one in directory.results()}
        for cell in night.cells:
            known = before.get(cell.cell)
            if known is not None and known.outcome is not CellOutcome.NOT_RUN:
                self._set(known)
            elif cell.cell in night.lacking:
                self._set(self._lacking(cell))
            else:
                self._set(self._not_run(cell, _WAITING))
                self._queue.append(cell)

    def run(self) -> None:
        """Run every cell that has no result yet.

        Raises:
            KeyboardInterrupt: a signal came; what was running was healed and stopped, and is ``not-run``.
            EnvironmentFault: the results cannot be written.
        """
        try:
            self._write()
            while self._queue or self._running:
                self._look()
                self._fill()
                self._listener.ticked(self.progress())
                time.sleep(_POLL_S)
        except BaseException:
            self._cancel()
            raise
        finally:
            self._directory.clear()

    def progress(self) -> Progress:
        """How far it is."""
        running = [(one.attempt.cell, one.attempt.seconds, self._estimated_s(one.attempt.cell)) for one in
                   self._running.values()]  # fmt: skip
        waiting_s = sum(map(self._estimated_s, self._queue))
        left_s = (waiting_s + sum(max(takes - since, 0) for _, since, takes in running)) / self._night.jobs
        ran = [one for one in self.results.values() if one.outcome not in SKIPS]
        failures = sum(one.outcome in FAILURES for one in ran)
        return Progress(len(ran), running, len(self._queue), failures, left_s)

    def in_order(self) -> list[CellResult]:
        """The results in the order of the cells."""
        return [self.results[cell.cell] for cell in self._night.cells]

    # -------------------------------------------------------------------------------------------------- processes

    def _fill(self) -> None:
        changed = False
        while self._queue and len(self._running) < self._night.jobs:
            cell = self._queue.pop(0)
            if (why := self._beyond_the_budget(cell)) is not None:
                self._set(self._not_run(cell, why))
                changed = True
                continue
            self._directory.forget(cell)
            self._start(cell, datetime.now(UTC), [])
        if changed:
            self._write()

    def _start(self, cell: Cell, started: datetime, tries: list[Try]) -> None:
        number = len(tries) + 1
        self._listener.started(cell, number)
        attempt = Attempt(cell, self._directory.runs_of(cell) / f"try-{number}", number)
        self._running[cell.cell] = _Under(attempt, started, tries)
        self._note_running()

    def _note_running(self) -> None:
        self._directory.note_running([one.attempt.mark() for one in self._running.values()])

    def _look(self) -> None:
        for name, under in list(self._running.items()):
            if (code := under.attempt.ended()) is not None:
                del self._running[name]
                self._end(under, code)
                self._note_running()

    def _end(self, under: _Under, code: int) -> None:
        attempt = under.attempt
        found = _read(attempt, code)
        run = None if found.run is None else str(found.run.relative_to(self._directory.path))
        seconds = round(attempt.seconds, 3)
        tries = [*under.tries, Try(outcome=found.outcome, exit_code=code, seconds=seconds, run=run)]
        if found.run is not None:
            prune(found.run, found.outcome, self._night.keep)
        if found.outcome in RETRIED and len(tries) <= attempt.cell.retries and self._has_time(attempt.cell):
            self._start(attempt.cell, under.started, tries)
            return
        result = self._allowed(self._result(attempt.cell, under.started, tries, found))
        self._set(result)
        self._write()
        self._listener.ended(result)

    def _cancel(self) -> None:
        """End all that runs, and write what is true then."""
        for under in self._running.values():
            under.attempt.interrupt()
        while self._running:
            for name, under in list(self._running.items()):
                if under.attempt.ended() is not None:
                    self._set(self._not_run(under.attempt.cell, "The night was interrupted while it ran."))
                    self._directory.forget(under.attempt.cell)
                    del self._running[name]
            time.sleep(_POLL_S)
        self._write()

    # ----------------------------------------------------------------------------------------------------- budget

    def _estimated_s(self, cell: Cell) -> float:
        return self._night.estimates_s.get(cell.cell, cell.expected_s)

    def _left_s(self) -> float | None:
        budget_s = self._night.budget_s
        return None if budget_s is None else max(budget_s - (time.monotonic() - self._began), 0.0)

    def _has_time(self, cell: Cell) -> bool:
        left_s = self._left_s()
        return left_s is None or self._estimated_s(cell) <= left_s

    def _beyond_the_budget(self, cell: Cell) -> str | None:
        left_s = self._left_s()
        if left_s is None or self._estimated_s(cell) <= left_s:
            return None
        return (
            f"It is expected to take {lasting(self._estimated_s(cell))}, and of the budget of "
            f"{lasting(self._night.budget_s or 0)} {lasting(left_s)} were left."
        )

    # ---------------------------------------------------------------------------------------------------- results

    def _set(self, result: CellResult) -> None:
        self.results[result.cell] = result
        self._lines[result.cell] = results_file.line(result)

    def _write(self) -> None:
        self._directory.write_results([self._lines[cell.cell] for cell in self._night.cells])
        self._written(self.in_order())

    def _bare(self, cell: Cell) -> dict[str, Any]:
        """The fields that a cell has before it runs."""
        return {
            "night": self._night.night,
            "plan": self._night.plan,
            "shard": self._night.shard,
            **{name: getattr(cell, name) for name in _TAKEN_OVER},
        }

    def _not_run(self, cell: Cell, why: str) -> CellResult:
        return CellResult(**self._bare(cell), outcome=CellOutcome.NOT_RUN, exit_code=None, reason=why)

    def _lacking(self, cell: Cell) -> CellResult:
        lack = self._night.lacking[cell.cell]
        outcome = CellOutcome.ENVIRONMENT if lack.is_failure else CellOutcome.SKIPPED
        reason = f"The plan requires it: {lack.reason}" if lack.is_failure else lack.reason
        return CellResult(**self._bare(cell), outcome=outcome, exit_code=None, reason=reason)

    def _result(self, cell: Cell, started: datetime, tries: Sequence[Try], found: Reading) -> CellResult:
        given = self._bare(cell)
        given |= {"seed": found.seed} if found.seed is not None else {}
        given |= {"reproduce": found.reproduce} if found.reproduce and found.outcome in FAILURES else {}
        given |= {"generation": found.kafka} if found.kafka and cell.generation is None else {}
        return CellResult(
            **given,
            outcome=found.outcome,
            exit_code=tries[-1].exit_code,
            signature=signature_of(found.incidents),
            incidents=found.incidents,
            story=found.story,
            reason=found.reason,
            run=tries[-1].run,
            report=_report(self._directory.path, tries[-1].run),
            started=started.isoformat(timespec="seconds"),
            seconds=round(sum(one.seconds for one in tries), 3),
            tries=tuple(tries),
            measures=found.measures or Measures(),
            versions=found.versions,
            evidence=found.evidence,
            not_asked=found.not_asked,
        )

    def _allowed(self, result: CellResult) -> CellResult:
        """A violation of kinds that the plan allows counts as predicted."""
        cell = next(one for one in self._night.cells if one.cell == result.cell)
        known = {kind: why for pattern, kinds, why in self._night.allowed if cell.matches(pattern) for kind in kinds}
        kinds = {one.kind for one in result.incidents}
        if result.outcome is not CellOutcome.VIOLATION or not kinds or not kinds <= known.keys():
            return result
        whys = "; ".join(dict.fromkeys(known[kind] for kind in sorted(kinds)))
        reason = f"The plan allows {', '.join(sorted(kinds))} here: {whys}"
        return result.model_copy(update={"outcome": CellOutcome.AS_PREDICTED, "reason": reason})


_TAKEN_OVER = (
    *("cell", "series", "kind", "target", "generation", "scenario", "seed"),
    *("settings", "duration_s", "bank", "reproduce"),
)


def _read(attempt: Attempt, code: int) -> Reading:
    """What the try came to; what no reader understands is that cell's failure, and the night goes on."""
    try:
        found = read(attempt.cell, attempt.directory, code, is_late=attempt.is_late)
        return compared(attempt.cell, found)
    except Exception as error:  # noqa: BLE001
        why = f"What it left cannot be read: {type(error).__name__}: {error}".partition("\n")[0]
        return Reading(CellOutcome.ERROR, f"{why.rstrip('.')}.")


def _report(night: Path, run: str | None) -> str | None:
    return f"{run}/report.html" if run is not None and (night / run / "report.html").exists() else None
