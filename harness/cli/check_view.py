"""Shows how far the check of recorded runs has come: a live line in a terminal, a line each half minute elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Group
from rich.text import Text

from harness.cli.terminal import Say, is_live, shown

SPARK = "Spark"
_LOOKED_EVERY_S = 0.5


class CheckView:
    """The check that goes on.

    Args:
        operations: how many there are to check; 0: unknown.
    """

    def __init__(self, operations: int) -> None:
        self._operations = operations
        self._began_s = time.monotonic()
        self._engine = ""
        self._stage = ""
        self._at_work = ""

    def begins(self, engine: str) -> None:
        """From now on this engine works: the reference engine, or :data:`SPARK`."""
        self._engine, self._stage, self._at_work = engine, "", ""

    def report(self, stage: str) -> None:
        """From now on this is done; any thread may call it."""
        self._stage = stage

    def follow_spark(self, over: threading.Event) -> None:
        """Ask Spark twice a second for its active stages, until ``over``; for a thread."""
        while not over.wait(_LOOKED_EVERY_S):
            self._at_work = self._stages()

    def __call__(self) -> Group:
        """The live lines."""
        words = (f"checking{_of(self._operations)}, {self._seconds} s", "bold"), (self._doing(self._at_work), "")
        return Group(*(Text(line, style, no_wrap=True, overflow="ellipsis") for line, style in words))

    def in_a_line(self) -> str:
        """The same where lines stay."""
        return f"still checking after {self._seconds} s: {self._doing(self._stages())}"

    def _stages(self) -> str:
        """What Spark computes; a warm-up beside the other engine does not count."""
        if self._engine != SPARK or "spark_analysis.session" not in sys.modules:
            return ""
        from spark_analysis.job_progress import stages

        return stages()

    @property
    def _seconds(self) -> int:
        return int(time.monotonic() - self._began_s)

    def _doing(self, at_work: str) -> str:
        return ": ".join(filter(None, (self._engine, ", ".join(filter(None, (self._stage, at_work))))))


@contextmanager
def checking(run_directories: Sequence[Path | str], engines: str, say: Say) -> Iterator[CheckView]:
    """Say that runs are checked, by which ``engines``, and show how far that is while entered."""
    operations = _operations(run_directories)
    runs = f" in {len(run_directories)} runs" if len(run_directories) > 1 else ""
    say(f"checking{_of(operations)}{runs} with {engines}")
    view, over = CheckView(operations), threading.Event()
    if is_live():  # nothing waits for this thread: Spark may answer late, or never
        threading.Thread(target=view.follow_spark, args=(over,), name="spark-progress", daemon=True).start()
    try:
        with shown(view, view.in_a_line):
            yield view
    finally:
        over.set()


def _operations(run_directories: Sequence[Path | str]) -> int:
    from harness.history.operations import recorded_operations

    return sum(recorded_operations(path) for path in run_directories if isinstance(path, Path))


def _of(operations: int) -> str:
    return f" {operations:,} operations" if operations else ""
