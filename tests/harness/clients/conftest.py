"""One running cluster for the clients, whose topic wants every one of its two replicas in sync."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from harness.broker.settings import Settings
from harness.model import NodeId
from harness.replication.knobs import CURRENT_GENERATION, generation
from harness.target import TopicSpec
from harness.targets.builtin import BuiltinTarget


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuiltinTarget]:
    settings = Settings(min_insync_replicas=2)
    target = BuiltinTarget(tmp_path_factory.mktemp("cluster"), 2, generation(CURRENT_GENERATION), settings)
    try:
        target.start()
        target.create_topic(TopicSpec("ledger", 2, 2, ((NodeId(0), NodeId(1)),) * 2))
        yield target
    finally:
        target.stop()


@pytest.fixture
def log() -> logging.Logger:
    made = logging.getLogger("seawall.tests.clients")
    made.propagate = False
    made.addHandler(logging.NullHandler())
    return made
