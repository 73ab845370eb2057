"""Group consumers of real clients, unchanged, against real processes."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.broker.cluster import Cluster

PATIENCE_S = 30.0
PARTITIONS = 4


@pytest.fixture
def topic(cluster: Cluster) -> str:
    """Four partitions with ten records each: ``<partition>.<number>``."""
    name = f"g-{uuid.uuid4().hex[:8]}"
    cluster.create_topic(name, [[number % 3, (number + 1) % 3, (number + 2) % 3] for number in range(PARTITIONS)])
    for partition in range(PARTITIONS):
        cluster.produce(name, [b"%d.%d" % (partition, number) for number in range(10)], partition=partition)
    return name


class Member:
    """A librdkafka consumer in a group; ``assigned`` are its partitions, ``read`` the values that it has got."""

    def __init__(self, cluster: Cluster, topic: str, strategy: str = "range", **settings: Any) -> None:
        from confluent_kafka import Consumer

        self.assigned: set[int] = set()
        self.read: list[bytes | None] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": topic,
                "partition.assignment.strategy": strategy,
                "session.timeout.ms": 3000,
                "heartbeat.interval.ms": 200,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **settings,
            }
        )
        self._consumer.subscribe([topic], on_assign=self._gained, on_revoke=self._gave_up, on_lost=self._gave_up)

    def _gained(self, _: Any, partitions: list[Any]) -> None:
        self.assigned |= {one.partition for one in partitions}

    def _gave_up(self, _: Any, partitions: list[Any]) -> None:
        self.assigned -= {one.partition for one in partitions}

    def poll(self) -> None:
        message = self._consumer.poll(0.1)
        if message is not None and message.error() is None:
            self.read.append(message.value())

    def commit(self) -> list[Any]:
        return self._consumer.commit(asynchronous=False)

    def close(self) -> None:
        self._consumer.close()


def until(condition: Callable[[], bool], *members: Member) -> None:
    """Poll ``members`` until ``condition``."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, [member.assigned for member in members]
        for member in members:
            member.poll()


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_members_share_the_partitions_and_take_over_from_one_that_leaves(
    cluster: Cluster, topic: str, strategy: str
) -> None:
    first = Member(cluster, topic, strategy)
    until(lambda: first.assigned == {0, 1, 2, 3}, first)
    second = Member(cluster, topic, strategy)
    until(lambda: len(first.assigned) == len(second.assigned) == 2, first, second)
    assert first.assigned | second.assigned == {0, 1, 2, 3}
    until(lambda: len(set(first.read + second.read)) == 10 * PARTITIONS, first, second)
    second.close()
    until(lambda: first.assigned == {0, 1, 2, 3}, first)
    first.close()


def test_a_group_goes_on_where_it_has_committed(cluster: Cluster, topic: str) -> None:
    first = Member(cluster, topic)
    until(lambda: len(first.read) == 10 * PARTITIONS, first)
    assert [one.error for one in first.commit()] == [None] * PARTITIONS
    first.close()
    cluster.produce(topic, [b"new"], partition=2)
    second = Member(cluster, topic)
    until(lambda: bool(second.read), second)
    assert second.read == [b"new"]
    second.close()


def test_a_static_member_that_starts_again_gets_its_partitions_without_a_rebalance(
    cluster: Cluster, topic: str
) -> None:
    # A static member does not leave when it is closed; the other one would see a rebalance.
    first, second = (Member(cluster, topic, **{"group.instance.id": name}) for name in ("i", "j"))
    until(lambda: len(first.assigned) == len(second.assigned) == 2, first, second)
    before, kept = set(second.assigned), set(first.assigned)
    second.close()
    again = Member(cluster, topic, **{"group.instance.id": "j"})
    until(lambda: bool(again.assigned), first, again)
    assert (again.assigned, first.assigned) == (before, kept)
    again.close()
    first.close()


def test_an_operator_sees_moves_and_deletes_groups(cluster: Cluster, topic: str) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    member = Member(cluster, topic)
    until(lambda: len(member.read) == 10 * PARTITIONS, member)
    member.commit()
    described = admin.describe_consumer_groups([topic])[topic].result()
    (one,) = described.members
    assert (described.state.name, len(one.assignment.topic_partitions)) == ("STABLE", PARTITIONS)
    assert one.host in ("127.0.0.1", "/127.0.0.1")
    assert topic in {group.group_id for group in admin.list_consumer_groups().result().valid}
    with pytest.raises(Exception, match="NON_EMPTY_GROUP"):
        admin.delete_consumer_groups([topic])[topic].result()
    member.close()
    moved = ConsumerGroupTopicPartitions(topic, [TopicPartition(topic, 0, 3)])
    admin.alter_consumer_group_offsets([moved])[topic].result()
    kept = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(topic)])[topic].result()
    assert {part.partition: part.offset for part in kept.topic_partitions} == {0: 3, 1: 10, 2: 10, 3: 10}
    admin.delete_consumer_groups([topic])[topic].result()
    assert topic not in {group.group_id for group in admin.list_consumer_groups().result().valid}


