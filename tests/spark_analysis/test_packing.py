"""Small files are read as one by Spark, with the rows of all; what cannot be packed stays as it is."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.history.run_directory import RunDirectory
from spark_analysis import packing
from spark_analysis.files import TableFile, local_files, local_path
from spark_analysis.packing import packed
from tests.checkers.story import Story

HERE: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]"))
CLUSTER: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="spark://127.0.0.1:7077"))


def files(root: Path, runs: int = 9) -> dict[str, list[TableFile]]:
    found: dict[str, list[TableFile]] = {"history": [], "timeline": [], "replica_logs": []}
    for number in range(runs):
        story = Story(f"r{number}")
        story.send()
        directory = RunDirectory(story.finish().write(root / story.run))
        for name, several in found.items():
            several.extend(local_files(directory.table_files(name)))
    return found


def rows(several: Iterable[TableFile]) -> list[dict[str, Any]]:
    return [row for file in several for row in pq.read_table(local_path(file)).to_pylist()]


def test_files_of_many_runs_are_one_with_the_rows_of_all(tmp_path: Path) -> None:
    several = files(tmp_path)
    with packed(HERE, several) as read:
        for name, [one] in read.items():
            assert rows([one]) == rows(several[name])
            assert one.size == local_path(one).stat().st_size
    assert not any(local_path(one).exists() for [one] in read.values())


def test_few_files_and_those_of_a_cluster_are_read_where_they_are(tmp_path: Path) -> None:
    few, many = files(tmp_path / "few", 8), files(tmp_path / "many")
    with packed(HERE, few) as read:
        assert read == few
    with packed(CLUSTER, many) as read:
        assert read == many


def test_files_that_are_not_of_this_machine_are_read_where_they_are() -> None:
    far = {"history": [TableFile(f"s3a://runs/r{number}/history/part-00000.parquet", 6000) for number in range(9)]}
    with packed(HERE, far) as read:
        assert read == far


def test_a_file_that_cannot_be_read_leaves_its_table_to_spark(tmp_path: Path) -> None:
    several = files(tmp_path)
    local_path(several["history"][4]).write_bytes(b"PAR1")
    with packed(HERE, several) as read:
        assert read["history"] == several["history"]
        assert len(read["timeline"]) == 1


@pytest.mark.parametrize("spoil", ["a column less", "a column of another type"])
def test_a_file_of_another_form_leaves_its_table_to_spark(tmp_path: Path, spoil: str) -> None:
    several = files(tmp_path)
    path = local_path(several["history"][4])
    table = pq.read_table(path)
    if spoil == "a column less":
        table = table.drop_columns(["offset"])
    else:
        table = table.set_column(table.schema.get_field_index("op"), "op", table["op"].cast(pa.string()))
    pq.write_table(table, path)
    with packed(HERE, several) as read:
        assert read["history"] == several["history"]
        assert len(read["timeline"]) == 1


def test_without_room_for_a_temporary_file_every_table_is_left_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    several = files(tmp_path)
    monkeypatch.setattr(packing, "TemporaryDirectory", full)
    with packed(HERE, several) as read:
        assert read == several


def test_as_many_files_become_one_as_fit_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    several = files(tmp_path)
    monkeypatch.setattr(packing, "_PACK", 3 * max(one.size for one in several["history"]))
    with packed(HERE, several) as read:
        assert len(read["history"]) == 3
        assert rows(read["history"]) == rows(several["history"])


def test_a_file_that_is_large_enough_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    several = files(tmp_path)
    monkeypatch.setattr(packing, "_PACK", 1)
    with packed(HERE, several) as read:
        assert read == several
