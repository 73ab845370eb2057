"""One running cluster for the tests that do not end it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.broker.settings import Settings
from harness.model import NodeId, TopicPartition
from harness.replication.knobs import CURRENT_GENERATION, generation
from harness.target import TopicSpec
from harness.targets.builtin import BuiltinTarget

LEDGER = TopicPartition("ledger", 0)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuiltinTarget]:
    """Three brokers that hold ``ledger-0``, preferably led by broker 0."""
    target = BuiltinTarget(tmp_path_factory.mktemp("cluster"), 3, generation(CURRENT_GENERATION), Settings())
    try:
        target.start()
        assignment = (tuple(map(NodeId, (0, 1, 2))),)
        target.create_topic(TopicSpec(LEDGER.topic, 1, 3, assignment))
        yield target
    finally:
        target.stop()
