"""The directory of a night: what was decided at its start, the results so far, and the processes that run.

::

    night.json       the cells in their order, and what decided it: enough to go on after a crash
    plan.yaml        the plan as it was
    results.jsonl    the result of every cell, complete after each one; what has not run yet is ``not-run``
    running.json     the processes of the cells under way
    runs/            a directory for each cell, and below it one for each try
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from harness import documents
from harness.documents import Unfit
from harness.errors import UsageError
from harness.nightly import results_file
from harness.nightly.attempt import end_leftover
from harness.nightly.cells import Cell
from harness.nightly.keeping import Keep
from harness.nightly.result import CellResult
from harness.runner import heal_leftovers
from harness.scratch import unfinished
from harness.unwritable import writing_below
from harness.validation import validated

_LONGEST_SLUG = 80


class Lack(BaseModel):
    """Why a cell cannot run here; see :class:`harness.nightly.capabilities.Missing`."""

    model_config = ConfigDict(frozen=True)

    reason: str
    is_failure: bool


class Night(BaseModel):
    """``night.json``.

    Attributes:
        night: its identifier.
        plan: SHA-256 of the plan's text.
        cells: those of this shard, in the order in which they run.
        lacking: by the identity of cells, why they cannot run here.
        estimates_s: by the identity of cells, how long they are likely to take.
        budget_s: None: without a limit.
        history: the file with the results of past nights; None: none was named. ``bank`` is that of the seed bank.
        allowed: what of the plan's ``allow`` is about anomalies: pattern of cells, kinds, reason.
    """

    model_config = ConfigDict(frozen=True)

    version: Literal[1] = 1
    night: str
    plan: str
    plan_path: str
    shard: str | None = None
    jobs: int = 1
    keep: Keep = Keep.FAILING
    budget_s: float | None = None
    history: str | None = None
    bank: str = "seeds.yaml"
    cells: tuple[Cell, ...]
    lacking: Mapping[str, Lack] = {}
    estimates_s: Mapping[str, float] = {}
    allowed: tuple[tuple[str, tuple[str, ...], str], ...] = ()


class NightDirectory:
    """The directory ``path`` of a night."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def results_path(self) -> Path:
        """The results so far."""
        return self.path / results_file.NAME

    def runs_of(self, cell: Cell) -> Path:
        """The directory of a cell's tries: its identity as a file name, with a digest, for two may look alike."""
        slug = re.sub(r"[^A-Za-z0-9._=-]+", "-", cell.cell).strip("-.")[:_LONGEST_SLUG]
        return self.path / "runs" / f"{slug}-{hashlib.sha256(cell.cell.encode()).hexdigest()[:8]}"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from running the same night; the kernel ends this with the process.

        Raises:
            UsageError: another process runs it.
            EnvironmentFault: the directory cannot be written.
        """
        with writing_below(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise UsageError(f"{self.path}: another process runs this night.", "Wait for its end.") from None
        finally:
            os.close(lock)

    def begin(self, night: Night, plan_text: str) -> None:
        """Write down what was decided.

        Raises:
            UsageError: the directory has a night already.
        """
        if (self.path / "night.json").exists():
            raise UsageError(
                f"{self.path} holds a night already.", f"Go on with it by --resume {self.path}, or name another --out."
            )
        self._write("plan.yaml", plan_text)
        self._write("night.json", night.model_dump_json() + "\n")

    def night(self) -> Night:
        """What was decided when the night began.

        Raises:
            UsageError: this is no directory of a night.
        """
        return validated(Night, self._read("night.json", "Name the --out of a night."), str(self.path / "night.json"))

    def results(self) -> list[CellResult]:
        """The results so far.

        Raises:
            InvalidRun: they cannot be read.
        """
        return results_file.read(self.results_path) if self.results_path.exists() else []

    def write_results(self, lines: Sequence[str]) -> None:
        """Replace ``results.jsonl`` at once.

        Raises:
            EnvironmentFault: it cannot be written.
        """
        self._write(results_file.NAME, "".join(f"{line}\n" for line in lines))

    def note_running(self, marks: Sequence[Mapping[str, Any]]) -> None:
        """Record the processes under way, so that :meth:`clear` can end what a crash has left of them."""
        self._write("running.json", json.dumps(list(marks)) + "\n")

    def clear(self) -> list[str]:
        """End what a nightly process that was killed has left, and heal; returns a line for each thing that was done.

        Its unfinished files are removed, too: those of this directory, and of cells.
        """
        lines: list[str] = []
        if (self.path / "running.json").exists():
            marks = self._read("running.json", "Remove it.")
            lines += [
                f"Ended process {mark['pid']}, which was left of {mark['cell']}."
                for mark in marks
                if end_leftover(int(mark["pid"]), str(mark["start_time"]), str(mark["boot"]))
            ]
            lines += heal_leftovers()
            (self.path / "running.json").unlink()
        for path in self.path.glob(".*.partial"):
            path.unlink(missing_ok=True)
        return lines

    def forget(self, cell: Cell) -> None:
        """Remove what an unfinished execution of a cell has left."""
        shutil.rmtree(self.runs_of(cell), ignore_errors=True)

    def _read(self, name: str, remedy: str) -> Any:
        try:
            return documents.json_file(self.path / name)
        except (OSError, Unfit) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise UsageError(f"{self.path / name} cannot be read: {reason}.", remedy) from None

    def _write(self, name: str, text: str) -> None:
        path = self.path / name
        with unfinished(path) as temporary, temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
