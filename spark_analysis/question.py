"""The definition of a question: how Spark finds the breaches of a rule, and the rows without which it finds none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Literal

from pyspark.sql import DataFrame

from spark_analysis.views import Views


@dataclass(frozen=True, slots=True)
class Question:
    """A question about runs.

    Attributes:
        ask: takes the views, and answers with the columns of :data:`harness.findings.COLUMNS`; None: it finds nothing.
        about: the rows that it is about, a word of :attr:`Views.uses`: it is asked only when some run has them; None:
            it is always asked.
    """

    ask: Callable[[Views], DataFrame | None]
    about: Literal["record", "txn", "commit", "move", "program", "scan", "share", "reset", "lookup"] | None = None


def questions_of(rules: Iterable[str]) -> list[Question]:
    """Those that each rule's module here declares as its ``QUESTIONS``; in ``checkers`` its file has the same name."""
    return [question for rule in rules for question in import_module(f"spark_analysis.{rule}").QUESTIONS]
