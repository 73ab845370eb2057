"""Several log directories: where replicas lie, and what becomes of them when a directory fails."""

from __future__ import annotations

import errno
import json
from typing import Any

import pytest

from harness.broker.log_directory import CLEAN_SHUTDOWN
from harness.broker.settings import Settings
from harness.broker.topic_ids import topic_id
from harness.error_codes import ErrorCode
from harness.errors import UsageError
from harness.model import CONTROLLER_ID, TopicPartition
from harness.wire.keys import ApiKey
from harness.wire.messages.log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from harness.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from harness.wire.messages.topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from tests.harness.broker.raw_client import batch, fetch_request, produce_request
from tests.harness.broker.virtual_cluster import VirtualCluster

ONE, TWO, THREE = (TopicPartition("t", number) for number in range(3))
NEW = CreatableTopic("new", -1, -1, [CreatableReplicaAssignment(0, [0])])


def two_directories(partitions: int = 3, replicas: tuple[int, ...] = (0, 1, 2), **arguments: Any) -> VirtualCluster:
    """Partition 0 and 2 lie in directory 0 of every broker, partition 1 in directory 1."""
    settings = {"replica_high_watermark_checkpoint_interval_ms": 200, "log_dirs_count": 2}
    cluster = VirtualCluster(**{"knobs": "3.7", **settings, **arguments})
    topic = CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(n, list(replicas)) for n in range(partitions)])
    (answer,) = cluster.call(1, ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest([topic]))
    assert answer.topics[0].error_code == 0
    cluster.world.sleep(1)
    return cluster


def produce(cluster: VirtualCluster, node: int, partition: int, value: bytes, **fields: Any) -> int | None:
    request = produce_request("t", batch(value), partition=partition, **fields)
    answers = cluster.call(node, ApiKey.PRODUCE, 9, request)
    cluster.world.sleep(1)
    codes = [one.error_code for answer in answers for one in answer.responses[0].partition_responses]
    return codes[0] if codes else None


def placed(cluster: VirtualCluster, node: int) -> dict[TopicPartition, int]:
    return {name: partition.directory.number for name, partition in cluster.brokers[node].partitions.items()}


def roles(cluster: VirtualCluster, node: int) -> list[str]:
    partitions = cluster.brokers[node].partitions
    return [partitions[name].replica.role for name in sorted(partitions)]


def state(cluster: VirtualCluster, name: TopicPartition) -> tuple[int, tuple[int, ...]]:
    (found,) = [one for one in cluster.controller.core.partitions if one.topic_partition == name]
    return found.leader, found.isr


def eligible(cluster: VirtualCluster) -> tuple[int, ...]:
    (found,) = [one for one in cluster.controller.core.partitions if one.topic_partition == TWO]
    return found.elr


def test_new_replicas_go_where_the_fewest_are() -> None:
    cluster = two_directories()
    assert placed(cluster, 0) == {ONE: 0, TWO: 1, THREE: 0}
    assert "log-1/t-1/00000000000000000000.log" in cluster.disk(0).paths()
    assert "log-0/t-1/00000000000000000000.log" not in cluster.disk(0).paths()


def test_a_replica_is_found_again_where_it_lies_and_each_directory_has_its_own_checkpoints() -> None:
    cluster = two_directories()
    assert produce(cluster, 0, 1, b"x") == 0
    cluster.node(0).shut_down()
    disk = cluster.disk(0)
    assert disk.read_text("log-1/replication-offset-checkpoint") == "0\n1\nt 1 1\n"
    assert disk.read_text("log-0/replication-offset-checkpoint") == "0\n2\nt 0 0\nt 2 0\n"
    assert disk.read_text(f"log-0/{CLEAN_SHUTDOWN}") == disk.read_text(f"log-1/{CLEAN_SHUTDOWN}")
    cluster.start(0)
    assert placed(cluster, 0) == {ONE: 0, TWO: 1, THREE: 0}
    assert cluster.brokers[0].partitions[TWO].replica.log_end_offset == 1


def test_everything_in_several_directories_survives_a_power_loss_that_was_flushed() -> None:
    cluster = two_directories(log_flush_interval_messages=1)
    assert produce(cluster, 0, 1, b"x") == 0
    cluster.node(0).lose_power()
    cluster.start(0)
    assert placed(cluster, 0) == {ONE: 0, TWO: 1, THREE: 0}
    assert cluster.brokers[0].partitions[TWO].replica.log_end_offset == 1


