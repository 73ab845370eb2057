"""Real clients, unchanged, against real processes."""

import shutil
import subprocess
import uuid
import warnings
from pathlib import Path

import pytest

from harness.model import NodeId
from tests.harness.broker.cluster import Cluster

needs_kcat = pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")


@pytest.fixture
def topic(cluster: Cluster) -> str:
    """Two empty partitions with different leaders."""
    name = f"c-{uuid.uuid4().hex[:8]}"
    cluster.create_topic(name, [[0, 1, 2], [1, 2, 0]])
    return name


def kcat(cluster: Cluster, *arguments: str, text: str = "") -> str:
    command = ("kcat", "-b", cluster.bootstrap, *arguments)
    ran = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_confluent_kafka_reads_what_it_wrote(cluster: Cluster, topic: str, codec: str) -> None:
    values = [b"%d-%s" % (number, b"x" * 200) for number in range(300)]
    offsets = cluster.produce(topic, values, config={"compression.type": codec, "linger.ms": 5})
    assert offsets == list(range(300))
    assert cluster.consume(topic, 300) == values
    assert cluster.consume(topic, 10, offset=290) == values[290:]


def test_an_idempotent_producer_is_served(cluster: Cluster, topic: str) -> None:
    assert cluster.produce(topic, [b"a"] * 20, partition=1, config={"enable.idempotence": True}) == list(range(20))


def test_the_offsets_of_a_consumer_that_assigns_itself_are_kept(cluster: Cluster, topic: str) -> None:
    from confluent_kafka import Consumer, TopicPartition

    assert cluster.produce(topic, [b"a", b"b", b"c"]) == [0, 1, 2]
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": topic, "enable.auto.commit": False}
    first = Consumer(settings)
    first.assign([TopicPartition(topic, 0, 0)])
    assert [first.poll(5).value() for _ in range(2)] == [b"a", b"b"]  # type: ignore[union-attr]
    assert first.commit(asynchronous=False)[0].error is None
    first.close()
    second = Consumer(settings)
    (found,) = second.committed([TopicPartition(topic, 0)], timeout=60)
    assert (found.offset, found.leader_epoch) == (2, 0)
    second.assign([TopicPartition(topic, 0)])  # goes on where the group has stopped
    message = second.poll(5)
    assert message is not None
    assert message.value() == b"c"
    second.close()


def test_kafka_python_commits_and_finds_its_offsets(cluster: Cluster, topic: str) -> None:
    kafka = pytest.importorskip("kafka")
    where = kafka.TopicPartition(topic, 0)
    assert cluster.produce(topic, [b"a", b"b"]) == [0, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for offset in (1, 2):
            consumer = kafka.KafkaConsumer(
                bootstrap_servers=cluster.bootstrap.split(","), group_id=topic, enable_auto_commit=False
            )
            consumer.assign([where])
            assert consumer.committed(where) == (offset - 1 or None)
            consumer.seek(where, offset)
            consumer.commit()
            assert consumer.committed(where) == offset
            consumer.close()


def test_kafka_python_is_told_what_lies_in_the_log_directories(cluster: Cluster, topic: str) -> None:
    kafka = pytest.importorskip("kafka")
    assert cluster.produce(topic, [b"a"]) == [0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        admin = kafka.KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","))
        described = {one["broker"]: one["log_dirs"] for one in admin.describe_log_dirs()}
        admin.close()
    assert sorted(described) == [0, 1, 2]
    for broker, (log_dir,) in described.items():
        assert (log_dir["error_code"], log_dir["log_dir"]) == (0, cluster.configs[NodeId(broker)].data_dir)
        sizes = {one["name"]: [part["partition_size"] for part in one["partitions"]] for one in log_dir["topics"]}
        log = Path(log_dir["log_dir"], f"{topic}-0", "00000000000000000000.log")
        assert sizes[topic] == [log.stat().st_size, 0]


def test_acknowledged_with_all_means_that_every_replica_has_it(cluster: Cluster, topic: str) -> None:
    for number in range(20):
        assert cluster.produce(topic, [b"a"]) == [number]
        ends = [cluster.replica(broker, topic)["log_end_offset"] for broker in cluster.ids]
        assert min(ends) == number + 1


@needs_kcat
def test_kcat_lists_produces_and_consumes(cluster: Cluster, topic: str) -> None:
    listed = kcat(cluster, "-L")
    assert f'topic "{topic}" with 2 partitions:' in listed
    assert "partition 1, leader 1, replicas: 1,2,0, isrs: 1,2,0" in listed
    lines = "".join(f"line {number}\n" for number in range(50))
    kcat(cluster, "-P", "-t", topic, "-p", "1", "-X", "acks=all", "-z", "gzip", text=lines)
    assert kcat(cluster, "-C", "-t", topic, "-p", "1", "-o", "beginning", "-e", "-q") == lines
    assert kcat(cluster, "-Q", "-t", f"{topic}:1:-1") == f"{topic} [1] offset 50\n"
