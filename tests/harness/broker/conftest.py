"""One cluster of real processes for all tests that do not break it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.broker.cluster import Cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers and a controller; topic ``shared`` has leader 0, ``led-by-1`` leader 1."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.start()
        cluster.create_topic("shared")
        cluster.create_topic("led-by-1", [[1, 2, 0]])
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster that a test may break."""
    cluster = Cluster(tmp_path, broker_session_timeout_ms=3_000)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
