"""What a schedule has clients do besides sending: group members, commits, deletions, spoofed fetches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, Protocol, cast

from confluent_kafka import KafkaError

from harness.clients.group import CommittedOffset
from harness.clients.group_process import GroupProcess
from harness.clients.reader import BEGINNING, MOVED_ERRORS, Bounds
from harness.clients.spoofed_fetch import spoofed_request
from harness.history.orders import GAVE_UP, LOST
from harness.history.recorder import Recorder
from harness.model import NO_EPOCH, Offset, ProcessId, TopicPartition
from harness.simulation.stack.client import Call, Client, Silence
from harness.simulation.stack.polling import poll
from harness.simulation.stack.reading import Reader
from harness.simulation.stack.world import Address
from harness.wire.keys import ApiKey
from harness.wire.messages import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    FetchResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from harness.workload import CommitOrder, Consumed, ConsumeOrder, DeleteOrder, Done, SpoofedFetchOrder

Incident = Literal["reset", "out_of_range", "truncated", "unreachable"]

_FIND_COORDINATOR_VERSION = 2
_OFFSET_COMMIT_VERSION = 7
_OFFSET_FETCH_VERSION = 7
_DELETE_RECORDS_VERSION = 2
_FETCH_VERSION = 12
_HIGH_WATERMARK = -1
_ASK_TIMEOUT_S = 1.0
_BACKOFF_S = 0.05
_POLL_S = 0.1
_NS_PER_S = 1_000_000_000
_TRUNCATED = "_LOG_TRUNCATION"
_TIMED_OUT = "_TIMED_OUT"


class Around(Protocol):
    """What a member needs of its workload's surroundings."""

    @property
    def recorder(self) -> Recorder:
        """The history."""
        ...

    def new_process(self) -> ProcessId:
        """A process number that was never used before."""
        ...


# ---------------------------------------------------------------------------------------------------- groups' offsets


async def fetch_offsets(
    client: Client, process: GroupProcess, order: ConsumeOrder, deadline_ns: int
) -> dict[TopicPartition, CommittedOffset] | None:
    """What the group has committed, partitions without it left out; None when nobody says so in time."""
    topics: dict[str, list[int]] = {}
    for name in order.partitions:
        topics.setdefault(name.topic, []).append(name.partition)
    asked = [OffsetFetchRequestTopic(topic, numbers) for topic, numbers in topics.items()]
    request = OffsetFetchRequest(group_id=order.group, topics=asked)
    while client.world.now_ns < deadline_ns and not client.is_closed:
        call = Call(ApiKey.OFFSET_FETCH, _OFFSET_FETCH_VERSION, request, _ASK_TIMEOUT_S)
        process.ask(order.partitions)
        told = _told(cast("OffsetFetchResponse | None", await _ask_coordinator(client, order.group, call)))
        process.told(told)
        if not isinstance(told, str):
            return told
        await client.sleep(_BACKOFF_S)
    return None


def _told(answer: OffsetFetchResponse | None) -> dict[TopicPartition, CommittedOffset] | str:
    if answer is None or answer.error_code:
        return _TIMED_OUT if answer is None else KafkaError(answer.error_code).name()
    return {
        TopicPartition(topic.name, one.partition_index): CommittedOffset(
            one.committed_offset, one.committed_leader_epoch
        )
        for topic in answer.topics
        for one in topic.partitions
        if one.committed_offset >= 0
    }


