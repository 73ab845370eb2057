"""Running clusters for the clients, whose topic wants every one of its two replicas in sync."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.broker.settings import Settings
from harness.model import NodeId
from harness.replication.knobs import CURRENT_GENERATION, generation
from harness.target import TopicSpec
from harness.targets.builtin import BuiltinTarget


@contextmanager
def running(directory: Path, session_timeout_ms: int) -> Iterator[BuiltinTarget]:
    settings = Settings(
        min_insync_replicas=2, broker_session_timeout_ms=session_timeout_ms, replica_lag_time_max_ms=60_000
    )
    target = BuiltinTarget(directory, 2, generation(CURRENT_GENERATION), settings)
    try:
        target.start()
        target.create_topic(TopicSpec("ledger", 2, 2, ((NodeId(0), NodeId(1)),) * 2))
        yield target
    finally:
        target.stop()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuiltinTarget]:
    """One for all tests that kill nobody: a machine that stalls costs no broker its session."""
    with running(tmp_path_factory.mktemp("cluster"), 60_000) as target:
        yield target


@pytest.fixture
def mortal_cluster(tmp_path: Path) -> Iterator[BuiltinTarget]:
    """One in which a broker that is killed is soon taken for dead."""
    with running(tmp_path / "cluster", 3_000) as target:
        yield target


@pytest.fixture
def log() -> logging.Logger:
    made = logging.getLogger("seawall.tests.clients")
    made.propagate = False
    made.addHandler(logging.NullHandler())
    return made
