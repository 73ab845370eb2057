from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from spark_analysis.answers import ask
from spark_analysis.tables import read_tables
from spark_analysis.views import views_of
from spark_analysis.warmup import RUN, tiny_run


def test_warming_up_leaves_no_question_out(tmp_path: Path, spark: SparkSession) -> None:
    assert views_of(read_tables(spark, tiny_run(tmp_path))).uses == {"txn", "commit", "move", "record"}


def test_warming_up_asks_for_witnesses(tmp_path: Path, spark: SparkSession) -> None:
    answers, rows = ask(spark, [RUN], tiny_run(tmp_path))
    assert {"lost-write", "lost-commit"} <= {finding.kind for finding in answers.findings}
    assert all(rows[RUN].values())
