"""Transactional producers of real clients, unchanged, against real processes."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from harness.client_ports import ABORTED, Transacted
from harness.client_properties import Access
from harness.clients.threaded_clients import ThreadedClients
from harness.model import TopicPartition
from tests.harness.broker.cluster import Cluster
from tests.records import bare

PATIENCE_S = 60.0
PARTITIONS = 3


@pytest.fixture
def topic(cluster: Cluster) -> str:
    return created(cluster)


def created(cluster: Cluster) -> str:
    name = f"x-{uuid.uuid4().hex[:8]}"
    cluster.create_topic(name, [[number % 3, (number + 1) % 3, (number + 2) % 3] for number in range(PARTITIONS)])
    return name


def producer(cluster: Cluster, name: str, **settings: Any) -> Any:
    from confluent_kafka import Producer

    made = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "transactional.id": name,
            "transaction.timeout.ms": 60_000,
            "retry.backoff.ms": 20,
            **settings,
        }
    )
    made.init_transactions(PATIENCE_S)
    return made


def send(made: Any, topic: str, *values: bytes) -> None:
    """Send a value to each partition in turn, and wait until all are stored."""
    for number, value in enumerate(values):
        made.produce(topic, value, partition=number % PARTITIONS)
    made.flush(PATIENCE_S)


def read(cluster: Cluster, topic: str, isolation: str = "read_committed") -> set[bytes | None]:
    """All that is in the topic for a consumer."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    values: set[bytes | None] = set()
    ended: set[int | None] = set()
    deadline = time.monotonic() + PATIENCE_S
    while len(ended) < PARTITIONS:
        assert time.monotonic() < deadline, (values, ended)
        message = consumer.poll(0.1)
        if message is None:
            continue
        error = message.error()
        if error is None:
            values.add(message.value())
        elif error.code() == KafkaError._PARTITION_EOF:
            ended.add(message.partition())
    consumer.close()
    return values


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_reader_of_committed_records_gets_what_is_committed_and_nothing_else(cluster: Cluster, topic: str) -> None:
    made = producer(cluster, topic)
    for number in range(4):
        made.begin_transaction()
        send(made, topic, *(b"%d.%d" % (number, one) for one in range(PARTITIONS)))
        if number % 2:
            made.abort_transaction(PATIENCE_S)
        else:
            made.commit_transaction(PATIENCE_S)
    committed = {b"%d.%d" % (number, one) for number in (0, 2) for one in range(PARTITIONS)}
    until(lambda: read(cluster, topic) == committed)
    assert read(cluster, topic, "read_uncommitted") == {
        b"%d.%d" % (number, one) for number in range(4) for one in range(PARTITIONS)
    }


def test_records_of_an_open_transaction_hold_back_what_comes_behind_them(cluster: Cluster, topic: str) -> None:
    made, other = producer(cluster, topic), producer(cluster, f"{topic}-other")
    made.begin_transaction()
    send(made, topic, b"open")
    other.begin_transaction()
    send(other, topic, b"behind", b"elsewhere")
    other.commit_transaction(PATIENCE_S)
    until(lambda: read(cluster, topic) == {b"elsewhere"})
    made.commit_transaction(PATIENCE_S)
    until(lambda: read(cluster, topic) == {b"open", b"behind", b"elsewhere"})


def test_a_new_process_fences_the_old_one_off_and_aborts_its_transaction(cluster: Cluster, topic: str) -> None:
    from confluent_kafka import KafkaException

    old = producer(cluster, topic)
    old.begin_transaction()
    send(old, topic, b"zombie")
    new = producer(cluster, topic)
    with pytest.raises(KafkaException, match="_FENCED"):
        old.commit_transaction(PATIENCE_S)
    new.begin_transaction()
    send(new, topic, b"mine")
    new.commit_transaction(PATIENCE_S)
    until(lambda: read(cluster, topic) == {b"mine"})


def test_a_transaction_that_takes_too_long_is_aborted(cluster: Cluster, topic: str) -> None:
    from confluent_kafka import KafkaException

    made = producer(cluster, topic, **{"transaction.timeout.ms": 1000})
    made.begin_transaction()
    send(made, topic, b"late")
    until(lambda: admin_sees(cluster, topic) == "CompleteAbort")
    with pytest.raises(KafkaException):
        made.commit_transaction(PATIENCE_S)
    assert read(cluster, topic) == set()


