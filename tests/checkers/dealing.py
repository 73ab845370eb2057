"""A run's tables as other tools may have written them again: in other files, and not in order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from harness.history.arrow import write_rows
from harness.history.run_directory import RunDirectory
from harness.history.schema import TABLES

_FILES = 3
_LONGEST = 7
"""How many rows that follow each other a piece has at the most."""


def deal(path: Path, seed: object) -> Path:
    """Write the history and the replicas' logs of the run directory ``path`` again; returns ``path``.

    Pieces of neighbouring rows go to up to three files at random. In most of these the pieces keep their order, with
    rows of the other files between them; in some they do not.
    """
    rng = random.Random(str(seed))
    for name in ("history", "replica_logs"):
        files: list[list[range]] = [[] for _ in range(rng.randint(1, _FILES))]
        for piece in _pieces(len(_rows(RunDirectory(path), name)), rng):
            rng.choice(files).append(piece)
        for pieces in files:
            if rng.random() < 0.3:
                rng.shuffle(pieces)
        rewrite(path, name, [[row for piece in pieces for row in piece] for pieces in files])
    return path


def rewrite(path: Path, name: str, files: Sequence[Sequence[int]]) -> None:
    """Write a table of a run directory as these ``files``: which of its rows each of them has, in which order."""
    directory = RunDirectory(path)
    rows = _rows(directory, name)
    for old in directory.table_files(name):
        old.unlink()
    for number, chosen in enumerate(files):
        write_rows(TABLES[name], path / name / f"part-{number:05d}.parquet", [rows[row] for row in chosen])


def _rows(run: RunDirectory, name: str) -> list[dict[str, Any]]:
    """The rows of a table, also those that seawall refuses to judge."""
    return [row for file in run.table_files(name) for row in pq.read_table(file).to_pylist()]


def _pieces(rows: int, rng: random.Random) -> list[range]:
    cuts = [0]
    while cuts[-1] < rows:
        cuts.append(min(rows, cuts[-1] + rng.randint(1, _LONGEST)))
    return [range(begin, end) for begin, end in pairwise(cuts)]