def test_a_failed_directory_takes_its_replicas_offline_and_nothing_else() -> None:
    cluster = two_directories()
    cluster.disk(0).failed.add("log-1")
    cluster.world.sleep(1)
    assert cluster.exit_codes == {}
    assert roles(cluster, 0) == ["leader", "offline", "leader"]
    assert state(cluster, ONE) == (0, (0, 1, 2))
    assert state(cluster, TWO) == (1, (1, 2))
    assert produce(cluster, 0, 0, b"here") == 0
    assert produce(cluster, 0, 1, b"offline") == ErrorCode.KAFKA_STORAGE_ERROR
    assert produce(cluster, 1, 1, b"there") == 0
    row = json.loads(cluster.node(0).timeline_rows("storage_failed")[0]["detail"])
    assert (row["errno"], row["log_dir"], row["halts"]) == (errno.ENOTDIR, 1, False)


def test_an_append_that_does_not_fit_takes_the_directory_offline_and_is_not_acknowledged() -> None:
    cluster = two_directories()
    cluster.disk(0).limit("log-1", 10)
    assert produce(cluster, 0, 1, b"x" * 100) == ErrorCode.KAFKA_STORAGE_ERROR
    assert roles(cluster, 0) == ["leader", "offline", "leader"]
    assert state(cluster, TWO) == (1, (1, 2))
    assert produce(cluster, 0, 0, b"x" * 100) == 0


def test_a_follower_whose_directory_has_failed_leaves_the_isr_at_once() -> None:
    cluster = two_directories(replica_lag_time_max_ms=20_000)
    cluster.disk(2).failed.add("log-1")
    cluster.world.sleep(1)
    assert state(cluster, TWO) == (0, (0, 1))
    assert state(cluster, ONE) == (0, (0, 1, 2))
    # It had the whole log not long ago, and its broker has a session: the watermark waits until it is too long ago.
    produce(cluster, 0, 1, b"x")
    assert cluster.brokers[0].partitions[TWO].replica.high_watermark == 0
    cluster.world.sleep(20)
    assert cluster.brokers[0].partitions[TWO].replica.high_watermark == 1


