"""A recorder of the client history in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.clock import Clock
from harness.history.recorder import Recorder
from harness.history.rows import NAMES


class KeptRecorder(Recorder):
    """A recorder that keeps its rows in memory, for runs that are checked at once.

    Attributes:
        rows: the rows of ``HISTORY`` up to the last :meth:`flush` or :meth:`close`.
    """

    def __init__(self, run: str, clock: Clock) -> None:
        super().__init__(run, Path(), clock)
        self.rows: list[dict[str, Any]] = []

    def _write(self, columns: list[list[Any]]) -> None:
        self.rows += [dict(zip(NAMES, values, strict=True)) for values in zip(*columns, strict=True)]