async def commit_offsets(
    client: Client, process: GroupProcess, offsets: Mapping[TopicPartition, CommittedOffset], deadline_ns: int
) -> str | None:
    """Commit ``offsets``, again and again until it works or the time is up; the last error's name, None: it worked."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for name, (offset, epoch) in offsets.items():
        topics.setdefault(name.topic, []).append(OffsetCommitRequestPartition(name.partition, offset, epoch))
    told = [OffsetCommitRequestTopic(topic, partitions) for topic, partitions in topics.items()]
    request = OffsetCommitRequest(group_id=process.group, topics=told)
    error: str | None = _TIMED_OUT
    while client.world.now_ns < deadline_ns and not client.is_closed:
        call = Call(ApiKey.OFFSET_COMMIT, _OFFSET_COMMIT_VERSION, request, _ASK_TIMEOUT_S)
        process.begin_commit(offsets)
        answer = cast("OffsetCommitResponse | None", await _ask_coordinator(client, process.group, call))
        error = _TIMED_OUT
        if answer is not None:
            codes = [one.error_code for topic in answer.topics for one in topic.partitions if one.error_code]
            error = KafkaError(codes[0]).name() if codes else None
        process.end_commit(error)
        if error is None:
            return None
        await client.sleep(_BACKOFF_S)
    return error


async def commit(around: Around, client: Client, order: CommitOrder) -> Done:
    """Commit what ``order`` says."""
    process = GroupProcess(around.recorder, around.new_process, order.group)
    offsets = {name: CommittedOffset(offset, order.leader_epoch) for name, offset in order.offsets.items()}
    return Done(await commit_offsets(client, process, offsets, _deadline_ns(client, order.timeout_s)))


async def _ask_coordinator(client: Client, group: str, call: Call) -> object | None:
    """Find the group's coordinator and ask it; None when there is no answer."""
    wanted = FindCoordinatorRequest(key=group)
    found = await client.ask_anybody(Call(ApiKey.FIND_COORDINATOR, _FIND_COORDINATOR_VERSION, wanted, _ASK_TIMEOUT_S))
    if not isinstance(found, FindCoordinatorResponse) or found.error_code:
        return None
    answer = await client.ask((found.host, found.port), call)
    return None if isinstance(answer, Silence) else answer


# ---------------------------------------------------------------------------------------------------------- members


class GroupMember:
    """Carries one order out, partition after partition; see ``workloads.group_reading``."""

    def __init__(self, around: Around, new_client: Callable[[str], Client], order: ConsumeOrder) -> None:
        self._around = around
        self._new_client = new_client
        self._order = order
        self._client = new_client(order.group)
        self._process = GroupProcess(around.recorder, around.new_process, order.group)
        self._deadline_ns = _deadline_ns(self._client, order.timeout_s)
        self._incident: Incident | None = None
        self._values: dict[TopicPartition, list[int | None]] = {name: [] for name in order.partitions}
        self._epochs: dict[TopicPartition, int] = {}
        self._positions: dict[TopicPartition, Offset] = {}

    async def read(self) -> Consumed:
        """Read, and commit if that is ordered."""
        committed: dict[TopicPartition, CommittedOffset] | None = {}
        if self._order.start == "committed":
            committed = await fetch_offsets(self._client, self._process, self._order, self._deadline_ns)
        for partition in self._order.partitions if committed is not None else ():
            await self._read(partition, committed.get(partition) if committed else None)
        if committed is None:
            self._incident = "unreachable"
        elif self._order.commit and self._positions:
            await self._commit()
        return Consumed(self._incident, self._values, dict(self._positions))

    async def _commit(self) -> None:
        offsets = {
            name: CommittedOffset(offset, self._epochs.get(name, NO_EPOCH) if self._order.checks_epochs else NO_EPOCH)
            for name, offset in self._positions.items()
        }
        if await commit_offsets(self._client, self._process, offsets, self._deadline_ns) is not None:
            self._incident = "unreachable"

    async def _read(self, partition: TopicPartition, committed: CommittedOffset | None) -> None:
        match self._order.start, committed:
            case "committed", CommittedOffset(offset, epoch):
                error = await self._read_from(partition, offset, epoch if self._order.checks_epochs else NO_EPOCH)
            case "committed", None:
                error = "_AUTO_OFFSET_RESET"
            case "beginning", _:
                error = await self._read_from(partition, BEGINNING)
            case _:
                error = await self._read_from(partition, None)
        if error == _TRUNCATED and self._order.reset == "none":
            self._incident = "truncated"
        elif error in MOVED_ERRORS:
            await self._begin_anew(partition, error)
        elif error is not None:
            self._incident = "unreachable"

    async def _begin_anew(self, partition: TopicPartition, why: str | None) -> None:
        if self._order.reset == "none":
            self._incident = "out_of_range"
            return
        self._incident = "truncated" if why == _TRUNCATED else "reset"
        if await self._read_from(partition, BEGINNING if self._order.reset == "earliest" else None) is not None:
            self._incident = "unreachable"

    async def _read_from(self, partition: TopicPartition, start: Offset | None, epoch: int = NO_EPOCH) -> str | None:
        """Read from ``start``, None meaning the end, as a new process; returns the error that ended it."""
        process, recorder = self._around.new_process(), self._around.recorder
        where = {partition: BEGINNING if start is None else start}
        assigning = recorder.invoke(process, "assign", [partition], self._order.group)
        reader = Reader(self._new_client(str(process)), where, {partition: epoch})
        recorder.complete(assigning, "ok")
        try:
            bounds = await self._bounds(partition, reader)
            if bounds is None:
                return _TIMED_OUT
            if start is None:
                self._positions[partition] = bounds.end_offset
                return None
            first = bounds.start_offset if start == BEGINNING else start
            error = await self._poll(partition, first, bounds, (process, reader), validates=epoch != NO_EPOCH)
            if error is None:
                self._positions[partition] = max(first, reader.positions[partition])
            return error
        finally:
            reader.close()

    async def _poll(
        self, partition: TopicPartition, first: Offset, bounds: Bounds, who: tuple[ProcessId, Reader],
        *, validates: bool,
    ) -> str | None:  # fmt: skip
        """Poll until the end is reached, or an error comes: out of range it must, and at the very end it may."""
        process, reader = who
        world = self._client.world
        in_range = bounds.start_offset <= first <= bounds.end_offset
        least_ns = world.now_ns + (_NS_PER_S if validates and first == bounds.end_offset else 0)
        while not in_range or world.now_ns < least_ns or max(first, reader.positions[partition]) < bounds.end_offset:
            if world.now_ns >= self._deadline_ns or self._client.is_closed:
                return _TIMED_OUT
            records, error = await poll(
                self._around.recorder, process, reader, final=False, group=self._order.group, wait_s=_POLL_S
            )
            for record in records:
                self._values[partition].append(record.value)
                self._epochs[partition] = NO_EPOCH if record.leader_epoch is None else record.leader_epoch
            if error is not None:
                return error
        return None

    async def _bounds(self, partition: TopicPartition, reader: Reader) -> Bounds | None:
        while self._client.world.now_ns < self._deadline_ns and not self._client.is_closed:
            bounds = await reader.bounds(partition, _ASK_TIMEOUT_S)
            if bounds is not None:
                return bounds
        return None


