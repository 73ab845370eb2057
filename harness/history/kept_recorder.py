"""A recorder of the client history in memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.clock import Clock
from harness.history.blocks import Block, rows_of
from harness.history.recorder import Recorder
from harness.history.schema import HISTORY


class KeptRecorder(Recorder):
    """A recorder that keeps its rows in memory, for runs that are checked at once.

    Attributes:
        rows: the rows of ``HISTORY`` up to the last :meth:`flush` or :meth:`close`.
    """

    def __init__(self, run: str, clock: Clock) -> None:
        super().__init__(run, Path(), clock)
        self.rows: list[dict[str, Any]] = []

    def _write(self, blocks: Sequence[Block]) -> None:
        self.rows += rows_of(HISTORY, blocks)
