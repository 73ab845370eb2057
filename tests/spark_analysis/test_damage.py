"""Files that are damaged or belong elsewhere: the run is INVALID, by both engines, and the others are judged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from checkers import check
from harness.checker import Outcome, Verdict
from harness.cli import main
from harness.errors import EnvironmentFault, ExitCode
from harness.history.arrow import write_rows
from harness.history.run_directory import RunDirectory
from harness.history.schema import TABLES
from spark_analysis import answers
from tests.checkers.story import Story
from tests.spark_analysis.submitted import said

Change = Callable[[pa.Table], pa.Table]


def quiet(path: Path) -> Path:
    story = Story(path.name)
    for _ in range(3):
        story.send()
    story.poll(5, range(3))
    story.fault()
    return story.finish().write(path)


def damage_a_page(root: Path, table: str) -> None:
    [file] = RunDirectory.open(quiet(root / f"page-{table}")).table_files(table)
    content = bytearray(file.read_bytes())
    content[60:200] = bytes(byte ^ 0x5A for byte in content[60:200])
    file.write_bytes(content)


def truncate(root: Path, table: str) -> None:
    [file] = RunDirectory.open(quiet(root / f"cut-{table}")).table_files(table)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip_a_bit(root: Path) -> None:
    [file] = RunDirectory.open(quiet(root / "flipped")).table_files("replica_logs")
    content = bytearray(file.read_bytes())
    content[len(content) // 8] ^= 1
    file.write_bytes(content)


def without(name: str) -> Change:
    return lambda rows: rows.drop_columns(name)


def of_type(name: str, type_: pa.DataType) -> Change:
    return lambda rows: rows.set_column(rows.schema.names.index(name), name, rows.column(name).cast(type_))


MISMATCHES = (
    ("history", "acks", without("acks"), ""),
    ("history", "index", of_type("index", pa.int32()), "int32, not int64"),
    ("timeline", "isr", without("isr"), ""),
    ("replica_logs", "value", of_type("value", pa.string()), "string, not int64"),
    ("faults", "proof", without("proof"), ""),
)


def mismatch(root: Path, table: str, column: str, types: str) -> str:
    """The sentence about a file whose column is lacking, or of another type."""
    [file] = RunDirectory(root / f"{table}-{column}").table_files(table)
    if types:
        return f"{file}: column {column} of the table {table} is of type {types}."
    return f"{file} lacks column {column} of the table {table}."


def change_columns(root: Path) -> None:
    for table, column, change, _ in MISMATCHES:
        [file] = RunDirectory(quiet(root / f"{table}-{column}")).table_files(table)
        pq.write_table(change(pq.read_table(file)), file)


def swap_tables(root: Path) -> None:
    """Put rows of another run in the place of a run's own, and beside them."""
    other = quiet(root / "other")
    for name in sorted(TABLES):
        [mine], [theirs] = (RunDirectory.open(path).table_files(name) for path in (quiet(root / f"rows-{name}"), other))
        shutil.copy(theirs, mine)
    shutil.copy(other / "history" / "part-00000.parquet", quiet(root / "beside") / "history" / "part-00001.parquet")


def lose_a_part(root: Path) -> None:
    for name in ("parts", "lost", "lost-uri"):
        directory = RunDirectory.open(quiet(root / name))
        in_two_parts(directory)
        if name != "parts":
            directory.table_files("replica_logs")[1].unlink()


def in_two_parts(directory: RunDirectory) -> None:
    """The replicas' logs as somebody may rewrite them: node 2's in a file of its own."""
    rows, [file] = directory.read_table("replica_logs"), directory.table_files("replica_logs")
    for number, mine in enumerate((False, True)):
        part = [row for row in rows if (row["node"] == 2) == mine]
        write_rows(TABLES["replica_logs"], file.with_name(f"part-{number:05d}.parquet"), part)


class Checked(NamedTuple):
    """Damaged runs, and sound ones, that one engine has checked together."""

    root: Path
    lost: tuple[str, ...]

    def verdict(self, run: str) -> Any:
        return said(self.root / run)


