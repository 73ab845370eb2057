"""A follower's replica fetcher: it fetches all partitions of one leader, round after round.

Each partition is either *truncating*, while it must ask the leader where an epoch ends (KIP-101), or *fetching*. As
Kafka's fetcher threads do, every round asks for all that truncate first, and then fetches all that do not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

from harness.broker.caller import Caller
from harness.broker.codes import replication_error
from harness.broker.injected_bugs import replicated
from harness.broker.kafka_time import kafka_time_ns
from harness.broker.partition import Partition
from harness.broker.ports import Network
from harness.broker.segments import Batches, span_of
from harness.broker.settings import Address, NodeConfig
from harness.broker.topic_ids import topic_id
from harness.clock import Clock
from harness.error_codes import ErrorCode
from harness.model import NO_EPOCH, NO_OFFSET, NodeId, Offset, TopicPartition, node_name
from harness.replication.knobs import Knobs
from harness.replication.messages import EpochEnd, EpochEndAnswered, FetchAnswered, NextEpochLookup, NextFetch
from harness.wire import batches as wire
from harness.wire.declaration import Message
from harness.wire.errors import CorruptBatch
from harness.wire.keys import ApiKey
from harness.wire.messages.fetch import (
    NO_HIGH_WATERMARK,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from harness.wire.messages.offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    EpochEndOffset,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

MAX_RESPONSE_BYTES = 10_485_760
"""Kafka's ``replica.fetch.response.max.bytes``."""

_LIST_OFFSETS_VERSION = 4
_TOPIC_IDS_SINCE = 13
_UNKNOWN_END = EpochEnd(NO_EPOCH, NO_OFFSET)


class _Asked(NamedTuple):
    """What was asked for one partition, and of which of its lives (a partition may be removed and added again)."""

    partition: Partition
    fetch: NextFetch


class _LookedUp(NamedTuple):
    """Likewise, for a partition that truncates."""

    partition: Partition
    lookup: NextEpochLookup


