"""Files of a table that would fill the memory, or cannot be what they say, are refused before that is done."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.errors import ExitCode, InvalidRun
from harness.history import table_file
from harness.history.arrow import write_rows
from harness.history.schema import FAULTS
from harness.history.table_file import TooManyRows, read_columns, read_files, require_readable, require_rows_of

ROW = {"run": "r", "fault": "f", "kind": "kill", "nodes": ["0"], "parameters": "{}", "aimed_ns": 1, "aim": "{}"}


def written(path: Path, number: int = 3, **changed: Any) -> Path:
    write_rows(FAULTS, path / "faults.parquet", [ROW | changed] * number)
    return path / "faults.parquet"


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = written(tmp_path, nodes=["0", "1"], proof="it is gone")
    assert require_rows_of("r", FAULTS, file) == 3
    for row in read_files(FAULTS, [file]):
        assert (row["nodes"], row["proof"], row["healed_ns"]) == (["0", "1"], "it is gone", None)


def test_more_rows_than_are_held_in_memory_are_refused_by_their_number(tmp_path: Path) -> None:
    file = written(tmp_path, 100_001)
    assert file.stat().st_size < 100_000
    assert require_rows_of("r", FAULTS, file) == 100_001
    with pytest.raises(TooManyRows, match="the table faults has 100,001 rows, and at most 100,000 are") as refused:
        read_columns(FAULTS, file)
    assert refused.value.exit_code is ExitCode.USAGE


def test_rows_of_several_files_count_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_file, "MOST_ROWS", {"faults": 5})
    with pytest.raises(TooManyRows, match="has 6 rows, and at most 5"):
        list(read_files(FAULTS, [written(tmp_path)] * 2))


def test_rows_that_take_too_much_memory_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_file, "MOST_BYTES", 10_000)
    with pytest.raises(TooManyRows, match="its rows take more than the 10,000 bytes that are read into memory"):
        read_columns(FAULTS, written(tmp_path, 1_000))


@pytest.mark.parametrize("changed", [{"proof": "x" * (1 << 20 | 1)}, {"nodes": ["x" * (1 << 20 | 1)]}])
def test_a_text_that_is_too_long_is_refused(changed: dict[str, Any], tmp_path: Path) -> None:
    file = written(tmp_path, **changed)
    for read in (lambda: require_rows_of("r", FAULTS, file), lambda: read_columns(FAULTS, file)):
        with pytest.raises(InvalidRun, match=r"has a text of 1,048,577 bytes, and the longest may have 1,048,576\."):
            read()


def test_texts_that_a_file_repeats_at_no_cost_are_refused_before_they_are_spelled_out(tmp_path: Path) -> None:
    file = written(tmp_path, 300, proof="x" * 1_000_000)
    assert file.stat().st_size < 10_000_000
    before = pa.total_allocated_bytes()
    with pytest.raises(
        InvalidRun, match=r"300 of its rows have 300,003,300 bytes of text, and no more than 268,435,456"
    ):
        require_rows_of("r", FAULTS, file)
    assert pa.total_allocated_bytes() - before < 100_000_000


def test_a_list_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRun, match="which is more than 1,024 for each"):
        require_readable(FAULTS, written(tmp_path, nodes=["0"] * 2_000))


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path)
    table = pq.read_table(file)
    pq.write_table(table.append_column(table.schema.field("kind"), table.column("kind")), file)
    with pytest.raises(InvalidRun, match="has column kind of the table faults more than once"):
        require_readable(FAULTS, file)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_regular_file_is_not_opened(make: Any, tmp_path: Path) -> None:
    make(tmp_path / "faults.parquet")
    with pytest.raises(
        InvalidRun, match=r"faults\.parquet cannot be read: it is a .*, and only regular files are read"
    ):
        require_readable(FAULTS, tmp_path / "faults.parquet")