def write_runs(root: Path) -> list[Path | str]:
    """The same runs for both engines; one of them is a URI to Spark, and left out by the reference."""
    quiet(root / "undamaged")
    for table in sorted(TABLES):
        damage_a_page(root, table)
        truncate(root, table)
    for damage in (flip_a_bit, change_columns, swap_tables, lose_a_part):
        damage(root)
    paths: list[Path | str] = [place for place in sorted(root.iterdir()) if place.name != "lost-uri"]
    return [*paths, (root / "lost-uri").as_uri()]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str]:
    """What ``seawall check`` makes of them with the reference: the directory, the exit code, what it prints."""
    root, printed = tmp_path_factory.mktemp("reference"), StringIO()
    *paths, _ = map(str, write_runs(root))
    with redirect_stdout(printed):
        code = main(["check", *paths, "--engine", "reference"])
    return root, code, "".join(printed.getvalue().split())


@pytest.fixture(scope="module", params=["reference", "spark"])
def checked(request: pytest.FixtureRequest) -> Checked:
    if request.param == "reference":
        return Checked(request.getfixturevalue("command")[0], ("lost",))
    return Checked(request.getfixturevalue("one_job").root(__name__), ("lost", "lost-uri"))


def test_damaged_runs_are_exit_code_3_and_say_why(command: tuple[Path, int, str]) -> None:
    _, code, printed = command
    assert code == ExitCode.INVALID
    for table, column, _, types in MISMATCHES:
        assert mismatch(command[0], table, column, types).replace(" ", "") in printed


def test_damaged_runs_harm_no_sound_one(checked: Checked) -> None:
    assert [checked.verdict(run)["outcome"] for run in ("undamaged", "other", "parts")] == [Outcome.PASS] * 3


@pytest.mark.parametrize("table", sorted(TABLES))
def test_a_damaged_page_makes_that_run_invalid(checked: Checked, table: str) -> None:
    verdict = checked.verdict(f"page-{table}")
    assert verdict["outcome"] == Outcome.INVALID
    assert TABLES[table].path in verdict["reasons"][0]
    assert "cannot be read" in verdict["reasons"][0]


@pytest.mark.parametrize("table", sorted(TABLES))
def test_a_truncated_file_makes_that_run_invalid_and_is_named(checked: Checked, table: str) -> None:
    verdict = checked.verdict(f"cut-{table}")
    [file] = RunDirectory(checked.root / f"cut-{table}").table_files(table)
    assert verdict["outcome"] == Outcome.INVALID
    assert f"{file} is truncated" in verdict["reasons"][0]


def test_a_flipped_bit_in_a_page_is_noticed(checked: Checked) -> None:
    assert checked.verdict("flipped")["outcome"] == Outcome.INVALID


@pytest.mark.parametrize(
    ("table", "column", "types"), [(table, column, types) for table, column, _, types in MISMATCHES]
)
def test_a_table_with_other_columns_is_said_which(checked: Checked, table: str, column: str, types: str) -> None:
    assert checked.verdict(f"{table}-{column}")["reasons"][0] == mismatch(checked.root, table, column, types)


@pytest.mark.parametrize("table", sorted(TABLES))
def test_rows_of_another_run_make_a_run_invalid(checked: Checked, table: str) -> None:
    verdict = checked.verdict(f"rows-{table}")
    assert verdict["outcome"] == Outcome.INVALID
    assert f"rows of run 'other' in the directory of run 'rows-{table}'" in verdict["reasons"][0]


def test_a_foreign_part_beside_the_own_ones_is_left_out(checked: Checked) -> None:
    verdict = checked.verdict("beside")
    assert verdict["outcome"] == Outcome.INVALID
    assert not verdict["anomalies"]


def test_a_part_that_is_lost_makes_the_run_invalid_and_proves_nothing_against_a_broker(checked: Checked) -> None:
    for run in checked.lost:
        verdict = checked.verdict(run)
        assert verdict["outcome"] == Outcome.INVALID
        assert "The table replica_logs has 6 rows in 1 files, where run.json says 9 rows in 1." in verdict["reasons"]
        assert {one["verdict"] for one in verdict["anomalies"]} == {Verdict.INDETERMINATE}


def test_a_failure_of_spark_is_one_sentence(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise PySparkException("out of room\nand a stack trace")

    monkeypatch.setattr(answers, "views_of", fail)
    with pytest.raises(EnvironmentFault, match=r"^Spark failed: out of room\. Check without Spark"):
        check([quiet(tmp_path / "r")], session=spark)


def test_what_java_threw_is_said_and_not_who_called_it(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        jvm: Any = spark.sparkContext._jvm
        jvm.java.util.ArrayDeque().removeFirst()

    monkeypatch.setattr(answers, "views_of", fail)
    with pytest.raises(EnvironmentFault, match=r"^Spark failed: java\.util\.NoSuchElementException\. Check without"):
        check([quiet(tmp_path / "r")], session=spark)