class Fetcher:
    """Fetches from one leader.

    A partition whose request failed is left out for ``replica.fetch.backoff.ms``; a lost or silent leader is asked
    again after the same time. A partition whose fetch was fenced, or brought batches that do not continue the log,
    has *failed*, as in Kafka: it is left out until the controller sends its leader again.

    Args:
        config: this broker's.
        leader: its id.
        address: where the leader is reached.
        network: the port.
        clock: the port.
        say: takes one line for the operator.
        broker_epoch: returns this broker's epoch.
    """

    def __init__(
        self,
        config: NodeConfig,
        leader: NodeId,
        address: Address,
        *,
        network: Network,
        clock: Clock,
        say: Callable[[str], None],
        broker_epoch: Callable[[], int],
    ) -> None:
        self._config = config
        self._broker_epoch = broker_epoch
        self._network = network
        self._clock = clock
        self._say = say
        self._leader = leader
        self._caller = Caller(network, address, node_name(leader), f"replica-{config.node_id}")
        self._version = _fetch_version(config.knobs)
        self._lookup_version = _lookup_version(config.knobs)
        self._partitions: dict[TopicPartition, Partition] = {}
        self._delayed: dict[TopicPartition, None] = {}
        self._stuck: dict[TopicPartition, NextFetch] = {}
        self._failed: dict[TopicPartition, None] = {}
        self._busy = False
        self._reached: bool | None = None

    @property
    def address(self) -> Address:
        """Where the leader is reached."""
        return self._caller.address

    def add(self, partition: Partition) -> None:
        """Fetch ``partition`` too, from the next request on."""
        self._partitions[partition.name] = partition
        self._failed.pop(partition.name, None)
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
        """One round: look up epochs, for truncating ones; then fetch."""
        wanted = [
            (name, partition, request)
            for name, partition in self._partitions.items()
            if name not in self._delayed
            and name not in self._failed
            and (request := partition.replica.next_request()) is not None
            and request.leader == self._leader
        ]
        self._busy = bool(wanted)
        lookups = {
            name: _LookedUp(partition, request)
            for name, partition, request in wanted
            if isinstance(request, NextEpochLookup)
        }
        if lookups:
            self._look_up(lookups)
        elif wanted:
            self._ask(
                {
                    name: _Asked(partition, request)
                    for name, partition, request in wanted
                    if isinstance(request, NextFetch)
                }
            )

    def _ask(self, asked: dict[TopicPartition, _Asked]) -> None:
        self._caller.call(
            ApiKey.FETCH, self._version, self._request(asked), self._timeout_s, lambda body: self._answered(asked, body)
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
                high_watermark=NO_HIGH_WATERMARK if fetch.high_watermark == NO_OFFSET else fetch.high_watermark,
            )
            topic = topics.setdefault(name.topic, FetchTopic(name.topic, self._id_of(partition)))
            topic.partitions.append(part)
        return FetchRequest(
            replica_id=self._config.node_id,
            replica_state=ReplicaState(self._config.node_id, self._broker_epoch()),
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
        names = {self._id_of(partition): partition.name.topic for partition, _ in asked.values()}
        for topic in response.responses:
            named = topic.topic if self._version < _TOPIC_IDS_SINCE else names.get(topic.topic_id)
            for data in topic.partitions:
                one = asked.get(TopicPartition(named or "", data.partition_index))
                if one is not None:
                    self._take(one, data)
        self._fetch()

    def _id_of(self, partition: Partition) -> bytes:
        return topic_id(self._config.cluster_id, partition.name.topic, partition.incarnation)

    # ------------------------------------------------------------------------------------ truncating

    def _look_up(self, asked: dict[TopicPartition, _LookedUp]) -> None:
        topics: dict[str, OffsetForLeaderTopic] = {}
        for name, (_, lookup) in asked.items():
            part = OffsetForLeaderPartition(name.partition, lookup.leader_epoch, lookup.requested_epoch)
            topics.setdefault(name.topic, OffsetForLeaderTopic(name.topic)).partitions.append(part)
        request = OffsetForLeaderEpochRequest(self._config.node_id, list(topics.values()))
        self._caller.call(
            ApiKey.OFFSET_FOR_LEADER_EPOCH,
            self._lookup_version,
            request,
            self._timeout_s,
            lambda body: self._looked_up(asked, body),
        )

    def _looked_up(self, asked: dict[TopicPartition, _LookedUp], body: Message | None) -> None:
        response = cast("OffsetForLeaderEpochResponse | None", body)
        self._note(reached=response is not None)
        if response is None:
            self._network.call_later(self._backoff_s, self._fetch)
            return
        answers = {
            TopicPartition(topic.topic, one.partition): one for topic in response.topics for one in topic.partitions
        }
        for name, one in asked.items():
            self._take_end(one, answers.get(name) or EpochEndOffset(ErrorCode.REQUEST_TIMED_OUT, name.partition))
        self._fetch()

    def _take_end(self, asked: _LookedUp, answer: EpochEndOffset) -> None:
        """Hand the answer over; if it did not help, retry after a while, unless it is fenced."""
        (partition, lookup), error = asked, replication_error(answer.error_code)
        if error is ErrorCode.FENCED_LEADER_EPOCH:
            self._fail(partition, lookup.leader_epoch, "its leader is in a newer epoch")
        elif error is not ErrorCode.NONE:
            self._delay(partition.name)
        end = _UNKNOWN_END if error is not ErrorCode.NONE else EpochEnd(answer.leader_epoch, answer.end_offset)
        partition.handle(
            EpochEndAnswered(
                leader=lookup.leader,
                leader_epoch=lookup.leader_epoch,
                requested_epoch=lookup.requested_epoch,
                error=error,
                end=end,
                now_ns=kafka_time_ns(self._clock),
            )
        )

    # ------------------------------------------------------------------------------------ one partition

    def _take(self, asked: _Asked, data: PartitionData) -> None:
        error = replication_error(data.error_code)
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._delay(asked.partition.name)
            self._ask_end(asked)
            return
        try:
            batches = _whole_batches(data.records, checked="follower_skips_crc" not in self._config.knobs.bugs)
        except CorruptBatch as corruption:
            self._say(f"Fetched corrupt data of {asked.partition.name} from broker {self._leader}: {corruption}.")
            self._delay(asked.partition.name)
            return
        if self._config.knobs.bugs:
            batches = replicated(self._config.knobs, batches)
        if error is ErrorCode.FENCED_LEADER_EPOCH:
            self._fail(asked.partition, asked.fetch.leader_epoch, "its leader is in a newer epoch")
        elif error is not ErrorCode.NONE:
            self._delay(asked.partition.name)
        self._feed(asked, error, data, batches)
        if batches.headers or data.diverging_epoch is not None:
            self._watch_progress(asked, batches)

    def _watch_progress(self, asked: _Asked, batches: Batches) -> None:
        """An answer that leaves the next fetch as it was would come again at once, and again."""
        partition, fetch = asked
        if partition.replica.next_request() != fetch:
            self._stuck.pop(partition.name, None)
        elif batches.headers:
            first = batches.headers[0]
            self._fail(
                partition,
                fetch.leader_epoch,
                f"out of order offsets: it ends at {fetch.fetch_offset}, where broker {self._leader} has a batch from "
                f"{first.base_offset} to {first.end_offset}",
            )
        else:
            self._delay(partition.name)
            if self._stuck.get(partition.name) != fetch:
                self._stuck[partition.name] = fetch
                self._say(f"Broker {self._leader} sees {partition.name} diverge, but nothing can be cut; trying again.")

    def _fail(self, partition: Partition, leader_epoch: int, reason: str) -> None:
        """Replicate ``partition`` no more, unless its leader epoch has changed (``FailedPartitions`` of Kafka)."""
        if leader_epoch in (NO_EPOCH, partition.replica.leader_epoch):
            self._failed[partition.name] = None
            self._say(
                f"Replication of {partition.name} has failed in epoch {partition.replica.leader_epoch}: {reason}."
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
        """A follower that is out of range asks where the leader's log ends, and where it starts.

        Kafka's asks the second question after the answer to the first, and not always; the answers are the same.
        """
        ends: list[Offset] = []

        def started(start: Offset) -> None:
            if ends:
                self._out_of_range(asked, start, ends[0])

        self._list_offset(asked, LATEST_TIMESTAMP, ends.append)
        self._list_offset(asked, EARLIEST_TIMESTAMP, started)

    def _list_offset(self, asked: _Asked, timestamp: int, found: Callable[[Offset], None]) -> None:
        """Call ``found`` if the leader answers."""

        def answered(body: Message | None) -> None:
            response = cast("ListOffsetsResponse | None", body)
            answers = [] if response is None else [one for topic in response.topics for one in topic.partitions]
            if answers and not answers[0].error_code:
                found(answers[0].offset)

        name = asked.partition.name
        part = ListOffsetsPartition(name.partition, asked.fetch.leader_epoch, timestamp)
        request = ListOffsetsRequest(self._config.node_id, topics=[ListOffsetsTopic(name.topic, [part])])
        self._caller.call(ApiKey.LIST_OFFSETS, _LIST_OFFSETS_VERSION, request, self._timeout_s, answered)

    def _out_of_range(self, asked: _Asked, leader_start: Offset, leader_end: Offset) -> None:
        asked.partition.handle(
            FetchAnswered(
                leader=asked.fetch.leader,
                leader_epoch=asked.fetch.leader_epoch,
                fetch_offset=asked.fetch.fetch_offset,
                error=ErrorCode.OFFSET_OUT_OF_RANGE,
                high_watermark=NO_OFFSET,
                log_start_offset=leader_start,
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

    @property
    def _timeout_s(self) -> float:
        return self._config.settings.replica_socket_timeout_ms / 1000

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

    18 has the follower's high watermark (KIP-1166), 15 its broker epoch (KIP-903), 12 its last fetched epoch, and in
    the answer divergence (KIP-595); 9 and later have the current leader epoch (KIP-320); 5 has the leader's log start
    (KIP-107).
    """
    versions = (
        (knobs.hw_advance == "after_followers", 18),
        (knobs.broker_epoch_check, 15),
        (knobs.truncation == "diverging_fetch", 12),
        (knobs.fetch_fencing, 11),
        (knobs.truncation in ("epoch_offset", "epoch_pair"), 5),
    )
    return next((version for applies, version in versions if applies), 4)


def _lookup_version(knobs: Knobs) -> int:
    """The OffsetForLeaderEpoch of the generation.

    3 has the current leader epoch (KIP-320); the answer to 1 names the epoch whose end it gives (KIP-279).
    """
    if knobs.lookup_fencing:
        return 3
    return 0 if knobs.truncation == "epoch_offset" else 1


def _whole_batches(records: bytes | bytearray | memoryview | None, *, checked: bool) -> Batches:
    """The whole batches of a fetch answer, which may end within one.

    Raises:
        CorruptBatch: what is there is no batch, or fails its checksum.
    """
    buffer = memoryview(records or b"")
    whole = buffer[: wire.complete_size(buffer)]
    headers = wire.headers(whole)
    for header in headers:
        if checked and not wire.verify(whole, header):
            raise CorruptBatch(f"the batch at offset {header.base_offset} fails its checksum")
    return Batches(whole, headers)
