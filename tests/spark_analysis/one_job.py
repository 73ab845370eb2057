"""One job of Spark for the runs of many test modules: planning a job takes it longer than judging hundreds of runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from checkers import check
from checkers.registry import RULES
from checkers.verdicts.sources import Opened
from harness.checker import RunVerdict
from spark_analysis import answers, sizing
from spark_analysis.question import Question, questions_of
from tests.spark_analysis.differential import Verdicts, opened_once

Place = Path | str


class OneJob:
    """What Spark says of the runs of each module.

    Args:
        modules: each has a function ``write_runs(root)``, which writes runs below ``root`` and returns their paths or
            URIs. The names of all runs are distinct.

    Attributes:
        schemas: of the answer of each question that was asked, by the question's name; None: it answered nothing.
    """

    def __init__(self, modules: Iterable[ModuleType], directories: pytest.TempPathFactory, spark: SparkSession) -> None:
        self.schemas: dict[str, StructType | None] = {}
        self._opened: dict[str, Opened] = {}
        self._roots = {module.__name__: directories.mktemp(module.__name__.split(".")[-1]) for module in modules}
        self._places: dict[str, Sequence[Place]] = {
            module.__name__: module.write_runs(self._roots[module.__name__]) for module in modules
        }
        places = [place for several in self._places.values() for place in several]
        asked = list(map(self._noted, questions_of(RULES)))
        with (
            opened_once(self._opened),
            patch.object(sizing, "SMALL", sizing.LARGE * len(places)),
            patch.object(answers, "questions_of", return_value=asked),
        ):
            self._verdicts = dict(zip(places, check(places, engine="spark", session=spark), strict=True))

    def _noted(self, question: Question) -> Question:
        """The question; the columns of its answer are noted."""

        @wraps(question.ask)
        def ask(**views: object) -> DataFrame | None:
            rows = question.ask(**views)
            self.schemas[question.ask.__name__] = None if rows is None else rows.schema
            return rows

        return replace(question, ask=ask)

    def root(self, module: str) -> Path:
        """Where the runs of this module are."""
        return self._roots[module]

    def places(self, module: str) -> Sequence[Place]:
        """The runs of this module, as it returned them."""
        return self._places[module]

    def spark(self, module: str) -> dict[Place, RunVerdict]:
        """What Spark says of each run of this module."""
        return {place: self._verdicts[place] for place in self._places[module]}

    def both(self, module: str) -> Verdicts:
        """The same, beside what the reference says: all runs are paths."""
        with opened_once(self._opened):
            told = check(self._places[module], engine="reference")
        return list(zip(self.spark(module).values(), told, strict=True))
