"""A topic is unknown when answers that name brokers lack it for long enough, and not before."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.model import TopicPartition
from harness.runner.unknown_topics import ASKED_FOR_S, UnknownTopic, unknown_topics
from harness.target import ClusterView
from harness.testing.scripted_target import ScriptedTarget, cluster_view, partition_view
from tests.harness.runner.test_run_lifecycle import Hurried

WHOLE = partition_view(0, [0, 1, 2])
BOTH = cluster_view(3, {TopicPartition("a", 0): WHOLE, TopicPartition("b", 0): WHOLE})
ONE = cluster_view(3, {TopicPartition("a", 0): WHOLE})
SILENT = cluster_view(0, {})


class Answering(ScriptedTarget):
    """Answers as a function of how many seconds have passed says."""

    def __init__(self, clock: Hurried, answer: Callable[[float], ClusterView]) -> None:
        super().__init__(shown=BOTH)
        self._clock = clock
        self._answer = answer

    def view(self) -> ClusterView:
        return self._answer(self._clock.monotonic_ns() / 1e9)


@pytest.mark.parametrize(
    ("answer", "unknown"),
    [
        (lambda _: BOTH, []),
        (lambda _: ONE, ["b"]),
        (lambda at_s: ONE if at_s < 9 else BOTH, []),
        (lambda at_s: ONE if at_s > 5 else BOTH, []),
        (lambda _: SILENT, []),
        (lambda at_s: ONE if at_s > 8 else SILENT, []),
        (lambda at_s: ONE if at_s > 2 else SILENT, ["b"]),
    ],
    ids=["known", "gone", "late", "was-there", "no-answer", "answers-too-late", "answers-after-a-while"],
)
def test_a_topic_is_unknown_that_answers_lack_for_ten_seconds(
    answer: Callable[[float], ClusterView], unknown: list[str]
) -> None:
    clock = Hurried()
    found = unknown_topics(Answering(clock, answer), {"a", "b"}, clock)
    assert [one.topic for one in found] == unknown
    assert all(one.asked_s >= ASKED_FOR_S for one in found)


def test_what_is_known_takes_one_look() -> None:
    clock = Hurried()
    assert not unknown_topics(Answering(clock, lambda _: BOTH), {"a", "b"}, clock)
    assert clock.monotonic_ns() == 1_000_000_000


def test_how_it_was_asked_is_part_of_the_answer() -> None:
    clock = Hurried()
    assert unknown_topics(Answering(clock, lambda _: ONE), {"b"}, clock) == [UnknownTopic("b", 10.0, 10)]
