"""The files of tables, wherever they are; nothing here needs Spark."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class TableFile(NamedTuple):
    """A Parquet file anywhere: its URI, and how many bytes it has."""

    uri: str
    size: int


def local_files(paths: Iterable[Path]) -> list[TableFile]:
    """Files of this machine."""
    return [TableFile(path.resolve().as_uri(), path.stat().st_size) for path in paths]
