"""A follower's side of replication: one endless fetch per leader, for all partitions that it leads."""

from __future__ import annotations

from typing import NamedTuple, cast

from harness.broker.caller import Caller
from harness.broker.codes import replication_error
from harness.broker.kafka_time import kafka_time_ns
from harness.broker.partition import Partition
from harness.broker.segments import Batches, span_of
from harness.broker.settings import Address, NodeConfig
from harness.broker.surroundings import Surroundings
from harness.model import NO_OFFSET, NodeId, Offset, TopicPartition, node_name
from harness.replication.knobs import Knobs
from harness.replication.messages import EpochEnd, ErrorCode, FetchAnswered, NextFetch
from harness.wire import batches as wire
from harness.wire.declaration import Message
from harness.wire.errors import CorruptBatch
from harness.wire.keys import ApiKey
from harness.wire.messages import (
    LATEST_TIMESTAMP,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    PartitionData,
)

MAX_RESPONSE_BYTES = 10_485_760
"""Kafka's ``replica.fetch.response.max.bytes``."""

_LIST_OFFSETS_VERSION = 4


class _Asked(NamedTuple):
    """What was asked for one partition, and of which of its lives (a partition may be removed and added again)."""

    partition: Partition
    fetch: NextFetch


class Fetcher:
    """Fetches from one leader.

    A partition whose fetch failed, or brought batches that do not continue the log, is left out for
    ``replica.fetch.backoff.ms``; a lost or silent leader is asked again after the same time.
    """

    def __init__(self, config: NodeConfig, surroundings: Surroundings, leader: NodeId, address: Address) -> None:
        self._config = config
        self._network = surroundings.network
        self._clock = surroundings.clock
        self._say = surroundings.say
        self._leader = leader
        self._caller = Caller(surroundings.network, address, node_name(leader), f"replica-{config.node_id}")
        self._version = _fetch_version(config.knobs)
        self._partitions: dict[TopicPartition, Partition] = {}
        self._delayed: dict[TopicPartition, None] = {}
        self._stuck: dict[TopicPartition, NextFetch] = {}
        self._busy = False
        self._reached: bool | None = None

    @property
    def address(self) -> Address:
        """Where the leader is reached."""
        return self._caller.address

    def add(self, partition: Partition) -> None:
        """Fetch ``partition`` too, from the next request on."""
        self._partitions[partition.name] = partition
        self._start()

    def remove(self, name: TopicPartition) -> None:
        """Fetch ``name`` no more; hangs up after the last one."""
        self._partitions.pop(name, None)
        self._stuck.pop(name, None)
        if not self._partitions:
            self._caller.close()

    # ------------------------------------------------------------------------------------ the endless fetch

    def _start(self) -> None:
        if not self._busy:
            self._busy = True
            self._network.call_later(0, self._fetch)

    def _fetch(self) -> None:
        asked = {
            name: _Asked(partition, fetch)
            for name, partition in self._partitions.items()
            if name not in self._delayed
            and (fetch := partition.replica.next_fetch()) is not None
            and fetch.leader == self._leader
        }
        self._busy = bool(asked)
        if asked:
            timeout_s = self._config.settings.replica_socket_timeout_ms / 1000
            self._caller.call(
                ApiKey.FETCH, self._version, self._request(asked), timeout_s, lambda body: self._answered(asked, body)
            )

    def _request(self, asked: dict[TopicPartition, _Asked]) -> FetchRequest:
        settings = self._config.settings
        topics: dict[str, FetchTopic] = {}
        for name, (partition, fetch) in asked.items():
            part = FetchPartition(
                name.partition,
                fetch.leader_epoch,
                fetch.fetch_offset,
                fetch.last_fetched_epoch,
                partition.log.log_start_offset,
                settings.replica_fetch_max_bytes,
            )
            topics.setdefault(name.topic, FetchTopic(name.topic)).partitions.append(part)
        return FetchRequest(
            replica_id=self._config.node_id,
            max_wait_ms=settings.replica_fetch_wait_max_ms,
            min_bytes=1,
            max_bytes=MAX_RESPONSE_BYTES,
            topics=list(topics.values()),
        )

    def _answered(self, asked: dict[TopicPartition, _Asked], body: Message | None) -> None:
        response = cast("FetchResponse | None", body)
        self._note(reached=response is not None)
        if response is None or response.error_code:
            self._network.call_later(self._backoff_s, self._fetch)
            return
        for topic in response.responses:
            for data in topic.partitions:
                one = asked.get(TopicPartition(topic.topic, data.partition_index))
                if one is not None:
                    self._take(one, data)
        self._fetch()

    # ------------------------------------------------------------------------------------ one partition

    def _take(self, asked: _Asked, data: PartitionData) -> None:
        error = replication_error(data.error_code)
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._delay(asked.partition.name)
            self._ask_end(asked)
            return
        try:
            batches = _whole_batches(data.records)
        except CorruptBatch as corruption:
            self._say(f"Fetched corrupt data of {asked.partition.name} from broker {self._leader}: {corruption}.")
            self._delay(asked.partition.name)
            return
        if error is not ErrorCode.NONE:
            self._delay(asked.partition.name)
        self._feed(asked, error, data, batches)
        if batches.headers or data.diverging_epoch is not None:
            self._watch_progress(asked, batches)

    def _watch_progress(self, asked: _Asked, batches: Batches) -> None:
        """An answer that leaves the next fetch as it was would come again at once, and again."""
        name = asked.partition.name
        if asked.partition.replica.next_fetch() != asked.fetch:
            self._stuck.pop(name, None)
            return
        self._delay(name)
        if self._stuck.get(name) != asked.fetch:
            self._stuck[name] = asked.fetch
            self._say(
                f"Out of order offsets: {name} ends at {asked.fetch.fetch_offset}, where broker {self._leader} "
                f"has {[(header.base_offset, header.end_offset) for header in batches.headers[:1]]}; trying again."
            )

    def _feed(self, asked: _Asked, error: ErrorCode, data: PartitionData, batches: Batches) -> None:
        diverging = data.diverging_epoch
        asked.partition.handle(
            FetchAnswered(
                leader=asked.fetch.leader,
                leader_epoch=asked.fetch.leader_epoch,
                fetch_offset=asked.fetch.fetch_offset,
                error=error,
                high_watermark=data.high_watermark,
                log_start_offset=data.log_start_offset,
                log_end_offset=NO_OFFSET,
                diverging=None if diverging is None else EpochEnd(diverging.epoch, diverging.end_offset),
                spans=tuple(span_of(header) for header in batches.headers),
                payload=batches,
                now_ns=kafka_time_ns(self._clock),
            )
        )

    def _ask_end(self, asked: _Asked) -> None:
        """A follower that is out of range asks where the leader's log ends (``fetchOffsetAndTruncate``)."""
        name, fetch = asked.partition.name, asked.fetch
        part = ListOffsetsPartition(name.partition, fetch.leader_epoch, LATEST_TIMESTAMP)
        request = ListOffsetsRequest(self._config.node_id, topics=[ListOffsetsTopic(name.topic, [part])])
        timeout_s = self._config.settings.replica_socket_timeout_ms / 1000
        self._caller.call(
            ApiKey.LIST_OFFSETS,
            _LIST_OFFSETS_VERSION,
            request,
            timeout_s,
            lambda body: self._end_answered(asked, cast("ListOffsetsResponse | None", body)),
        )

    def _end_answered(self, asked: _Asked, response: ListOffsetsResponse | None) -> None:
        answers = [] if response is None else [one for topic in response.topics for one in topic.partitions]
        if answers and not answers[0].error_code:
            self._out_of_range(asked, answers[0].offset)

    def _out_of_range(self, asked: _Asked, leader_end: Offset) -> None:
        asked.partition.handle(
            FetchAnswered(
                leader=asked.fetch.leader,
                leader_epoch=asked.fetch.leader_epoch,
                fetch_offset=asked.fetch.fetch_offset,
                error=ErrorCode.OFFSET_OUT_OF_RANGE,
                high_watermark=NO_OFFSET,
                log_start_offset=NO_OFFSET,
                log_end_offset=leader_end,
                diverging=None,
                spans=(),
                payload=None,
                now_ns=kafka_time_ns(self._clock),
            )
        )

    # ------------------------------------------------------------------------------------ backing off

    @property
    def _backoff_s(self) -> float:
        return self._config.settings.replica_fetch_backoff_ms / 1000

    def _delay(self, name: TopicPartition) -> None:
        if name not in self._delayed:
            self._delayed[name] = None
            self._network.call_later(self._backoff_s, lambda: self._resume(name))

    def _resume(self, name: TopicPartition) -> None:
        self._delayed.pop(name, None)
        self._start()

    def _note(self, *, reached: bool) -> None:
        if reached != self._reached:
            self._reached = reached
            self._say(f"Replication from broker {self._leader} {'runs' if reached else 'is interrupted'}.")


def _fetch_version(knobs: Knobs) -> int:
    """The newest Fetch that the generation knows the fields of.

    12 says the last fetched epoch and hears of divergence (KIP-595), 9 and later say the current leader epoch
    (KIP-320), 4 says neither.
    """
    if knobs.truncation == "diverging_fetch":
        return 12
    return 11 if knobs.fetch_fencing else 4


def _whole_batches(records: bytes | bytearray | memoryview | None) -> Batches:
    """The whole batches of a fetch answer, which may end within one.

    Raises:
        CorruptBatch: what is there is no batch, or fails its checksum.
    """
    buffer = memoryview(records or b"")
    whole = buffer[: wire.complete_size(buffer)]
    headers = wire.headers(whole)
    for header in headers:
        if not wire.verify(whole, header):
            raise CorruptBatch(f"the batch at offset {header.base_offset} fails its checksum")
    return Batches(whole, headers)
