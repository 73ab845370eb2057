"""For how long brokers keep committed offsets, over the wire and in virtual time."""

from __future__ import annotations

import pytest

from tests.harness.broker.test_committed_offsets import commit, committed, coordinator
from tests.harness.broker.virtual_cluster import VirtualCluster

DAY_MS = 86_400_000


def kept(cluster: VirtualCluster) -> bool:
    return committed(cluster, version=3)[0][0] == 5


def short(knobs: str) -> VirtualCluster:
    """A cluster that keeps offsets for a minute."""
    cluster = VirtualCluster(knobs, offsets_retention_minutes=1, offsets_retention_check_interval_ms=1_000)
    cluster.create_topic()
    return cluster


@pytest.mark.parametrize("knobs", ["2.0.1", "2.1", "4.1"])
def test_what_was_committed_outlives_its_time_or_goes_before(knobs: str) -> None:
    cluster = short(knobs)
    assert commit(cluster, 5, version=3) == [0]
    cluster.world.sleep(50)
    assert kept(cluster)
    cluster.world.sleep(20)
    assert not kept(cluster)


@pytest.mark.parametrize("knobs", ["2.0.1", "2.1", "4.1"])
def test_the_time_that_a_client_asks_for_does_not_count(knobs: str) -> None:
    cluster = short(knobs)
    assert commit(cluster, 5, version=3, retention_time_ms=DAY_MS) == [0]
    cluster.world.sleep(200)
    assert kept(cluster)


def test_an_offset_that_has_expired_is_there_again_with_the_next_coordinator() -> None:
    cluster = short("4.1")
    commit(cluster, 5)
    cluster.world.sleep(70)
    assert not kept(cluster)
    at = coordinator(cluster)
    cluster.kill(at)
    cluster.world.sleep(5)
    assert coordinator(cluster, asked=(at + 1) % 3) != at
    assert committed(cluster, at=coordinator(cluster, asked=(at + 1) % 3))[0][0] == -1
