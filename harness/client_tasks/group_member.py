"""A consumer group member under orders: it reads up to the current end, and may commit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from harness.client_ports import (
    BEGINNING,
    MOVED_ERRORS,
    TRUNCATED,
    Bounds,
    ClientContext,
    Clients,
    CommittedOffset,
    Consumer,
    GroupOffsets,
)
from harness.client_tasks.deadline import Deadline
from harness.client_tasks.group_process import GroupProcess
from harness.client_tasks.polling import poll
from harness.history.lookups import begin_lookup, end_lookup
from harness.model import NO_EPOCH, Offset, ProcessId, TopicPartition
from harness.orders import CommitOrder, Consumed, ConsumeOrder, Done

Incident = Literal["reset", "out_of_range", "truncated", "unreachable"]

_POLL_S = 0.1
_LOOK_TIMEOUT_S = 1.0
_BACKOFF_S = 0.05
_TIMED_OUT = "_TIMED_OUT"


class GroupMember:
    """Carries one order out, partition after partition: their readers must not spoil each other's history."""

    def __init__(self, context: ClientContext, clients: Clients, order: ConsumeOrder) -> None:
        self._context = context
        self._clients = clients
        self._order = order
        self._process = GroupProcess(context.recorder, context.new_process, order.group)
        self._deadline = Deadline(clients, order.timeout_s)
        self._incident: Incident | None = None
        self._values: dict[TopicPartition, list[int | None]] = {name: [] for name in order.partitions}
        self._epochs: dict[TopicPartition, int] = {}
        self._positions: dict[TopicPartition, Offset] = {}

    async def read(self) -> Consumed:
        """Read, and commit if that is ordered."""
        group = self._clients.group(self._order.group)
        try:
            committed = await self._committed(group)
            for partition in self._order.partitions if committed is not None else ():
                await self._read(partition, committed.get(partition) if committed else None)
            if committed is None:
                self._incident = "unreachable"
            elif self._order.commit and self._positions:
                await self._commit(group)
        finally:
            group.close()
        return Consumed(self._incident, self._values, dict(self._positions))

    async def _committed(self, group: GroupOffsets) -> Mapping[TopicPartition, CommittedOffset] | None:
        """What the group has committed, if this member begins there; None when no coordinator answers in time."""
        if self._order.start != "committed":
            return {}
        while left_s := self._deadline.left_s():
            self._process.ask(self._order.partitions)
            answer = await group.committed(self._order.partitions, min(left_s, _LOOK_TIMEOUT_S))
            self._process.told(answer)
            if not isinstance(answer, str):
                return answer
            await self._clients.sleep(_BACKOFF_S)
        return None

    async def _commit(self, group: GroupOffsets) -> None:
        offsets = {
            name: CommittedOffset(offset, self._epochs.get(name, NO_EPOCH) if self._order.checks_epochs else NO_EPOCH)
            for name, offset in self._positions.items()
        }
        if await _commit(self._clients, group, self._process, offsets, self._deadline) is not None:
            self._incident = "unreachable"

    async def _read(self, partition: TopicPartition, committed: CommittedOffset | None) -> None:
        match self._order.start, committed:
            case "committed", CommittedOffset(offset, epoch):
                error = await self._read_from(partition, offset, epoch if self._order.checks_epochs else NO_EPOCH)
            case "committed", None:
                error = "_AUTO_OFFSET_RESET"
            case "beginning", _:
                error = await self._read_from(partition, BEGINNING)
            case "time", _:
                error = await self._read_from_time(partition)
            case _:
                error = await self._read_from(partition, None)
        if error == TRUNCATED and self._order.reset == "none":
            self._incident = "truncated"
        elif error in MOVED_ERRORS:
            await self._begin_anew(partition, error)
        elif error is not None:
            self._incident = "unreachable"

    async def _read_from_time(self, partition: TopicPartition) -> str | None:
        """Read from the first record on that is as young as ordered, or from the end; returns what ended it."""
        process, recorder = self._context.new_process(), self._context.recorder
        timestamp_ms = self._clients.wall_ms() - self._order.age_ms
        consumer = self._clients.consumer(str(process), {})
        op = begin_lookup(recorder, process, partition, timestamp_ms)
        try:
            found = await consumer.offset_for_time(partition, timestamp_ms, self._deadline.left_s())
        finally:
            consumer.close()
        end_lookup(recorder, op, found.offset, found.error)
        return found.error or await self._read_from(partition, found.offset)

    async def _begin_anew(self, partition: TopicPartition, why: str) -> None:
        if self._order.reset == "none":
            self._incident = "out_of_range"
            return
        self._incident = "truncated" if why == TRUNCATED else "reset"
        if await self._read_from(partition, BEGINNING if self._order.reset == "earliest" else None) is not None:
            self._incident = "unreachable"

    async def _read_from(self, partition: TopicPartition, start: Offset | None, epoch: int = NO_EPOCH) -> str | None:
        """Read from ``start``, None meaning the end, as a new process; returns the error that ended it."""
        process, recorder = self._context.new_process(), self._context.recorder
        where = {partition: BEGINNING if start is None else start}
        assigning = recorder.invoke(process, "assign", [partition], self._order.group)
        consumer = self._clients.consumer(str(process), where, {partition: epoch})
        recorder.complete(assigning, "ok")
        try:
            bounds = await self._bounds(partition, consumer)
            if bounds is None:
                return _TIMED_OUT
            if start is None:
                self._positions[partition] = bounds.end_offset
                return None
            first = bounds.start_offset if start == BEGINNING else start
            error = await self._poll(partition, first, bounds, (process, consumer), validates=epoch != NO_EPOCH)
            if error is None:
                self._positions[partition] = max(first, consumer.positions[partition])
            return error
        finally:
            consumer.close()

    async def _poll(
        self, partition: TopicPartition, first: Offset, bounds: Bounds, client: tuple[ProcessId, Consumer],
        *, validates: bool,
    ) -> str | None:  # fmt: skip
        """Poll until the end is reached, or an error comes: out of range it must, and at the very end it may."""
        process, consumer = client
        in_range = bounds.start_offset <= first <= bounds.end_offset
        least = Deadline(self._clients, _LOOK_TIMEOUT_S if validates and first == bounds.end_offset else 0.0)
        while not in_range or least.left_s() or max(first, consumer.positions[partition]) < bounds.end_offset:
            if not self._deadline.left_s():
                return _TIMED_OUT
            records, error, _ = await poll(
                self._context.recorder, process, consumer, final=False, group=self._order.group, wait_s=_POLL_S
            )
            for record in records:
                self._values[partition].append(record.value)
                self._epochs[partition] = NO_EPOCH if record.leader_epoch is None else record.leader_epoch
            if error is not None:
                return error
        return None

    async def _bounds(self, partition: TopicPartition, consumer: Consumer) -> Bounds | None:
        while left_s := self._deadline.left_s():
            bounds = await consumer.bounds(partition, min(left_s, _LOOK_TIMEOUT_S))
            if bounds is not None:
                return bounds
        return None


async def commit(context: ClientContext, clients: Clients, order: CommitOrder) -> Done:
    """Commit the offsets of ``order``; tries again until its time is over, for the coordinator may be moving."""
    deadline = Deadline(clients, order.timeout_s)
    group = clients.group(order.group)
    process = GroupProcess(context.recorder, context.new_process, order.group)
    offsets = {name: CommittedOffset(offset, order.leader_epoch) for name, offset in order.offsets.items()}
    try:
        return Done(await _commit(clients, group, process, offsets, deadline))
    finally:
        group.close()


async def _commit(
    clients: Clients,
    group: GroupOffsets,
    process: GroupProcess,
    offsets: Mapping[TopicPartition, CommittedOffset],
    deadline: Deadline,
) -> str | None:
    """Commit ``offsets``, again and again until it works or the time is up; the last error's name, None: it worked."""
    error: str | None = _TIMED_OUT
    while deadline.left_s():
        process.begin_commit(offsets)
        error = await group.commit(offsets)
        process.end_commit(error)
        if error is None:
            return None
        await clients.sleep(_BACKOFF_S)
    return error