def test_kafka_python_joins_commits_and_goes_on(cluster: Cluster, topic: str) -> None:
    kafka = pytest.importorskip("kafka")
    settings = {
        "bootstrap_servers": cluster.bootstrap.split(","),
        "group_id": topic,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "consumer_timeout_ms": 20_000,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = kafka.KafkaConsumer(topic, **settings)
        values = [next(first).value for _ in range(10 * PARTITIONS)]
        first.commit()
        first.close()
        assert len(set(values)) == 10 * PARTITIONS
        cluster.produce(topic, [b"new"], partition=3)
        second = kafka.KafkaConsumer(topic, **settings)
        assert next(second).value == b"new"
        second.close()


async def read_by_two(bootstrap: str, topic: str) -> tuple[int, list[int], list[int | None]]:
    """Let two aiokafka consumers read ``topic``, and one of them leave.

    Returns:
        How many records they have read, the partitions of the other one, and what is committed for them.
    """
    from aiokafka import AIOKafkaConsumer

    members = [
        AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=topic, auto_offset_reset="earliest", enable_auto_commit=False,
            session_timeout_ms=3000, heartbeat_interval_ms=200,
        )
        for _ in range(2)
    ]  # fmt: skip
    first, second = members
    for member in members:
        await member.start()
    read: set[tuple[int, int]] = set()
    deadline = time.monotonic() + PATIENCE_S

    async def poll_until(condition: Callable[[], bool], *polled: Any) -> None:
        while not condition() and time.monotonic() < deadline:
            for member in polled:
                for records in (await member.getmany(timeout_ms=100)).values():
                    read.update((record.partition, record.offset) for record in records)

    await poll_until(
        lambda: len(read) == 10 * PARTITIONS and all(len(one.assignment()) == 2 for one in members), *members
    )
    for member in members:
        await member.commit()
    await first.stop()
    await poll_until(lambda: len(second.assignment()) == PARTITIONS, second)
    names = sorted(second.assignment())
    committed = [await second.committed(name) for name in names]
    await second.stop()
    return len(read), [name.partition for name in names], committed


def test_aiokafka_joins_shares_and_commits(cluster: Cluster, topic: str) -> None:
    pytest.importorskip("aiokafka")
    assert asyncio.run(read_by_two(cluster.bootstrap, topic)) == (10 * PARTITIONS, [0, 1, 2, 3], [10] * PARTITIONS)


@pytest.mark.nightly("builds a Go program; by day librdkafka, kafka-python and aiokafka are asked the same")
@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
def test_franz_go_joins_shares_and_commits(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    program, source = tmp_path / "group", Path(__file__).parent / "group_of_franz_go"
    fetched = subprocess.run(["go", "mod", "download"], cwd=source, capture_output=True, text=True, check=False)
    if fetched.returncode:
        pytest.skip(f"franz-go cannot be had: {fetched.stderr.strip()}")
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=source, check=True)
    words = [str(program), cluster.bootstrap, topic, str(10 * PARTITIONS), str(PARTITIONS)]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=90, check=True)
    assert ran.stdout.split() == [str(10 * PARTITIONS), str(PARTITIONS)]


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_kcat_consumes_as_a_group(cluster: Cluster, topic: str) -> None:
    command = ["kcat", "-b", cluster.bootstrap, "-G", topic, "-q", "-c", str(10 * PARTITIONS)]
    ran = subprocess.run(
        [*command, "-X", "auto.offset.reset=earliest", topic], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert len(set(ran.stdout.split())) == 10 * PARTITIONS


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster that a test may break."""
    cluster = Cluster(tmp_path, broker_session_timeout_ms=3_000)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def test_a_group_survives_its_coordinator(doomed: Cluster) -> None:
    doomed.create_topic("t", [[1, 2, 0], [2, 1, 0], [1, 2, 0]])
    first, second = Member(doomed, "t"), Member(doomed, "t")
    until(lambda: sorted(map(len, (first.assigned, second.assigned))) == [1, 2], first, second)
    for partition in range(3):
        doomed.produce("t", [b"%d.%d" % (partition, number) for number in range(10)], partition=partition)
    until(lambda: len(first.read) + len(second.read) == 30, first, second)
    assert {one.error for one in (*first.commit(), *second.commit())} == {None}
    doomed.kill(0)  # the first replica of __consumer_offsets: it coordinates
    doomed.produce("t", [b"new"], partition=0)
    until(lambda: b"new" in first.read + second.read, first, second)
    newcomer = Member(doomed, "t")
    members = (first, second, newcomer)
    until(lambda: all(len(one.assigned) == 1 for one in members), *members)
    assert not newcomer.read or newcomer.read == [b"new"]
    for member in members:
        member.close()
