"""What goes wrong with a client's request while it waits for its answer costs that request, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.fetch import Fetching
from harness.broker.produce import Producing
from harness.error_codes import ErrorCode
from harness.wire.keys import ApiKey
from tests.harness.broker.raw_client import batch, fetch_request, produce_request
from tests.harness.broker.virtual_cluster import VirtualCluster


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which requests could not be served by the nodes of a cluster that is made from now on; they live on."""
    told: list[str] = []
    monkeypatch.setattr("harness.simulation.stack.node.raise_again", lambda request, _: told.append(request))
    return told


def parked_fetch(cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A consumer's fetch that waits, and that cannot be looked at again."""
    answers = cluster.call(0, ApiKey.FETCH, 12, fetch_request("t", 0, max_wait_ms=5_000))
    assert answers == []
    look_again = Fetching._look_again

    def fail(fetching: Fetching) -> Any:
        if fetching._replica is None:
            raise KeyError("a bug")
        return look_again(fetching)

    monkeypatch.setattr(Fetching, "_look_again", fail)
    return answers


def error_of(answers: list[Any]) -> int:
    return int(answers[0].responses[0].partitions[0].error_code)


@pytest.mark.parametrize("is_woken", [True, False])
def test_a_fetch_that_cannot_be_completed_takes_neither_the_broker_along_nor_the_producer_that_wakes_it(
    reports: list[str], monkeypatch: pytest.MonkeyPatch, is_woken: bool
) -> None:
    cluster = VirtualCluster()
    cluster.create_topic()
    answers = parked_fetch(cluster, monkeypatch)
    if is_woken:
        assert cluster.produce(0, b"a", acks=1) == [(0, 0)]
        cluster.world.sleep(1)
    else:
        cluster.world.sleep(6)
    assert error_of(answers) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert reports == ["FETCH version 12"]
    assert cluster.exit_codes == {}


def test_a_produce_that_cannot_be_expired_does_not_take_the_broker_along(
    reports: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = VirtualCluster()
    cluster.create_topic()
    cluster.deafen(1, 2)
    answers = cluster.call(0, ApiKey.PRODUCE, 9, produce_request("t", batch(b"a"), timeout_ms=1_000))

    def fail(*_: Any) -> Any:
        raise KeyError("a bug")

    monkeypatch.setattr(Producing, "_expiry", fail)
    cluster.world.sleep(2)
    assert answers[0].responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert reports == ["PRODUCE version 9"]
