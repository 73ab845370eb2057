from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from checkers.promises import RULES
from harness.findings import Answers
from spark_analysis import answers
from spark_analysis.views import Views, views_of
from spark_analysis.warmup import RUN, tiny_run
from spark_analysis.witnesses import Rows


class Warmed(NamedTuple):
    """What the run that warms Spark up is asked, and what is answered."""

    uses: frozenset[str]
    answers: Answers
    rows: Mapping[str, Rows]


@pytest.fixture(scope="module")
def warmed(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Warmed:
    uses: list[frozenset[str]] = []

    def looking(*tables: object, **known: object) -> Views:
        views = views_of(*tables, **known)  # type: ignore[arg-type]
        uses.append(views.uses)
        return views

    with patch.object(answers, "views_of", looking):
        told = answers.ask(spark, [RUN], tiny_run(tmp_path_factory.mktemp("tiny")), rules=RULES)
    return Warmed(uses[0], *told)


def test_warming_up_leaves_no_question_out(warmed: Warmed) -> None:
    assert warmed.uses == {"txn", "commit", "move", "record"}


def test_warming_up_asks_for_witnesses(warmed: Warmed) -> None:
    assert {"lost-write", "lost-commit"} <= {finding.kind for finding in warmed.answers.findings}
    assert all(warmed.rows[RUN].values())
