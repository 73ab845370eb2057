"""The files of tables, wherever they are; nothing here needs Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_LOCAL = "file://"
_PATTERN = re.compile(r"[{}\[\]*?\\]")


class TableFile(NamedTuple):
    """A Parquet file anywhere: its URI as Hadoop spells it, without percent-encoding, and how many bytes it has."""

    uri: str
    size: int

    @property
    def literally(self) -> str:
        """What Spark reads this file by, and no other: it takes what it is given for a pattern."""
        return _PATTERN.sub(r"\\\g<0>", self.uri)


def local_uri(path: Path) -> str:
    """A file or directory of this machine, as Hadoop spells it."""
    return f"{_LOCAL}{path.resolve()}"


def local_path(file: TableFile) -> Path:
    """Where a file of this machine is."""
    return Path(file.uri.removeprefix(_LOCAL))


def local_files(paths: Iterable[Path]) -> list[TableFile]:
    """Files of this machine."""
    return [TableFile(local_uri(path), path.stat().st_size) for path in paths]
