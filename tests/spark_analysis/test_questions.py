from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest
from pyspark.sql import SparkSession

import spark_analysis
from checkers import check
from checkers.registry import RULES
from harness.checker import Outcome, RunVerdict
from harness.findings import COLUMNS, COUNTS
from harness.history.arrow import arrow_schema
from harness.history.schema import TABLES
from spark_analysis.answers import ask
from spark_analysis.demands import Damage, Demands
from spark_analysis.files import RunFiles
from spark_analysis.question import Question, questions_of
from spark_analysis.tables import SPARK_TYPES, spark_schema
from tests.checkers.randomness import manifest_of, random_story
from tests.checkers.story import Story
from tests.spark_analysis.one_job import OneJob

QUESTIONS = questions_of(RULES)

EVERYTHING = (27, 200)
"""The seeds of random runs that give occasion for every question."""

BEFORE = (
    *("lost_writes", "vanished_reads", "replica_divergence", "altered_records", "inconsistent_offsets"),
    *("unfounded_reads", "duplicates", "unseen", "torn_transactions", "send_order", "poll_order", "lost_commits"),
    *("hw_regressions_within_terms", "hw_regressions_between_terms", "two_leaders", "unjustified_acks"),
    "unjustified_advances",
)
"""The questions, in their order, from when one module listed them all; a newer one takes no line here."""


def test_the_questions_are_collected_in_the_order_of_their_rules() -> None:
    names = [question.ask.__name__ for question in QUESTIONS]
    assert [name for name in names if name in BEFORE] == list(BEFORE)
    assert len(set(names)) == len(names)


def test_no_question_is_left_out() -> None:
    modules = [one.name for one in iter_modules(spark_analysis.__path__)]
    asking = [name for name in modules if hasattr(import_module(f"spark_analysis.{name}"), "QUESTIONS")]
    assert sorted(asking) == sorted(RULES)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.ask.__name__)
def test_every_question_answers_with_the_declared_columns(question: Question, one_job: OneJob) -> None:
    schema = one_job.schemas[question.ask.__name__]
    assert schema is not None
    assert [(field.name, field.dataType) for field in schema] == [
        (name, SPARK_TYPES[type_]) for name, type_ in COLUMNS.items()
    ]


@pytest.mark.parametrize("name", sorted(TABLES))
def test_spark_and_arrow_read_the_same_columns(name: str) -> None:
    spark_side, arrow_side = spark_schema(TABLES[name]), arrow_schema(TABLES[name])
    assert [(f.name, f.nullable) for f in spark_side] == [(f.name, f.nullable) for f in arrow_side]
    assert [f.dataType.simpleString() for f in spark_side] == [
        {"string": "string", "int32": "int", "int64": "bigint", "bool": "boolean", "list<int32>": "array<int>",
         "list<string>": "array<string>"}[c.type]
        for c in TABLES[name].columns
    ]  # fmt: skip


SET_BY_ASKING = ("spark.sql.shuffle.partitions", "spark.sql.codegen.factoryMode", "spark.sql.adaptive.enabled")


@pytest.mark.nightly("one more job of Spark; by day damaged runs are judged, which lack whole tables")
def test_a_table_without_files_is_empty_and_asking_leaves_the_session_as_it_was(spark: SparkSession) -> None:
    before = {name: spark.conf.get(name) for name in SET_BY_ASKING}
    answers, rows = ask(spark, RunFiles(["nothing"], {}), Demands(), Damage(), rules=RULES)
    assert {name: spark.conf.get(name) for name in SET_BY_ASKING} == before
    assert answers.counts == {"nothing": dict.fromkeys(COUNTS, 0)}
    assert not answers.findings
    assert not rows


def write_runs(root: Path) -> list[Path]:
    written = [story.finish().write(root / story.run) for story in (sound(), lossy(), unplaced())]
    drawn = [random_story(seed).write(root / f"drawn-{seed}", **manifest_of(seed)) for seed in EVERYTHING]
    return [*written, *drawn]


@pytest.fixture(scope="module")
def verdicts(one_job: OneJob) -> Mapping[str, RunVerdict]:
    """What one job says of runs, by their names."""
    return {verdict.run: verdict for verdict in one_job.spark(__name__).values()}


def sound() -> Story:
    story = Story("sound")
    story.send()
    story.send()
    return story


def lossy() -> Story:
    """Its values are those of the sound run, and it loses some."""
    story = Story("lossy")
    story.send()
    story.send()
    story.cut(1, 1)
    story.elect(1)
    return story


def unplaced() -> Story:
    """Acknowledgements name no offset, of which two should."""
    story = Story("unplaced")
    story.send()
    for acks in (-1, 1, 0):
        story.send(acks=acks, offset=None)
    story.send(result="info")
    return story


def test_a_run_is_judged_by_its_own_rows_alone(verdicts: Mapping[str, RunVerdict]) -> None:
    assert not verdicts["sound"].anomalies
    assert {a.kind for a in verdicts["lossy"].anomalies} == {"lost-write", "hw-regression"}


def test_both_engines_count_the_acknowledgements_that_need_an_offset_and_name_none(
    verdicts: Mapping[str, RunVerdict], tmp_path: Path
) -> None:
    (reference,) = check([unplaced().finish().write(tmp_path / "r")], engine="reference")
    found = [reference, verdicts["unplaced"]]
    assert [one.counts["acked_nowhere"] for one in found] == [2, 2]
    assert {one.outcome for one in found} == {Outcome.PASS}
