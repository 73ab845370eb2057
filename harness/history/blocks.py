"""Consecutive rows of a table that share most of their columns, as few values as that takes.

A mapping for each of millions of rows would take most of the time that it takes to read and write them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.history.schema import Table


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of a table; a column that it does not have is null in all of them.

    Attributes:
        same: the values of the columns that have one.
        columns: of the others a value for each row.
        count: how many rows there are.
    """

    same: Mapping[str, Any]
    columns: Mapping[str, Sequence[Any]]
    count: int

    def values(self, names: Sequence[str]) -> list[Sequence[Any]]:
        """The columns of these names."""
        return [self.columns[name] if name in self.columns else [self.same.get(name)] * self.count for name in names]

    def but(self, **same: Any) -> Block:
        """The same rows with these columns."""
        return Block({**self.same, **same}, self.columns, self.count)

    def kept(self, places: Sequence[int]) -> Block:
        """Some of the rows, by their positions."""
        columns = {name: [column[place] for place in places] for name, column in self.columns.items()}
        return Block(self.same, columns, len(places))


def rows_of(table: Table, blocks: Iterable[Block]) -> Iterator[dict[str, Any]]:
    """Every row of ``blocks``, with all columns of ``table``."""
    names = [column.name for column in table.columns]
    for block in blocks:
        for values in zip(*block.values(names), strict=True):
            yield dict(zip(names, values, strict=True))
