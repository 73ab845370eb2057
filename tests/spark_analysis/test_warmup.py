from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from checkers.registry import RULES
from harness.findings import Answers
from harness.parts import Parts
from spark_analysis import answers
from spark_analysis.demands import Damage, Demands
from spark_analysis.files import RunFiles
from spark_analysis.tables import Tables
from spark_analysis.views import Activity, Scale, views_of
from spark_analysis.warmup import RUN, tiny_run
from spark_analysis.witnesses import Rows


class Warmed(NamedTuple):
    """What the run that warms Spark up is answered."""

    answers: Answers
    rows: Mapping[str, Rows]


@pytest.fixture(scope="module")
def warmed(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Warmed:
    files = RunFiles([RUN], tiny_run(tmp_path_factory.mktemp("tiny")))
    return Warmed(*answers.ask(spark, files, Demands(), Damage(), rules=RULES))


class LookedError(Exception):
    """What the run uses is known."""


def test_warming_up_leaves_no_question_out(tmp_path: Path, spark: SparkSession) -> None:
    uses: list[frozenset[str]] = []

    def looking(tables: Tables, scale: Scale, demands: Demands, damage: Damage) -> Parts:
        uses.append(views_of(tables, scale, demands, damage).of(Activity).uses)
        raise LookedError

    with patch.object(answers, "views_of", looking), pytest.raises(LookedError):
        answers.ask(spark, RunFiles([RUN], tiny_run(tmp_path)), Demands(), Damage(), rules=RULES)
    assert uses == [{"txn", "commit", "move", "record"}]


@pytest.mark.nightly("one more job of Spark; by day what warming up uses is asked for, and nothing is answered")
def test_warming_up_asks_for_witnesses(warmed: Warmed) -> None:
    assert {"lost-write", "lost-commit"} <= {finding.kind for finding in warmed.answers.findings}
    assert all(warmed.rows[RUN].values())
