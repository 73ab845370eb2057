"""Two unmodified brokers in virtual time: what their handlers answer, with 15 records of which 8 are committed."""

from __future__ import annotations

from typing import Any

from harness.broker.caller import Caller
from harness.broker.settings import Settings
from harness.model import CONTROLLER, node_id
from harness.replication.knobs import CURRENT_GENERATION
from harness.simulation.stack.cluster import Request, SimulatedCluster, listener
from harness.simulation.stack.scheduler import VirtualScheduler
from harness.wire import batches as wire
from harness.wire.declaration import Message
from harness.wire.keys import ApiKey
from harness.wire.messages.control import LeaderAndIsrPartitionState, LeaderAndIsrRequest, LeaderAndIsrTopicState
from harness.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from harness.wire.messages.offsets import (
    LATEST_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from harness.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from harness.wire.messages.topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from tests.seeds.clusters import knobs_of

TOPIC = "ledger"
HOUR_MS = 3_600_000
FETCH_WAIT_MS = Settings().replica_fetch_wait_max_ms


def started(name: str = CURRENT_GENERATION, **knobs: Any) -> SimulatedCluster:
    """Broker 0 leads, and whatever becomes of 1, it is in sync for an hour still. Nothing is written yet."""
    settings = Settings(
        default_replication_factor=2, replica_lag_time_max_ms=HOUR_MS, broker_session_timeout_ms=HOUR_MS
    )
    cluster = SimulatedCluster(VirtualScheduler(), 2, knobs_of(name, **knobs), settings)
    cluster.start()
    cluster.world.sleep(1)
    topic = CreatableTopic(TOPIC, -1, -1, [CreatableReplicaAssignment(0, [0, 1])])
    created = ask(cluster, "0", ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest([topic]))
    assert created.topics[0].error_code == 0
    cluster.world.sleep(1)
    return cluster


def fifteen_records(name: str = CURRENT_GENERATION) -> SimulatedCluster:
    """8 records are committed; broker 1 is frozen when the other 7 are written."""
    cluster = started(name)
    for offset in range(8):
        assert produce(cluster, offset, acks=-1) == offset
    cluster.nodes["1"].freeze()
    for offset in range(8, 15):
        assert produce(cluster, offset, acks=1) == offset
    return cluster


def ask(cluster: SimulatedCluster, broker: str, key: ApiKey, version: int, body: Message) -> Any:
    """What ``broker`` answers a client."""
    return cluster.ask(broker, Request(key, version, body))


def high_watermark(cluster: SimulatedCluster, broker: str) -> int:
    """As that broker believes."""
    [replica] = cluster.nodes[broker].status()["replicas"]
    watermark: int = replica["high_watermark"]
    return watermark


def produce(cluster: SimulatedCluster, number: int, *, acks: int) -> int:
    """The offset of a batch of one record."""
    data = TopicProduceData(TOPIC, partition_data=[PartitionProduceData(0, wire.build([b"m%d" % number]))])
    answer = ask(cluster, "0", ApiKey.PRODUCE, 9, ProduceRequest(acks=acks, timeout_ms=9_000, topic_data=[data]))
    offset: int = answer.responses[0].partition_responses[0].base_offset
    return offset


def fetch(cluster: SimulatedCluster, broker: str, offset: int, *, committed: bool = False) -> Any:
    """A consumer's fetch, ``read_committed`` or ``read_uncommitted``, that does not wait: its answer's partition."""
    part = FetchPartition(0, -1, offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=int(committed),
        topics=[FetchTopic(TOPIC, partitions=[part])],
    )
    return ask(cluster, broker, ApiKey.FETCH, 12, request).responses[0].partitions[0]


def offsets(partition: Any) -> list[int]:
    """Those of the records in a fetch's answer."""
    return [
        offset for header in wire.headers(partition.records) for offset in range(header.base_offset, header.end_offset)
    ]


def latest(cluster: SimulatedCluster, broker: str) -> Any:
    """What ListOffsets says is the end, for consumers."""
    asked = ListOffsetsTopic(TOPIC, [ListOffsetsPartition(0, -1, LATEST_TIMESTAMP)])
    answer = ask(cluster, broker, ApiKey.LIST_OFFSETS, 5, ListOffsetsRequest(-1, topics=[asked]))
    return answer.topics[0].partitions[0]


def epoch_end(cluster: SimulatedCluster, broker: str, topic: str, epoch: int) -> tuple[int, int, int]:
    """What OffsetForLeaderEpoch says: error, epoch, end offset."""
    asked = OffsetForLeaderTopic(topic, [OffsetForLeaderPartition(0, -1, epoch)])
    answer = ask(cluster, broker, ApiKey.OFFSET_FOR_LEADER_EPOCH, 3, OffsetForLeaderEpochRequest(-1, [asked]))
    [found] = answer.topics[0].partitions
    return found.error_code, found.leader_epoch, found.end_offset


def command(cluster: SimulatedCluster, broker: str, *, controller_epoch: int, leader: int, leader_epoch: int) -> int:
    """The error with which ``broker`` answers a controller that names another leader."""
    state = LeaderAndIsrPartitionState(0, controller_epoch, leader, leader_epoch, [0, 1], leader_epoch, [0, 1])
    topic = LeaderAndIsrTopicState(TOPIC, [state])
    answers: list[Any] = []
    caller = Caller(cluster.network(CONTROLLER), listener(node_id(broker)), broker, "another controller")
    caller.call(ApiKey.LEADER_AND_ISR, 4, LeaderAndIsrRequest(100, controller_epoch, -1, [topic]), 9, answers.append)
    cluster.world.sleep(1)
    caller.close()
    error: int = answers[0].error_code
    return error


def leads(cluster: SimulatedCluster, broker: str) -> bool:
    """Whether that broker believes that it leads."""
    [replica] = cluster.nodes[broker].status()["replicas"]
    return bool(replica["role"] == "leader")
