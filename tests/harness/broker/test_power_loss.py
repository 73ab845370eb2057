"""Real processes on real files lose their power."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.broker.ledger import lose_power
from tests.harness.broker.cluster import FAILS_OVER, Cluster, wait_until

Start = Callable[..., Cluster]

ANOTHER_BROKER = pytest.mark.nightly(
    "restarts a broker of its own; by day one keeps four records of five, flushed at once"
)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts one broker that leads ``t``, alone."""
    started: list[Cluster] = []

    def start(**options: Any) -> Cluster:
        cluster = Cluster(tmp_path, brokers=1, **options)
        started.append(cluster)
        cluster.start()
        cluster.create_topic("t", [[0]])
        return cluster

    yield start
    for cluster in started:
        cluster.stop()


def lose_power_and_return(cluster: Cluster, with_signal: signal.Signals = signal.SIGKILL) -> list[str]:
    cluster.kill(0, with_signal)
    cut = lose_power(Path(cluster.configs[cluster.ids[0]].data_dir))
    cluster.spawn(0)
    cluster.wait_for_sessions()
    wait_until(lambda: cluster.replica(0, "t").get("role") == "leader", "broker 0 to lead again")
    return [one.path for one in cut]


@pytest.mark.parametrize(
    ("flush_messages", "survive"), [(4, 4), *(pytest.param(*one, marks=ANOTHER_BROKER) for one in ((1, 5), (1_000, 0)))]
)
def test_a_broker_that_loses_its_power_keeps_what_it_has_flushed(
    start: Start, flush_messages: int, survive: int
) -> None:
    cluster = start(log_flush_interval_messages=flush_messages, **FAILS_OVER)
    for number in range(5):
        assert cluster.produce("t", [b"%d" % number]) == [number]
    cut = lose_power_and_return(cluster)
    assert cluster.replica(0, "t")["log_end_offset"] == survive
    assert cut == ([] if survive == 5 else ["t-0/00000000000000000000.log"])
    assert cluster.consume("t", survive) == [b"%d" % number for number in range(survive)]


@ANOTHER_BROKER
def test_a_kill_keeps_what_a_power_loss_would_take(start: Start) -> None:
    cluster = start(**FAILS_OVER)
    assert cluster.produce("t", [b"a"]) == [0]
    cluster.kill(0)
    cluster.spawn(0)
    cluster.wait_for_sessions()
    wait_until(lambda: cluster.replica(0, "t").get("role") == "leader", "broker 0 to lead again")
    assert cluster.consume("t", 1) == [b"a"]


@ANOTHER_BROKER
def test_a_broker_that_was_stopped_in_order_has_nothing_to_lose(start: Start) -> None:
    cluster = start(**FAILS_OVER)
    assert cluster.produce("t", [b"a", b"b"]) == [0, 1]
    assert lose_power_and_return(cluster, signal.SIGTERM) == []
    assert cluster.replica(0, "t")["log_end_offset"] == 2
    assert "The last shutdown was clean." in cluster.log(0)


def test_an_operator_elects_over_the_control_channel(start: Start) -> None:
    cluster = start()
    answer = cluster.ask(100, op="elect", topic="t", partition=0, leader=0)
    assert (answer["ok"], answer["error_name"], answer["partition"]["leader"]) == (True, "ELECTION_NOT_NEEDED", 0)
    assert "makes no sense: partition: null is no whole number" in cluster.ask(100, op="elect", topic="t")["error"]


def test_an_admin_client_deletes_records(start: Start) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    cluster = start()
    assert cluster.produce("t", [b"a", b"b", b"c"]) == [0, 1, 2]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    where = TopicPartition("t", 0, 2)
    assert admin.delete_records([where], request_timeout=60)[where].result(60).low_watermark == 2
    assert cluster.replica(0, "t")["log_start_offset"] == 2