def admin_sees(cluster: Cluster, transactional_id: str) -> str:
    from harness.wire.keys import ApiKey
    from harness.wire.messages.described_transactions import DescribeTransactionsRequest
    from tests.harness.broker.raw_client import RawClient

    for broker in cluster.ids:
        with RawClient(cluster.ips[broker]) as client:
            answer = client.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest([transactional_id]))
        (state,) = answer.transaction_states
        if not state.error_code:
            return str(state.transaction_state)
    return ""


def test_offsets_and_records_are_committed_together(cluster: Cluster, topic: str) -> None:
    commit_offsets_and_records(cluster, topic)


def test_offsets_and_records_are_committed_together_before_kip_447(tmp_path: Any) -> None:
    cluster = Cluster(tmp_path, knobs="2.1")
    try:
        cluster.start()
        commit_offsets_and_records(cluster, created(cluster))
    finally:
        cluster.stop()


def commit_offsets_and_records(cluster: Cluster, topic: str) -> None:
    """Copy nine records in a transaction each, with the offsets behind them; the last four are aborted."""
    from confluent_kafka import Consumer, TopicPartition

    out = created(cluster)
    cluster.produce(topic, [b"%d" % number for number in range(9)])
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    made, read_values = producer(cluster, topic), list[bytes | None]()
    deadline = time.monotonic() + PATIENCE_S
    while len(read_values) < 9:
        assert time.monotonic() < deadline
        message = consumer.poll(0.1)
        if message is None or message.error() is not None:
            continue
        read_values.append(message.value())
        made.begin_transaction()
        made.produce(out, message.value(), partition=0)
        made.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), PATIENCE_S
        )
        if len(read_values) < 6:
            made.commit_transaction(PATIENCE_S)
        else:
            made.abort_transaction(PATIENCE_S)
    until(lambda: read(cluster, out) == {b"%d" % number for number in range(5)})
    until(lambda: consumer.committed([TopicPartition(topic, 0)], PATIENCE_S)[0].offset == 5)
    consumer.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_kafka_python_runs_transactions(cluster: Cluster, topic: str) -> None:
    kafka = pytest.importorskip("kafka")
    made = kafka.KafkaProducer(bootstrap_servers=cluster.bootstrap.split(","), transactional_id=topic, acks="all")
    made.init_transactions()
    for value, commits in ((b"kept", True), (b"dropped", False), (b"kept too", True)):
        made.begin_transaction()
        made.send(topic, value, partition=1).get(PATIENCE_S)
        if commits:
            made.commit_transaction()
        else:
            made.abort_transaction()
    made.close()
    until(lambda: read(cluster, topic) == {b"kept", b"kept too"})


@pytest.mark.parametrize("version", [0, 2])
def test_a_producer_that_speaks_the_protocol_itself_runs_transactions(
    cluster: Cluster, topic: str, version: int
) -> None:
    clients = ThreadedClients(Access(cluster.bootstrap), logging.getLogger("seawall.tests"))
    made = clients.wire_producer(f"{topic}-{version}", PATIENCE_S, version)

    async def transact() -> list[Transacted | None]:
        ended: list[Transacted | None] = []
        for value, commits in ((b"kept", True), (b"dropped", False), (b"kept too", True)):
            ended.append(await made.send(TopicPartition(topic, 1), [bare(value)]))
            ended.append(await made.end(commits=commits))
        return ended

    task = clients.begin(transact())
    task.join(PATIENCE_S)
    ends = [Transacted("ok", [0]), Transacted("fail", [2], ABORTED), Transacted("ok", [4])]
    assert task.result() == [one for end in ends for one in (None, end)]
    made.close()
    until(lambda: read(cluster, topic) == {b"kept", b"kept too"})


def test_a_transaction_survives_its_coordinator_and_its_leader(tmp_path: Any) -> None:
    cluster = Cluster(tmp_path, broker_session_timeout_ms=3_000)
    try:
        cluster.start()
        topic = created(cluster)
        made = producer(cluster, topic)
        made.begin_transaction()
        send(made, topic, b"a", b"b", b"c")
        cluster.kill(0)
        send(made, topic, b"d", b"e", b"f")
        made.commit_transaction(PATIENCE_S)
        made.begin_transaction()
        send(made, topic, b"x", b"y", b"z")
        made.abort_transaction(PATIENCE_S)
        until(lambda: read(cluster, topic) == {b"a", b"b", b"c", b"d", b"e", b"f"})
    finally:
        cluster.stop()