# ------------------------------------------------------------------------------------------------------ single requests


async def delete_records(around: Around, client: Client, order: DeleteOrder) -> Done:
    """Ask the partitions' leaders to delete what is before an offset; they have half of the time that is left."""
    deadline_ns = _deadline_ns(client, order.timeout_s)
    for name in order.partitions:
        leader = await client.leader(name, deadline_ns)
        if leader is None:
            return Done(GAVE_UP)
        before = _HIGH_WATERMARK if order.before is None else order.before
        topic = DeleteRecordsTopic(name.topic, [DeleteRecordsPartition(name.partition, before)])
        left_s = (deadline_ns - client.world.now_ns) / _NS_PER_S
        request = DeleteRecordsRequest([topic], timeout_ms=round(left_s * 500))
        sent = around.recorder.orders.sent(name, order.before, request.timeout_ms)
        answer = await client.ask(leader.address, Call(ApiKey.DELETE_RECORDS, _DELETE_RECORDS_VERSION, request, left_s))
        if isinstance(answer, Silence):
            around.recorder.orders.ended(sent, GAVE_UP if answer is Silence.TIMED_OUT else LOST)
            return Done(GAVE_UP)
        told = cast("DeleteRecordsResponse", answer).topics[0].partitions[0]
        error = KafkaError(told.error_code).name() if told.error_code else None
        around.recorder.orders.ended(sent, error, told.low_watermark)
        if error is not None:
            return Done(error)
    return Done(None)


async def spoof_fetch(client: Client, address: Address, order: SpoofedFetchOrder) -> Done:
    """Fetch as a follower would; see :mod:`harness.clients.spoofed_fetch`."""
    call = Call(ApiKey.FETCH, _FETCH_VERSION, spoofed_request(order), order.timeout_s)
    answer = await client.ask(address, call)
    if isinstance(answer, Silence):
        return Done(f"no answer: {answer.name}")
    told = cast("FetchResponse", answer)
    codes = [told.error_code, *(part.error_code for topic in told.responses for part in topic.partitions)]
    return Done(next((f"error code {code}" for code in codes if code), None))


def _deadline_ns(client: Client, timeout_s: float) -> int:
    return client.world.now_ns + round(timeout_s * _NS_PER_S)
