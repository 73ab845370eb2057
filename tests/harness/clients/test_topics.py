from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from harness.client_properties import Access
from harness.clients import topics
from harness.clients.topics import create_topic
from harness.errors import EnvironmentFault, UsageError
from harness.target import TopicSpec
from harness.targets.builtin import BuiltinTarget


@pytest.mark.parametrize("partitions", [0, 10_001, 999_999])
def test_a_topic_with_more_partitions_than_can_be_is_refused(partitions: int) -> None:
    with pytest.raises(UsageError, match=f"topic 'ledger': {partitions} partitions are not 1 to 10000"):
        TopicSpec("ledger", partitions, 1)


@pytest.mark.parametrize("name", ["", ".", "..", "led ger", "ledger\n", "x" * 250])
def test_a_topic_whose_name_kafka_does_not_allow_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is not a legal name"):
        TopicSpec(name, 1, 1)


def test_the_longest_name_is_allowed() -> None:
    assert TopicSpec("x" * 249, 10_000, 1).partitions == 10_000


def test_what_the_client_itself_refuses_is_one_sentence() -> None:
    with pytest.raises(EnvironmentFault, match=r"^topic 'ledger' was not created: the client refuses it: .*[^.]\.$"):
        create_topic(Access("127.0.0.1:1"), TopicSpec("ledger", 1, 999_999), 1.0)


def test_a_refusal_of_the_cluster_ends_with_one_period(cluster: BuiltinTarget) -> None:
    with pytest.raises(EnvironmentFault) as refused:
        create_topic(Access(cluster.bootstrap()), TopicSpec("ledger", 1, 2), 5.0)
    assert re.search(r"[^.]\.$", refused.value.sentence)


Cluster = Callable[..., list[int]]


@pytest.fixture
def cluster_that_says(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """One that answers a request after the other with these codes, 0 for success; the list has those not said yet."""

    def clusters(*codes: int) -> list[int]:
        left = list(codes)

        class Admin:
            def __init__(self, *_: object, **__: object) -> None: ...

            def create_topics(self, new: list[Any], **_: object) -> dict[str, Future[None]]:
                answer: Future[None] = Future()
                code = left.pop(0)
                if code:
                    answer.set_exception(KafkaException(KafkaError(code)))
                else:
                    answer.set_result(None)
                return {new[0].topic: answer}

        monkeypatch.setattr(topics, "AdminClient", Admin)
        return left

    return clusters


LEDGER = TopicSpec("ledger", 1, 3)


@pytest.mark.parametrize(
    "codes",
    [
        (KafkaError._TIMED_OUT, 0),
        (KafkaError.NOT_CONTROLLER, KafkaError.NOT_CONTROLLER, 0),
        (KafkaError._TIMED_OUT, KafkaError.TOPIC_ALREADY_EXISTS),
    ],
)
def test_what_nobody_answered_is_asked_again_and_may_have_been_done(
    cluster_that_says: Cluster, codes: tuple[int, ...]
) -> None:
    left = cluster_that_says(*codes)
    create_topic(Access("nowhere"), LEDGER, 30.0)
    assert not left


def test_a_topic_that_was_there_before_is_a_refusal(cluster_that_says: Cluster) -> None:
    cluster_that_says(KafkaError.TOPIC_ALREADY_EXISTS)
    with pytest.raises(EnvironmentFault, match="topic 'ledger' was not created: "):
        create_topic(Access("nowhere"), LEDGER, 30.0)


def test_who_never_answers_is_asked_until_time_is_up(cluster_that_says: Cluster) -> None:
    left = cluster_that_says(*[KafkaError._TIMED_OUT] * 1000)
    with pytest.raises(EnvironmentFault, match=r"^topic 'ledger' was not created: .*[^.]\.$"):
        create_topic(Access("nowhere"), LEDGER, 0.3)
    assert 0 < len(left) < 1000 - 1
