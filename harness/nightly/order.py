"""The order in which cells run, and their division among shards: the same in every shard, whenever it starts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import UsageError
from harness.nightly.cells import Cell
from harness.nightly.past import Past

_SHARD = re.compile(r"([1-9]\d{0,3})/([1-9]\d{0,3})")


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several parts of a night, counted from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def shard(written: str) -> Shard:
    """``"2/5"`` as a shard.

    Raises:
        UsageError: it is none.
    """
    found = _SHARD.fullmatch(written)
    if found is None or int(found[1]) > int(found[2]):
        raise UsageError(f"shard {written!r} is not NUMBER/SHARDS.", "Write 2/5 for the second of five.")
    return Shard(int(found[1]), int(found[2]))


def ordered(cells: Sequence[Cell], past: Past) -> list[Cell]:
    """The seed bank first, then series that failed when they last ran, then what has not run for longest.

    A series' second seed comes after the first of every other one, so that a short budget reaches many series.
    """

    def key(cell: Cell) -> tuple[bool, bool, int, float, str, int]:
        unseen = (past.unseen(cell.series) + 1) * cell.weight
        return not cell.bank, not past.is_failing(cell.series), cell.turn, -unseen, cell.series, cell.seed or 0

    return sorted(cells, key=key)


def estimated_s(cell: Cell, past: Past) -> float:
    """How long a cell is likely to take."""
    known = past.seconds(cell.series)
    return cell.expected_s if known is None else known


def of_shard(cells: Sequence[Cell], past: Past, part: Shard) -> list[Cell]:
    """The cells of one shard, in the given order; the shards' estimated times differ as little as is simple to have.

    The longest cell goes first, each to the shard that has least to do so far.
    """
    loads = [0.0] * part.of
    chosen: set[str] = set()
    for cell in sorted(cells, key=lambda one: (-estimated_s(one, past), one.cell)):
        least = min(range(part.of), key=lambda number: (loads[number], number))
        loads[least] += max(estimated_s(cell, past), _LEAST_S)
        if least == part.number - 1:
            chosen.add(cell.cell)
    return [cell for cell in cells if cell.cell in chosen]


_LEAST_S = 0.001
"""What a cell that was skipped before counts, so that such cells are spread, too."""
