"""Replicas of real Kafka go where a schedule takes them to be: where the built-in brokers would put them."""

from __future__ import annotations

from pathlib import Path

from harness.model import NodeId, TopicPartition
from harness.target import TopicSpec
from harness.targets.kafka.placing import Placing

LOG_DIRS = {node: [Path(f"/{node}/log-0"), Path(f"/{node}/log-1")] for node in "012"}
FIRST, SECOND = TopicPartition("a", 0), TopicPartition("a", 1)


def test_a_replica_goes_to_the_directory_with_the_fewest_and_of_equals_to_the_first() -> None:
    places = Placing(LOG_DIRS).places(TopicSpec("a", 2, 3))
    assert {node: dict(dirs) for node, dirs in places.items()} == {
        node: {Path(f"/{node}/log-0"): [FIRST], Path(f"/{node}/log-1"): [SECOND]} for node in "012"
    }


def test_what_was_placed_counts_on_the_broker_that_has_it() -> None:
    placing = Placing(LOG_DIRS)
    placing.places(TopicSpec("a", 1, 1, ((NodeId(1),),)))
    places = placing.places(TopicSpec("b", 1, 2, ((NodeId(1), NodeId(2)),)))
    new = TopicPartition("b", 0)
    assert places["1"] == {Path("/1/log-1"): [new]}
    assert places["2"] == {Path("/2/log-0"): [new]}
