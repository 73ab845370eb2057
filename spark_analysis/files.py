"""Paths and URIs of tables' files; nothing here needs Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

SMALL = 2 * 1024 * 1024
"""The size of Parquet, in bytes, up to which a check is small: some thirty thousand operations."""

_LOCAL = "file://"
_PATTERN = re.compile(r"[{}\[\]*?\\]")


class TableFile(NamedTuple):
    """A Parquet file anywhere: its URI as Hadoop spells it, without percent-encoding, and its size in bytes."""

    uri: str
    size: int

    @property
    def literally(self) -> str:
        """A pattern by which Spark reads this file and no other."""
        return _PATTERN.sub(r"\\\g<0>", self.uri)


class RunFiles(NamedTuple):
    """Where some runs are.

    Attributes:
        runs: their ids.
        tables: by table name, the Parquet files of all of them.
        wire: the Parquet files of wire taps.
        beside: the URI of a directory that every machine of a cluster sees, where results may be kept meanwhile; None:
            there is none.
    """

    runs: Sequence[str]
    tables: Mapping[str, Sequence[TableFile]]
    wire: Sequence[TableFile] = ()
    beside: str | None = None


def local_uri(path: Path) -> str:
    """A file or directory of this machine, as Hadoop spells it."""
    return f"{_LOCAL}{path.resolve()}"


def is_local(file: TableFile) -> bool:
    """Whether a file is one of this machine."""
    return file.uri.startswith(_LOCAL)


def local_path(file: TableFile) -> Path:
    """Where a file of this machine is."""
    return Path(file.uri.removeprefix(_LOCAL))


def local_files(paths: Iterable[Path]) -> list[TableFile]:
    """Files of this machine."""
    return [TableFile(local_uri(path), path.stat().st_size) for path in paths]
