"""Files that are damaged or belong elsewhere: the run is INVALID, by both engines, and the others are judged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from checkers import Engine, check
from harness.checker import Outcome, Verdict
from harness.cli import main
from harness.errors import EnvironmentFault, ExitCode
from harness.history import RunDirectory
from harness.history.arrow import write_rows
from harness.history.schema import TABLES
from spark_analysis import answers
from tests.checkers.story import Story
from tests.spark_analysis.submitted import said

ENGINES: tuple[Engine, ...] = ("reference", "spark")

Change = Callable[[pa.Table], pa.Table]


def quiet(path: Path) -> Path:
    story = Story(path.name)
    for _ in range(3):
        story.send()
    story.poll(5, range(3))
    story.fault()
    return story.finish().write(path)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_damaged_page_makes_that_run_invalid_and_no_other(
    tmp_path: Path, spark: SparkSession, engine: Engine
) -> None:
    paths = [quiet(tmp_path / name) for name in ("sound", *sorted(TABLES))]
    for name, path in zip(sorted(TABLES), paths[1:], strict=True):
        [file] = RunDirectory.open(path).table_files(name)
        content = bytearray(file.read_bytes())
        content[60:200] = bytes(byte ^ 0x5A for byte in content[60:200])
        file.write_bytes(content)
    sound, *damaged = check(paths, engine=engine, session=spark)
    assert sound.outcome is Outcome.PASS
    for name, verdict in zip(sorted(TABLES), damaged, strict=True):
        assert verdict.outcome is Outcome.INVALID
        assert TABLES[name].path in verdict.reasons[0]
        assert "cannot be read" in verdict.reasons[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_flipped_bit_in_a_page_is_noticed(tmp_path: Path, spark: SparkSession, engine: Engine) -> None:
    path = quiet(tmp_path / "r")
    [file] = RunDirectory.open(path).table_files("replica_logs")
    content = bytearray(file.read_bytes())
    content[len(content) // 8] ^= 1
    file.write_bytes(content)
    [verdict] = check([path], engine=engine, session=spark)
    assert verdict.outcome is Outcome.INVALID


@pytest.mark.parametrize("engine", ENGINES)
def test_a_truncated_file_makes_that_run_invalid_and_is_named(
    tmp_path: Path, spark: SparkSession, engine: Engine
) -> None:
    paths = [quiet(tmp_path / name) for name in ("sound", *sorted(TABLES))]
    files = [RunDirectory.open(path).table_files(name)[0] for name, path in zip(sorted(TABLES), paths[1:], strict=True)]
    for file in files:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    sound, *broken = check(paths, engine=engine, session=spark)
    assert sound.outcome is Outcome.PASS
    for file, verdict in zip(files, broken, strict=True):
        assert verdict.outcome is Outcome.INVALID
        assert f"{file} is truncated" in verdict.reasons[0]


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


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.usefixtures("spark")
def test_a_table_with_other_columns_is_exit_code_3_and_says_which(
    tmp_path: Path, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    places = [quiet(tmp_path / f"{table}-{column}") for table, column, *_ in MISMATCHES]
    for (table, _, change, _), place in zip(MISMATCHES, places, strict=True):
        [file] = RunDirectory(place).table_files(table)
        pq.write_table(change(pq.read_table(file)), file)
    assert main(["check", *map(str, places), "--engine", engine]) == ExitCode.INVALID
    printed = "".join(capsys.readouterr().out.split())
    for (table, column, _, types), place in zip(MISMATCHES, places, strict=True):
        file = RunDirectory(place).table_files(table)[0]
        sentence = f"{file} lacks column {column} of the table {table}."
        if types:
            sentence = f"{file}: column {column} of the table {table} is of type {types}."
        assert said(place)["reasons"][0] == sentence
        assert sentence.replace(" ", "") in printed


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_of_another_run_make_a_run_invalid(tmp_path: Path, spark: SparkSession, engine: Engine) -> None:
    other = quiet(tmp_path / "other")
    owns = [quiet(tmp_path / name) for name in sorted(TABLES)]
    for name, own in zip(sorted(TABLES), owns, strict=True):
        [mine], [theirs] = (RunDirectory.open(path).table_files(name) for path in (own, other))
        shutil.copy(theirs, mine)
    verdicts = check([*owns, other], engine=engine, session=spark)
    assert [verdict.outcome for verdict in verdicts] == [Outcome.INVALID] * len(owns) + [Outcome.PASS]
    for name, verdict in zip(sorted(TABLES), verdicts, strict=False):
        assert f"rows of run 'other' in the directory of run '{name}'" in verdict.reasons[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_foreign_part_beside_the_own_ones_is_left_out(tmp_path: Path, spark: SparkSession, engine: Engine) -> None:
    own, other = quiet(tmp_path / "own"), quiet(tmp_path / "other")
    shutil.copy(other / "history" / "part-00000.parquet", own / "history" / "part-00001.parquet")
    verdicts = check([own, other], engine=engine, session=spark)
    assert [verdict.outcome for verdict in verdicts] == [Outcome.INVALID, Outcome.PASS]
    assert not verdicts[0].anomalies


@pytest.mark.parametrize("engine", ENGINES)
def test_a_part_that_is_lost_makes_the_run_invalid_and_convicts_nobody(
    tmp_path: Path, spark: SparkSession, engine: Engine
) -> None:
    path = quiet(tmp_path / "r")
    directory = RunDirectory.open(path)
    in_two_parts(directory)
    assert check([path], engine=engine, session=spark)[0].outcome is Outcome.PASS
    directory.table_files("replica_logs")[1].unlink()
    for place in (path, path.resolve().as_uri()) if engine == "spark" else (path,):
        [verdict] = check([place], engine=engine, session=spark)
        assert verdict.outcome is Outcome.INVALID
        assert "The table replica_logs has 6 rows in 1 files, where run.json says 9 rows in 1." in verdict.reasons
        assert {one.verdict for one in verdict.anomalies} == {Verdict.INDETERMINATE}


def in_two_parts(directory: RunDirectory) -> None:
    """The replicas' logs as somebody may rewrite them: node 2's in a file of its own."""
    rows, [file] = directory.read_table("replica_logs"), directory.table_files("replica_logs")
    for number, mine in enumerate((False, True)):
        part = [row for row in rows if (row["node"] == 2) == mine]
        write_rows(TABLES["replica_logs"], file.with_name(f"part-{number:05d}.parquet"), part)


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
