"""Shows how a night gets on: a live view in a terminal, and a line for each cell elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from harness.cli.terminal import progress
from harness.nightly.cells import Cell
from harness.nightly.conclusion import ERRORS, FAILURES
from harness.nightly.execution import Listener, Progress
from harness.nightly.prose import seconds as lasting
from harness.nightly.result import CellResult

_REDRAWN_S = 0.5
_LONG_S = 60.0
_MOST_SHOWN = 12
"""How many running cells the live view lists."""


@contextmanager
def view(cells: int) -> Iterator[Listener]:
    """The view of a night of so many cells that can run."""
    if not sys.stderr.isatty():
        yield Lines(cells)
        return
    console = Console(stderr=True)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield LiveView(cells, live)


def in_a_line(result: CellResult) -> str:
    """A result in a line."""
    tries = f", try {len(result.tries)}" if len(result.tries) > 1 else ""
    kinds = ", ".join(dict.fromkeys(one.kind for one in result.incidents))
    said = kinds or (result.reason if result.outcome in ERRORS | FAILURES else "")
    return f"{result.outcome.value}  {result.cell}  ({lasting(result.seconds)}{tries}){f': {said}' if said else ''}"


class Lines:
    """Writes a line when a cell ends, when a long one begins, and when one is tried again."""

    def __init__(self, cells: int) -> None:
        self._cells = cells
        self._say = progress()
        self._ended = 0
        self._failures = 0

    def started(self, cell: Cell, number: int) -> None:
        """See :class:`harness.nightly.execution.Listener`."""
        if number > 1:
            self._say(f"try {number} of {cell.cell}")
        elif cell.expected_s >= _LONG_S:
            self._say(f"running {cell.cell}, which takes about {lasting(cell.expected_s)}")

    def ended(self, result: CellResult) -> None:
        """See :class:`harness.nightly.execution.Listener`."""
        self._ended += 1
        self._failures += result.outcome in FAILURES
        failures = f", {self._failures} failed" if self._failures else ""
        self._say(f"{self._ended} of {self._cells}{failures}: {in_a_line(result)}")

    def ticked(self, progress: Progress) -> None:
        """Nothing: a log needs no clock."""


class LiveView:
    """Redraws what runs, how much is left, and for how long."""

    def __init__(self, cells: int, live: Live) -> None:
        self._cells = cells
        self._live = live
        self._drawn = 0.0

    def started(self, cell: Cell, number: int) -> None:
        """See :class:`harness.nightly.execution.Listener`."""

    def ended(self, result: CellResult) -> None:
        """A cell that did not pass stays on the screen."""
        if result.outcome in ERRORS | FAILURES:
            style = "bold red" if result.outcome in FAILURES else "yellow"
            self._live.console.print(f"[{style}]{escape(in_a_line(result))}[/]", highlight=False)
        self._drawn = 0.0

    def ticked(self, progress: Progress) -> None:
        """See :class:`harness.nightly.execution.Listener`."""
        if time.monotonic() - self._drawn >= _REDRAWN_S:
            self._drawn = time.monotonic()
            self._live.update(drawn(progress, self._cells), refresh=True)


def drawn(progress: Progress, cells: int) -> Group:
    """The live view."""
    running = Table.grid(padding=(0, 2))
    for cell, since_s, takes_s in progress.running[:_MOST_SHOWN]:
        running.add_row(f"{lasting(since_s)} of {lasting(takes_s)}", escape(cell.cell))
    if (hidden := len(progress.running) - _MOST_SHOWN) > 0:
        running.add_row("", f"and {hidden} more")
    failures = Text(f"{progress.failures} failed", "bold red" if progress.failures else "green")
    counts = Text(f"{progress.done} of {cells} done, {len(progress.running)} running, {progress.left} left, ")
    counts.append_text(failures).append(f", about {lasting(progress.left_s)} left")
    bar = Table.grid()
    bar.add_row(ProgressBar(total=max(cells, 1), completed=progress.done, width=40))
    return Group(bar, counts, running)
