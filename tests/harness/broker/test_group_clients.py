"""Group consumers of real clients, unchanged, against real processes."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.harness.broker.cluster import Cluster
from tests.harness.broker.group_members import PARTITIONS, PATIENCE_S, Member, filled_topic, lose_the_coordinator, until


@pytest.fixture
def topic(cluster: Cluster) -> str:
    return filled_topic(cluster)


class ClassicMember(Member):
    """A member that brings its assignor."""

    def __init__(self, cluster: Cluster, topic: str, strategy: str = "range", **settings: Any) -> None:
        own: dict[str, Any] = {"session.timeout.ms": 3000, "heartbeat.interval.ms": 200, **settings}
        super().__init__(cluster, topic, **{"partition.assignment.strategy": strategy, **own})


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_members_share_the_partitions_and_take_over_from_one_that_leaves(
    cluster: Cluster, topic: str, strategy: str
) -> None:
    first = ClassicMember(cluster, topic, strategy)
    until(lambda: first.assigned == {0, 1, 2, 3}, first)
    second = ClassicMember(cluster, topic, strategy)
    until(lambda: len(first.assigned) == len(second.assigned) == 2, first, second)
    assert first.assigned | second.assigned == {0, 1, 2, 3}
    until(lambda: len(set(first.read + second.read)) == 10 * PARTITIONS, first, second)
    second.close()
    until(lambda: first.assigned == {0, 1, 2, 3}, first)
    first.close()


def test_a_group_goes_on_where_it_has_committed(cluster: Cluster, topic: str) -> None:
    first = ClassicMember(cluster, topic)
    until(lambda: len(first.read) == 10 * PARTITIONS, first)
    assert [one.error for one in first.commit()] == [None] * PARTITIONS
    first.close()
    cluster.produce(topic, [b"new"], partition=2)
    second = ClassicMember(cluster, topic)
    until(lambda: bool(second.read), second)
    assert second.read == [b"new"]
    second.close()


def test_a_static_member_that_starts_again_gets_its_partitions_without_a_rebalance(
    cluster: Cluster, topic: str
) -> None:
    # A static member does not leave when it is closed; the other one would see a rebalance.
    first, second = (ClassicMember(cluster, topic, **{"group.instance.id": name}) for name in ("i", "j"))
    until(lambda: len(first.assigned) == len(second.assigned) == 2, first, second)
    before, kept = set(second.assigned), set(first.assigned)
    second.close()
    again = ClassicMember(cluster, topic, **{"group.instance.id": "j"})
    until(lambda: bool(again.assigned), first, again)
    assert (again.assigned, first.assigned) == (before, kept)
    again.close()
    first.close()


def test_an_operator_sees_moves_and_deletes_groups(cluster: Cluster, topic: str) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    member = ClassicMember(cluster, topic)
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


def test_a_group_survives_its_coordinator(doomed: Cluster) -> None:
    lose_the_coordinator(doomed, lambda: ClassicMember(doomed, "t"))
