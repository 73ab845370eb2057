from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkers import check
from harness.checker import Outcome
from harness.findings import COLUMNS, COUNTS
from harness.history import RunDirectory
from harness.history.arrow import arrow_schema
from harness.history.schema import TABLES
from spark_analysis.answers import QUESTIONS, ask
from spark_analysis.files import local_files
from spark_analysis.tables import SPARK_TYPES, Tables, read_tables, spark_schema
from spark_analysis.views import Views, views_of
from tests.checkers.story import Story


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    story = Story()
    for _ in range(4):
        story.send()
    story.poll(5, range(4))
    return RunDirectory(story.finish().write(tmp_path_factory.mktemp("run") / "r"))


@pytest.fixture(scope="module")
def tables(directory: RunDirectory, spark: SparkSession) -> Tables:
    names = ("history", "timeline", "replica_logs")
    return read_tables(spark, {name: local_files(directory.table_files(name)) for name in names})


@pytest.fixture(scope="module")
def views(tables: Tables) -> Views:
    return views_of(tables)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.__name__)
def test_every_question_answers_with_the_declared_columns(question: object, views: Views) -> None:
    assert callable(question)
    answer = question(views)
    assert {field.name: field.dataType for field in answer.schema} == {
        name: SPARK_TYPES[type_] for name, type_ in COLUMNS.items()
    }
    assert answer.columns == list(COLUMNS)


@pytest.mark.parametrize("name", sorted(TABLES))
def test_spark_and_arrow_read_the_same_columns(name: str) -> None:
    spark_side, arrow_side = spark_schema(TABLES[name]), arrow_schema(TABLES[name])
    assert [(f.name, f.nullable) for f in spark_side] == [(f.name, f.nullable) for f in arrow_side]
    assert [f.dataType.simpleString() for f in spark_side] == [
        {"string": "string", "int32": "int", "int64": "bigint", "bool": "boolean", "list<int32>": "array<int>",
         "list<string>": "array<string>"}[c.type]
        for c in TABLES[name].columns
    ]  # fmt: skip


def test_a_table_without_files_is_empty(spark: SparkSession) -> None:
    answers, rows = ask(spark, ["nothing"], {})
    assert answers.counts == {"nothing": dict.fromkeys(COUNTS, 0)}
    assert not answers.findings
    assert not rows


def test_asking_leaves_the_session_as_it_was(spark: SparkSession, directory: RunDirectory) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    check([directory.path], session=spark)
    assert spark.conf.get("spark.sql.shuffle.partitions") == before


def test_a_run_is_judged_by_its_own_rows_alone(tmp_path: Path, spark: SparkSession) -> None:
    """Two runs with the same values, of which one loses some."""
    paths = []
    for run in ("sound", "lossy"):
        story = Story(run)
        story.send()
        story.send()
        if run == "lossy":
            story.cut(1, 1)
            story.elect(1)
        paths.append(story.finish().write(tmp_path / run))
    sound, lossy = check(paths, session=spark)
    assert not sound.anomalies
    assert {a.kind for a in lossy.anomalies} == {"lost-write", "hw-regression"}


def test_both_engines_count_the_acknowledgements_that_need_an_offset_and_name_none(
    tmp_path: Path, spark: SparkSession
) -> None:
    story = Story()
    story.send()
    for acks in (-1, 1, 0):
        story.send(acks=acks, offset=None)
    story.send(result="info")
    path = story.finish().write(tmp_path / "r")
    found = [*check([path], engine="reference"), *check([path], engine="spark", session=spark)]
    assert [one.counts["acked_nowhere"] for one in found] == [2, 2]
    assert {one.outcome for one in found} == {Outcome.PASS}
