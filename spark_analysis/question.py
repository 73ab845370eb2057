"""The definition of a question: how Spark finds the breaches of a rule, and the rows without which it finds none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module

from pyspark.sql import DataFrame

from spark_analysis.views import Uses


@dataclass(frozen=True, slots=True)
class Question:
    """A question about runs.

    Attributes:
        ask: takes the views of :func:`spark_analysis.views.views_of` that its parameters name, and answers with the
            columns of :data:`harness.findings.COLUMNS`; None: it finds nothing.
        about: the rows that it is about: it is asked only when some run has them; None: it is always asked.
    """

    ask: Callable[..., DataFrame | None]
    about: Uses | None = None


def questions_of(rules: Iterable[str]) -> list[Question]:
    """Those that each rule's module here declares as its ``QUESTIONS``; in ``checkers`` its file has the same name."""
    return [question for rule in rules for question in import_module(f"spark_analysis.{rule}").QUESTIONS]
