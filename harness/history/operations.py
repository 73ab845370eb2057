"""Counts the operations of a recorded history by the footers of its files, without reading rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from harness.errors import InvalidRun
from harness.history.run_directory import RunDirectory
from harness.history.schema import HISTORY
from harness.history.table_file import require_readable

_COLUMN = "op"


def recorded_operations(path: Path) -> int:
    """How many operations the history in the run directory ``path`` has; 0 where its files do not tell."""
    last = -1
    try:
        for file in RunDirectory.open(path).table_files(HISTORY.name):
            require_readable(HISTORY, file)
            last = max(last, _last(pq.read_metadata(file)))
    except (InvalidRun, OSError, pa.ArrowException):
        return 0
    return last + 1


def _last(footer: pq.FileMetaData) -> int:
    """The greatest number of an operation."""
    place = footer.schema.names.index(_COLUMN)
    found = [footer.row_group(number).column(place).statistics for number in range(footer.num_row_groups)]
    return max((one.max for one in found if one is not None and one.has_min_max), default=-1)
