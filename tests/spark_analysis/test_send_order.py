"""Of a large run in which nothing was overtaken no record is looked at for that."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from checkers import check
from checkers.registry import RULES
from harness.checker import Outcome
from spark_analysis import answers, send_order
from spark_analysis.question import Question, questions_of
from tests.checkers.clients import poll
from tests.checkers.send_cases import overtake
from tests.checkers.story import Story
from tests.spark_analysis.differential import disagreements, tiny_blocks

MORE_JOBS = pytest.mark.nightly("one more job of Spark; by day what is overtaken is found in small runs")
THIS = send_order.QUESTIONS
"""Asked alone: every other question is planned for seconds, and none is about this."""


class LookedAtCloselyError(Exception):
    """Somebody looked at every record."""


def followed_closely(story: Story) -> Story:
    """A consumer is given every record as soon as it is there, also those of which nobody knows how they ended."""
    for at in range(12):
        story.send(process=at % 3, result="info" if at % 5 == 2 else "ok")
        poll(story, 20, [at])
    return story.finish()


@MORE_JOBS
@pytest.mark.parametrize(
    ("chunk", "questions"),
    [
        (3, questions_of(RULES)),
        (8, THIS),
    ],
)
def test_a_consumer_that_follows_closely_makes_nobody_look_closely(
    chunk: int, questions: Sequence[Question], tmp_path: Path, spark: SparkSession
) -> None:
    run = followed_closely(Story()).write(tmp_path / "r")
    with (
        tiny_blocks(chunk),
        patch.object(answers, "questions_of", return_value=questions),
        patch.object(send_order, "_late", side_effect=LookedAtCloselyError),
    ):
        (verdict,) = check([run], engine="spark", session=spark)
    (told,) = check([run], engine="reference")
    assert verdict.outcome is Outcome.PASS
    assert not list(disagreements([(verdict, told)]))


@MORE_JOBS
def test_what_overtakes_makes_somebody_look_closely(tmp_path: Path, spark: SparkSession) -> None:
    story = Story()
    overtake(story)
    run = story.finish().write(tmp_path / "r")
    with (
        tiny_blocks(),
        patch.object(answers, "questions_of", return_value=THIS),
        patch.object(send_order, "_late", side_effect=LookedAtCloselyError),
        pytest.raises(LookedAtCloselyError),
    ):
        check([run], engine="spark", session=spark)