def test_a_reader_of_an_offline_replica_is_told_so() -> None:
    cluster = two_directories()
    cluster.disk(0).failed.add("log-1")
    cluster.world.sleep(1)
    (answer,) = cluster.call(0, ApiKey.FETCH, 12, fetch_request("t", 0, partition=1))
    assert answer.responses[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_broker_halts_with_its_last_directory() -> None:
    cluster = two_directories()
    cluster.disk(0).failed |= {"log-0", "log-1"}
    cluster.world.sleep(3)
    assert cluster.exit_codes == {0: 1}
    rows = [json.loads(row["detail"]) for row in cluster.node(0).timeline_rows("storage_failed")]
    assert [(row["log_dir"], row["halts"]) for row in rows] == [(0, False), (1, True)]


def test_an_old_broker_halts_with_its_first_directory() -> None:
    cluster = two_directories(knobs="0.11")
    cluster.disk(0).failed.add("log-1")
    cluster.world.sleep(3)
    assert cluster.exit_codes == {0: 1}
    assert state(cluster, ONE) == (1, (1, 2))


def test_a_directory_is_online_again_after_a_restart_with_a_sound_disk() -> None:
    cluster = two_directories()
    cluster.disk(0).failed.add("log-1")
    cluster.world.sleep(1)
    assert produce(cluster, 1, 1, b"meanwhile") == 0
    cluster.disk(0).failed.clear()
    cluster.node(0).shut_down()
    cluster.world.sleep(3)
    cluster.start(0)
    cluster.world.sleep(3)
    assert set(state(cluster, TWO)[1]) == {0, 1, 2}
    assert cluster.brokers[0].partitions[TWO].replica.log_end_offset == 1


def test_a_directory_that_has_failed_before_the_start_is_offline_and_its_replicas_are_not_made_anew() -> None:
    cluster = two_directories()
    cluster.kill(0)
    cluster.disk(0).failed.add("log-1")
    cluster.world.sleep(3)
    cluster.start(0)
    cluster.world.sleep(3)
    assert placed(cluster, 0) == {ONE: 0, THREE: 0}
    assert set(state(cluster, TWO)[1]) == {1, 2}
    assert set(state(cluster, ONE)[1]) == {0, 1, 2}
    assert produce(cluster, 0, 1, b"x") == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_directory_that_cannot_be_read_goes_offline_too(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = two_directories()
    assert produce(cluster, 0, 1, b"x") == 0
    log = cluster.brokers[0].partitions[TWO].log
    file = log.locate(0, 1, 1, at_least_one=True).segment.file

    def broken(position: int, size: int) -> bytes:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(file, "read", broken)
    (answer,) = cluster.call(0, ApiKey.FETCH, 12, fetch_request("t", 0, partition=1))
    assert answer.responses[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    cluster.world.sleep(1)
    assert roles(cluster, 0) == ["leader", "offline", "leader"]
    assert state(cluster, TWO) == (1, (1, 2))


def test_clients_are_told_which_replicas_are_offline() -> None:
    cluster = two_directories()
    cluster.disk(0).failed.add("log-1")
    cluster.world.sleep(1)
    (answer,) = cluster.call(2, ApiKey.METADATA, 9, MetadataRequest([MetadataRequestTopic(name="t")]))
    offline = [one.offline_replicas for one in answer.topics[0].partitions]
    assert offline == [[], [0], []]
    assert [one.leader_id for one in answer.topics[0].partitions] == [0, 1, 0]


def test_whoever_asks_is_told_what_lies_where_and_what_has_failed() -> None:
    cluster = two_directories()
    assert produce(cluster, 0, 2, b"x") == 0
    (everything,) = cluster.call(0, ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest())
    first, second = everything.results
    assert [(one.name, [p.partition_index for p in one.partitions]) for one in first.topics] == [("t", [0, 2])]
    assert [(one.name, [p.partition_index for p in one.partitions]) for one in second.topics] == [("t", [1])]
    size = len(cluster.disk(0).read_bytes("log-0/t-2/00000000000000000000.log"))
    assert [one.partition_size for one in first.topics[0].partitions] == [0, size]
    assert (first.log_dir, second.log_dir) == ("/log-0", "/log-1")
    cluster.disk(0).failed.add("log-1")
    cluster.world.sleep(1)
    request = DescribeLogDirsRequest([DescribableLogDirTopic("t", [1, 2])])
    (some,) = cluster.call(0, ApiKey.DESCRIBE_LOG_DIRS, 1, request)
    assert [one.error_code for one in some.results] == [0, ErrorCode.KAFKA_STORAGE_ERROR]
    assert [p.partition_index for p in some.results[0].topics[0].partitions] == [2]
    assert some.results[1].topics == []


def test_a_new_topic_goes_to_a_directory_that_is_left() -> None:
    cluster = two_directories()
    cluster.disk(0).failed.add("log-0")
    cluster.world.sleep(1)
    (answer,) = cluster.call(1, ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest([NEW]))
    cluster.world.sleep(1)
    assert answer.topics[0].error_code == 0
    assert placed(cluster, 0)[TopicPartition("new", 0)] == 1


def test_a_replica_in_two_directories_is_an_error() -> None:
    cluster = two_directories()
    cluster.kill(0)
    disk = cluster.disk(0)
    disk.write_bytes("log-0/t-1/00000000000000000000.log", b"")
    cluster.start(0)
    cluster.world.sleep(1)
    assert cluster.exit_codes == {0: 1}
    assert any("t-1 lies in log directories 0 and 1" in line for line in cluster.said)


@pytest.mark.parametrize("mutant", [False, True])
def test_a_sole_replica_waits_for_its_disk_unless_it_is_made_anew_elsewhere(mutant: bool) -> None:
    overrides = {"recreated_elsewhere": "true"} if mutant else {}
    cluster = two_directories(replicas=(0,), overrides=overrides)
    assert produce(cluster, 0, 1, b"x", acks=1) == 0
    cluster.disk(0).failed.add("log-1")
    cluster.world.sleep(2)
    if mutant:
        assert state(cluster, TWO) == (0, (0,))
        assert placed(cluster, 0)[TWO] == 0
        assert cluster.brokers[0].partitions[TWO].replica.log_end_offset == 0
    else:
        assert state(cluster, TWO) == (-1, (0,))
        assert roles(cluster, 0) == ["leader", "offline", "leader"]


def test_a_replica_that_is_made_anew_follows_where_another_can_lead() -> None:
    cluster = two_directories(overrides={"recreated_elsewhere": "true"})
    assert produce(cluster, 0, 1, b"x") == 0
    cluster.disk(0).failed.add("log-1")
    cluster.world.sleep(2)
    assert placed(cluster, 0)[TWO] == 0
    assert state(cluster, TWO)[0] == 1
    ends = [cluster.brokers[node].partitions[TWO].replica.log_end_offset for node in range(3)]
    assert ends == [1, 1, 1]


@pytest.mark.parametrize("mutant", [False, True])
def test_a_broker_with_an_empty_disk_is_no_reason_to_forget_who_may_lead(mutant: bool) -> None:
    overrides = {"placing_forgets_eligible": "true"} if mutant else {}
    cluster = two_directories(knobs="4.1", replicas=(0, 1), overrides=overrides)
    assert produce(cluster, 0, 1, b"x") == 0
    cluster.node(1).shut_down()
    cluster.world.sleep(1)
    cluster.kill(0)
    cluster.disk(0).wipe()
    cluster.world.sleep(5)
    cluster.start(0)
    cluster.world.sleep(1)
    assert (*state(cluster, TWO), eligible(cluster)) == (-1, (), () if mutant else (1,))
    cluster.start(1)
    cluster.world.sleep(2)
    assert state(cluster, TWO)[0] == (0 if mutant else 1)
    ends = [cluster.brokers[node].partitions[TWO].replica.log_end_offset for node in range(2)]
    assert ends == ([0, 0] if mutant else [1, 1])


def test_the_controller_is_told_of_another_log_directory_until_it_has_heard_it() -> None:
    cluster = two_directories(knobs="4.1", replicas=(0, 1), overrides={"placing_forgets_eligible": "true"})
    cluster.node(1).shut_down()
    cluster.world.sleep(3)
    assert eligible(cluster) == (1,)
    cluster.kill(CONTROLLER_ID)
    cluster.brokers[0].controller.place(
        TWO.partition, topic_id(cluster.brokers[0].metadata.cluster_id, TWO.topic), bytes(16)
    )
    cluster.world.sleep(2)
    cluster.node(CONTROLLER_ID).start()
    cluster.world.sleep(3)
    assert eligible(cluster) == ()


def test_a_new_controller_hears_of_failed_directories_again() -> None:
    cluster = two_directories()
    cluster.disk(0).failed.add("log-1")
    cluster.world.sleep(1)
    cluster.kill(CONTROLLER_ID)
    cluster.node(CONTROLLER_ID).start()
    cluster.world.sleep(3)
    cluster.kill(1)
    cluster.kill(2)
    cluster.world.sleep(5)
    assert state(cluster, TWO)[0] == -1
    assert state(cluster, ONE)[0] == 0


def test_a_clean_shutdown_without_one_directory_was_not_clean_to_the_controller() -> None:
    cluster = two_directories(knobs="4.1")
    cluster.disk(0).failed.add("log-1")
    cluster.world.sleep(1)
    cluster.node(0).shut_down()
    cluster.disk(0).failed.clear()
    cluster.start(0)
    assert cluster.brokers[0].directories.previous_broker_epoch == -1
    assert [directory.clean for directory in cluster.brokers[0].directories] == [True, False]


def test_a_clean_shutdown_counts_only_where_all_directories_are_found_again() -> None:
    cluster = two_directories(knobs="4.1")
    cluster.node(0).shut_down()
    directories = cluster.start(0).directories
    assert directories.previous_broker_epoch >= 0
    next(iter(directories)).failure = errno.EIO  # it was read, but one of its logs could not be opened
    assert directories.previous_broker_epoch == -1
    cluster.node(0).shut_down()
    cluster.disk(0).failed.add("log-1")
    assert cluster.start(0).directories.previous_broker_epoch == -1


def test_with_zookeeper_a_clean_shutdown_without_one_directory_has_closed_the_session_all_the_same() -> None:
    cluster = two_directories(knobs="2.1")
    cluster.disk(0).failed.add("log-1")
    cluster.world.sleep(1)
    cluster.node(0).shut_down()
    cluster.disk(0).failed.clear()
    cluster.start(0)
    cluster.world.sleep(1)
    assert cluster.brokers[0].directories.previous_broker_epoch == cluster.brokers[0].controller.broker_epoch
    assert state(cluster, ONE)[0] == 0


def test_with_zookeeper_the_old_marker_of_a_directory_that_was_offline_says_nothing_of_the_last_shutdown() -> None:
    cluster = two_directories(knobs="2.1")
    cluster.node(0).shut_down()
    cluster.disk(0).failed.add("log-1")
    cluster.start(0)
    cluster.world.sleep(1)
    assert cluster.brokers[0].controller.registered
    cluster.kill(0)
    cluster.disk(0).failed.clear()
    cluster.start(0)
    cluster.world.sleep(1)
    assert [directory.clean for directory in cluster.brokers[0].directories] == [False, True]
    assert cluster.brokers[0].directories.previous_broker_epoch == -1
    assert not cluster.brokers[0].controller.registered


@pytest.mark.parametrize("count", [0, 17])
def test_there_is_at_least_one_directory_and_not_any_number(count: int) -> None:
    with pytest.raises(UsageError, match=r"log\.dirs\.count"):
        Settings.parse({"log.dirs.count": count})
