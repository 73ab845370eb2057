"""On a busy machine a broker that has come up may be slow to answer, and is not taken for one that does not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.targets.kafka.real import RealKafka


class Slow:
    """A cluster whose node answers when it has been asked so often, as long as it goes on."""

    _PATIENCE_S = 0.2
    _POLL_S = 0.0
    _answers_soon = RealKafka._answers_soon

    def __init__(self, answers_after: float, *, goes_on: bool = True) -> None:
        self.asked = 0
        self.answers_after = answers_after
        self.goes_on = goes_on

    def _node(self, name: str) -> Any:
        return SimpleNamespace(is_whole=True, in_words=lambda: f"process {name} exists")

    def _answers(self, node: str) -> bool:
        self.asked += 1
        return self.asked > self.answers_after

    def _goes_on(self, node: str) -> bool:
        return self.goes_on


def is_running(cluster: Slow) -> bool:
    return RealKafka.is_running(cast("RealKafka[Any]", cluster), "0").holds


@pytest.mark.parametrize(("answers_after", "holds"), [(0, True), (1, True), (float("inf"), False)])
def test_it_is_asked_again_until_patience_is_at_an_end(answers_after: float, holds: bool) -> None:
    cluster = Slow(answers_after)
    cluster._PATIENCE_S = 600.0 if holds else 0.0  # an answer that comes is not to be missed
    assert is_running(cluster) is holds


def test_one_that_is_stopped_is_not_waited_for() -> None:
    cluster = Slow(float("inf"), goes_on=False)
    assert not is_running(cluster)
    assert cluster.asked == 1
