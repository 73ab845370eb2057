"""A consumer in virtual time that acts as librdkafka does for :mod:`harness.clients.reader`."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple, cast

from confluent_kafka import KafkaError

from harness import payload
from harness.broker.codecs import inflate
from harness.client_ports import BEGINNING, MOVED_ERRORS, TRUNCATED, Bounds, Isolation, OffsetForTime, Polled
from harness.history.polls import OutOfRange
from harness.history.recorder import PolledRecord
from harness.model import NO_EPOCH, NO_OFFSET, Offset, TopicPartition
from harness.payload import StoredRecord
from harness.simulation.stack.client import Call, Client, Leader, Silence
from harness.simulation.stack.tasks import Promise, Task
from harness.wire import batches
from harness.wire.errors import CorruptBatch
from harness.wire.keys import ApiKey
from harness.wire.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from harness.wire.messages.offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    READ_COMMITTED,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

_FETCH_VERSION = 12
_LIST_OFFSETS_VERSION = 7
_OFFSET_FOR_LEADER_EPOCH_VERSION = 3
_MAX_WAIT_MS = 500
_MAX_BYTES = 1 << 20
_ASK_TIMEOUT_S = 3.0
_LOOK_TIMEOUT_S = 1.0
_BACKOFF_S = 0.05
_NS_PER_S = 1_000_000_000
_CLIENT = -1
_QUEUED_RECORDS = 1000

_ELSEWHERE = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
    }
)
"""After these a consumer finds the leader and fetches again, silently."""


class _Again(Enum):
    """How a consumer goes on."""

    HERE = auto()
    ELSEWHERE = auto()
    """After another look for the leader."""


class _Passed(NamedTuple):
    """A consumer has come to ``position``, past what it is not given: markers and aborted records."""

    partition: TopicPartition
    position: Offset


class _Failed(NamedTuple):
    """A consumer of a partition has met an error; ``out_of_range``: its position, if the error is about that."""

    error: str
    out_of_range: OutOfRange | None


class Reader:
    """One consumer of ``positions``, with ``auto.offset.reset=error``.

    Args:
        client: its connections; closed with it.
        positions: where it starts, by partition; ``BEGINNING`` stands for the first offset still held.
        epochs: of the records before the positions, where they are known: then they are validated (KIP-320).
        isolation: whether it is given records of transactions that are not committed.
    """

    def __init__(
        self,
        client: Client,
        positions: Mapping[TopicPartition, Offset],
        epochs: Mapping[TopicPartition, int] | None = None,
        isolation: Isolation = "read_uncommitted",
    ) -> None:
        self.positions = dict(positions)
        self.isolation = isolation
        self._client = client
        self._ready: deque[PolledRecord | _Passed | _Failed] = deque()
        self._arrival: Promise[None] | None = None
        self._room: list[Promise[None]] = []
        known = epochs or {}
        self._followers = [
            Task(self._follower(name, (offset, known.get(name, NO_EPOCH))).follow())
            for name, offset in sorted(self.positions.items())
        ]

    def _follower(self, name: TopicPartition, place: tuple[Offset, int]) -> _Follower:
        return _Follower(self._client, name, place, self.isolation, deliver=self._deliver, tell=self._tell)

    async def poll(self, max_records: int, timeout_s: float) -> Polled:
        """Wait up to ``timeout_s`` for up to ``max_records`` records; an error ends what is delivered."""
        if not self._ready:
            await self._next_arrival(timeout_s)
        records: list[PolledRecord] = []
        failed = None
        while self._ready and len(records) < max_records and failed is None:
            next_one = self._ready.popleft()
            if isinstance(next_one, _Failed):
                failed = next_one
            elif isinstance(next_one, _Passed):
                self.positions[next_one.partition] = next_one.position
            else:
                records.append(next_one)
                self.positions[TopicPartition(next_one.topic, next_one.partition)] = next_one.offset + 1
        room, self._room = self._room, []
        for promise in room:
            promise.keep(None)
        for follower in self._followers:
            follower.result()  # a bug in one of them must not look like silence
        return Polled(records, None) if failed is None else Polled(records, *failed)

    async def bounds(self, partition: TopicPartition, timeout_s: float) -> Bounds | None:
        """What there is to read of ``partition``, asked of its leader; None when it does not answer in time."""
        deadline_ns = self._client.world.now_ns + round(timeout_s * _NS_PER_S)
        ends = []
        for timestamp in (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP):
            leader = await self._client.leader(partition, deadline_ns)
            offset = None
            if leader is not None:
                offset = await list_offset(self._client, partition, leader, timestamp, self.isolation)
            if offset is None:
                self._client.forget_leader(partition)
                await self._client.sleep(_BACKOFF_S)
                return None
            ends.append(offset)
        return Bounds(*ends)

    async def offset_for_time(self, partition: TopicPartition, timestamp_ms: int, timeout_s: float) -> OffsetForTime:
        """The first offset whose record is as young; asks again until the leader has answered, or time is up."""
        deadline_ns = self._client.world.now_ns + round(timeout_s * _NS_PER_S)
        while self._client.world.now_ns < deadline_ns and not self._client.is_closed:
            leader = await self._client.leader(partition, deadline_ns)
            if leader is not None:
                offset = await list_offset(self._client, partition, leader, timestamp_ms, self.isolation)
                if offset is not None:
                    return OffsetForTime(None if offset == NO_OFFSET else offset)
            self._client.forget_leader(partition)
            await self._client.sleep(_BACKOFF_S)
        return OffsetForTime(None, "_TIMED_OUT")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    # ------------------------------------------------------------------------------------ what is ready

    async def _deliver(self, records: Sequence[PolledRecord | _Passed]) -> None:
        """Queue ``records``, and wait while there are enough."""
        self._tell(records)
        while len(self._ready) > _QUEUED_RECORDS and not self._client.is_closed:
            room: Promise[None] = Promise()
            self._room.append(room)
            await room

    def _tell(self, news: Sequence[PolledRecord | _Passed | _Failed]) -> None:
        self._ready += news
        if self._arrival is not None:
            self._arrival.keep(None)

    async def _next_arrival(self, timeout_s: float) -> None:
        arrival: Promise[None] = Promise()
        self._arrival = arrival
        timer = self._client.network.call_later(timeout_s, lambda: arrival.keep(None))
        await arrival
        timer.cancel()
        self._arrival = None


class _Follower:
    """Fetches one partition, from where its leader is, until it is closed or reports an error.

    Args:
        client: its connections.
        partition: which one.
        place: the position it starts at, and the epoch of the record before it (``NO_EPOCH``: not known).
        isolation: see :class:`Reader`.
        deliver: takes the records.
        tell: takes the error.
    """

    def __init__(
        self,
        client: Client,
        partition: TopicPartition,
        place: tuple[Offset, int],
        isolation: Isolation,
        *,
        deliver: Callable[[Sequence[PolledRecord | _Passed]], Awaitable[None]],
        tell: Callable[[list[_Failed]], None],
    ) -> None:
        self._client = client
        self._partition = partition
        self._position, self._epoch = place
        self._isolation = isolation
        self._deliver = deliver
        self._tell = tell
        self._validated_in = NO_EPOCH

    async def follow(self) -> None:
        """Fetch, and fetch again."""
        while not self._client.is_closed:
            leader = await self._client.leader(self._partition, self._client.world.now_ns + _NS_PER_S)
            if leader is None:
                continue
            outcome = await self._step(leader)
            if isinstance(outcome, str):
                place = OutOfRange(self._partition, self._position) if outcome in MOVED_ERRORS else None
                self._tell([_Failed(outcome, place)])
                return
            if outcome is _Again.ELSEWHERE:
                self._client.forget_leader(self._partition)
                await self._client.sleep(_BACKOFF_S)

    async def _step(self, leader: Leader) -> _Again | str:
        """One request; an error to tell, or how to go on."""
        if self._position == BEGINNING:
            found = await list_offset(self._client, self._partition, leader, EARLIEST_TIMESTAMP)
            self._position = BEGINNING if found is None else found
            return _Again.ELSEWHERE if found is None else _Again.HERE
        if self._epoch != NO_EPOCH and leader.epoch not in (NO_EPOCH, self._validated_in):
            return await self._validate(leader)
        return await self._fetch(leader)

    async def _validate(self, leader: Leader) -> _Again | str:
        """Ask a new leader whether it has what was read (KIP-320)."""
        part = OffsetForLeaderPartition(self._partition.partition, leader.epoch, self._epoch)
        request = OffsetForLeaderEpochRequest(_CLIENT, [OffsetForLeaderTopic(self._partition.topic, [part])])
        call = Call(ApiKey.OFFSET_FOR_LEADER_EPOCH, _OFFSET_FOR_LEADER_EPOCH_VERSION, request, _ASK_TIMEOUT_S)
        answer = await self._client.ask(leader.address, call)
        if isinstance(answer, Silence):
            return _Again.ELSEWHERE
        result = cast("OffsetForLeaderEpochResponse", answer).topics[0].partitions[0]
        if result.error_code:
            return _Again.ELSEWHERE
        if result.end_offset < self._position:
            return TRUNCATED
        self._validated_in = leader.epoch
        return _Again.HERE

    async def _fetch(self, leader: Leader) -> _Again | str:
        part = FetchPartition(self._partition.partition, leader.epoch, self._position, partition_max_bytes=_MAX_BYTES)
        request = FetchRequest(
            max_wait_ms=_MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=_MAX_BYTES,
            isolation_level=READ_COMMITTED if self._isolation == "read_committed" else 0,
            topics=[FetchTopic(self._partition.topic, partitions=[part])],
        )
        answer = await self._client.ask(leader.address, Call(ApiKey.FETCH, _FETCH_VERSION, request, _ASK_TIMEOUT_S))
        if isinstance(answer, Silence) or not (responses := cast("FetchResponse", answer).responses):
            return _Again.ELSEWHERE
        data = responses[0].partitions[0]
        if data.error_code in _ELSEWHERE:
            return _Again.ELSEWHERE
        if data.error_code == KafkaError.OFFSET_OUT_OF_RANGE:
            return "_AUTO_OFFSET_RESET"
        if data.error_code:
            return KafkaError(data.error_code).name()
        return await self._take(_records(self._partition, data, self._position, leader.epoch))

    async def _take(self, found: tuple[list[PolledRecord], Offset, int] | None) -> _Again | str:
        if found is None:
            return "_BAD_MSG"
        records, position, epoch = found
        if position > self._position:
            self._epoch = epoch
        passed = [_Passed(self._partition, position)] if position > max(self._position, _end_of(records)) else []
        self._position = max(self._position, position)
        if records or passed:
            await self._deliver([*records, *passed])
        return _Again.HERE


async def list_offset(
    client: Client, partition: TopicPartition, leader: Leader, timestamp: int, isolation: Isolation = "read_uncommitted"
) -> Offset | None:
    """The offset that ``timestamp`` stands for; None when the leader does not answer."""
    part = ListOffsetsPartition(partition.partition, leader.epoch, timestamp)
    level = READ_COMMITTED if isolation == "read_committed" else 0
    request = ListOffsetsRequest(_CLIENT, level, topics=[ListOffsetsTopic(partition.topic, [part])])
    answer = await client.ask(
        leader.address, Call(ApiKey.LIST_OFFSETS, _LIST_OFFSETS_VERSION, request, _LOOK_TIMEOUT_S)
    )
    if isinstance(answer, Silence):
        return None
    result = cast("ListOffsetsResponse", answer).topics[0].partitions[0]
    return None if result.error_code else result.offset


def _end_of(records: Sequence[PolledRecord]) -> Offset:
    return records[-1].offset + 1 if records else BEGINNING


def _records(
    partition: TopicPartition, data: PartitionData, position: Offset, named: int
) -> tuple[list[PolledRecord], Offset, int] | None:
    """The records of an answer from ``position`` on, where it ends, and in which leader epoch; None: it is damaged.

    ``named``: the leader epoch that the fetch named.
    """
    buffer = memoryview(data.records or b"")
    try:
        whole = buffer[: batches.complete_size(buffer)]
        headers = batches.headers(whole)
        if not all(batches.verify(whole, header) for header in headers):
            return None
        found = [
            _record(partition, record, header, named)
            for header in _given(headers, data.aborted_transactions or ())
            for record in batches.records(whole, header, inflate)
            if record.offset >= position
        ]
        return found, *((headers[-1].end_offset, headers[-1].leader_epoch) if headers else (position, NO_EPOCH))
    except CorruptBatch:
        return None


def _given(
    headers: Iterable[batches.BatchHeader], aborted: Iterable[AbortedTransaction]
) -> Iterator[batches.BatchHeader]:
    """The batches of records without those of aborted transactions, as Kafka's ``CompletedFetch`` finds them."""
    begins = deque(sorted(aborted, key=lambda one: one.first_offset))
    open_ids: set[int] = set()
    for header in headers:
        while begins and begins[0].first_offset < header.end_offset:
            open_ids.add(begins.popleft().producer_id)
        if header.attributes & batches.CONTROL:
            if header.marker is not None and not header.marker.commits:
                open_ids.discard(header.producer_id)
        elif not (header.attributes & batches.TRANSACTIONAL and header.producer_id in open_ids):
            yield header


def _record(partition: TopicPartition, record: batches.Record, header: batches.BatchHeader, named: int) -> PolledRecord:
    created = None if header.attributes & batches.LOG_APPEND_TIME else record.timestamp
    value, intact = payload.judge(StoredRecord(record.key, record.value, record.headers, created), partition)
    return PolledRecord(
        topic=partition.topic,
        partition=partition.partition,
        offset=record.offset,
        value=value,
        leader_epoch=header.leader_epoch if header.leader_epoch >= 0 else None,
        intact=intact,
        timestamp_ms=record.timestamp,
        current_leader_epoch=named if named >= 0 else None,
    )
