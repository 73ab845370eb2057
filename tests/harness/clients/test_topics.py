from __future__ import annotations

import re

import pytest

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
        create_topic("127.0.0.1:1", TopicSpec("ledger", 1, 999_999), 1.0)


def test_a_refusal_of_the_cluster_ends_with_one_period(cluster: BuiltinTarget) -> None:
    with pytest.raises(EnvironmentFault) as refused:
        create_topic(cluster.bootstrap(), TopicSpec("ledger", 1, 2), 5.0)
    assert re.search(r"[^.]\.$", refused.value.sentence)
