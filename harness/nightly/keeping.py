"""Bounds what is kept of runs: a minute's run on processes leaves 20 to 30 MB, most of it the brokers' own files."""

from __future__ import annotations

import shutil
from enum import StrEnum
from pathlib import Path

from harness.nightly.conclusion import PASSES
from harness.nightly.result import CellOutcome

ALWAYS = frozenset({"verdict.json", "report.html", "findings.csv", "run.json"})
UNTIL_MERGED = ALWAYS | {"history", "timeline", "replica_logs", "wire", "faults.parquet", "schedule_log.json"}
"""These, and what the engines read: ``seawall nightly merge`` has yet to ask Spark about the run."""


class Keep(StrEnum):
    """Of which runs everything is kept."""

    FAILING = "failing"
    ALL = "all"
    NONE = "none"


def prune(run: Path, outcome: CellOutcome, keep: Keep, kept: frozenset[str] = UNTIL_MERGED) -> None:
    """Remove all but ``kept`` of a run directory, unless everything is to be kept of a run with that outcome."""
    if keep is Keep.ALL or (keep is Keep.FAILING and outcome not in PASSES):
        return
    for path in run.iterdir():
        if path.name not in kept:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
