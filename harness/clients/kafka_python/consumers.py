"""Consumers of kafka-python: those of assigned partitions, and members of groups."""

from __future__ import annotations

import queue
import threading
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

from kafka import KafkaConsumer
from kafka.consumer.subscription_state import AsyncConsumerRebalanceListener
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.errors import KafkaError as Refused
from kafka.errors import KafkaTimeoutError, OffsetOutOfRangeError
from kafka.structs import TopicPartition as Place

from harness import payload
from harness.client_ports import (
    BEGINNING,
    LEFT_UNKNOWN,
    Begins,
    Bounds,
    CommitAnswered,
    CommittedOffset,
    Isolation,
    OffsetForTime,
    Polled,
)
from harness.clients import kafka_settings
from harness.clients.kafka_python.errors import made, name_of
from harness.clients.kafka_python.producers import written_offsets
from harness.clients.library import OnRebalance
from harness.errors import EnvironmentFault
from harness.history.polls import OutOfRange
from harness.history.recorder import Change, PolledRecord
from harness.membership import Membership
from harness.model import NO_EPOCH, NO_GENERATION, Offset, TopicPartition
from harness.payload import StoredRecord

_COMMIT_MS = 3000
_CLOSE_MS = 1000
_LOOK_S = 0.005
_CREATE_TIME = 0

_ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


def belonging(membership: Membership) -> dict[str, Any]:
    """The settings of a member of a group of the classic protocol."""
    settings = {**kafka_settings.belonging(membership), **kafka_settings.heartbeating(membership)}
    strategy = (_ASSIGNORS[membership.assignor],)
    return {**kafka_settings.underscored(settings), "partition_assignment_strategy": strategy}


def _polled(consumer: KafkaConsumer, max_records: int, timeout_s: float) -> Polled:
    try:
        found = consumer.poll(timeout_ms=int(timeout_s * 1000), max_records=max_records)
    except Refused as failed:
        places = failed.args[0] if isinstance(failed, OffsetOutOfRangeError) else {}
        found = [OutOfRange(TopicPartition(*place), position) for place, position in places.items()]
        return Polled([], name_of(failed), next(iter(found), None))
    return Polled([_record(one) for records in found.values() for one in records], None)


def _seek(consumer: KafkaConsumer, begins: Mapping[TopicPartition, Offset]) -> None:
    for name, offset in begins.items():
        if offset == BEGINNING:
            consumer.seek_to_beginning(Place(*name))
        else:
            consumer.seek(Place(*name), offset)


class Reader:
    """Implements :class:`harness.clients.library.Reader`; kafka-python begins at an offset without its epoch."""

    def __init__(
        self, settings: Mapping[str, Any], positions: Mapping[TopicPartition, Offset], isolation: Isolation
    ) -> None:
        self.positions = dict(positions)
        self.isolation = isolation
        self._consumer = made(KafkaConsumer, settings)
        self._consumer.assign([Place(*name) for name in positions])
        _seek(self._consumer, positions)

    def poll(self, max_records: int, timeout_s: float) -> Polled:
        """See :class:`harness.clients.library.Reader`."""
        polled = _polled(self._consumer, max_records, timeout_s)
        error = polled.error
        for name in self.positions:
            try:
                position = self._consumer.position(Place(*name), timeout_ms=0)
                self.positions[name] = self.positions[name] if position is None else position
            except KafkaTimeoutError:
                continue
            except Refused as failed:  # it says so once, as of a log that was truncated
                error = error or name_of(failed)
        return polled._replace(error=error)

    def bounds(self, partition: TopicPartition, timeout_s: float) -> Bounds:
        """See :class:`harness.clients.library.Reader`."""
        place, timeout_ms = Place(*partition), int(timeout_s * 1000)
        try:
            start = self._consumer.beginning_offsets([place], timeout_ms=timeout_ms)[place]
            return Bounds(start, self._consumer.end_offsets([place], timeout_ms=timeout_ms)[place])
        except Refused as failed:
            raise EnvironmentFault(f"the end of {partition} is not known: {name_of(failed)}.") from failed

    def offset_for_time(self, partition: TopicPartition, timestamp_ms: int, timeout_s: float) -> OffsetForTime:
        """See :class:`harness.client_ports.Consumer`."""
        place = Place(*partition)
        try:
            found = self._consumer.offsets_for_times({place: timestamp_ms}, timeout_ms=int(timeout_s * 1000))[place]
        except Refused as failed:
            return OffsetForTime(None, name_of(failed))
        return OffsetForTime(None if found is None else found.offset)

    def close(self) -> None:
        """See :class:`harness.clients.library.Reader`."""
        _close(self._consumer, 0)


class GroupOffsets:
    """Implements :class:`harness.clients.library.GroupOffsets`."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._consumer = made(KafkaConsumer, settings)

    def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: float
    ) -> dict[TopicPartition, CommittedOffset] | str:
        """See :class:`harness.clients.library.GroupOffsets`."""
        offsets: dict[TopicPartition, CommittedOffset] = {}
        try:
            for name in partitions:
                one = self._consumer.committed(Place(*name), metadata=True, timeout_ms=int(timeout_s * 1000))
                if one is not None and one.offset >= 0:
                    epoch = NO_EPOCH if one.leader_epoch is None else one.leader_epoch
                    offsets[name] = CommittedOffset(one.offset, epoch)
        except Refused as failed:
            return name_of(failed)
        return offsets

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> str | None:
        """See :class:`harness.clients.library.GroupOffsets`."""
        try:
            self._consumer.commit(written_offsets(offsets), timeout_ms=_COMMIT_MS)
        except Refused as failed:
            return name_of(failed)
        return None

    def close(self) -> None:
        """See :class:`harness.clients.library.GroupOffsets`."""
        _close(self._consumer, 0)


class Member(GroupOffsets):
    """Implements :class:`harness.clients.library.Member`.

    kafka-python learns of a rebalance in its event loop, which nothing may block: what is to happen then runs in a
    thread of its own, while the caller of the poll waits.
    """

    def __init__(self, settings: Mapping[str, Any], membership: Membership, rebalanced: OnRebalance) -> None:
        super().__init__(settings)
        self.positions: dict[TopicPartition, CommittedOffset] = {}
        self._rebalanced = rebalanced
        self._has: set[TopicPartition] = set()
        self._is_lost_in_doubt = False
        self._is_automatic = membership.commits.is_automatic
        self._answers: queue.SimpleQueue[tuple[CommitAnswered, str | None]] = queue.SimpleQueue()
        self._membership = self._consumer.group_metadata()
        pattern, listener = membership.pattern, _Listener(self, self._consumer)
        self._consumer.subscribe(() if pattern else membership.topics, pattern, listener)

    @property
    def generation(self) -> int:
        """See :class:`harness.clients.library.Member`."""
        with suppress(Refused):
            return int(self._consumer.group_metadata().generation_id)
        return NO_GENERATION

    @property
    def metadata(self) -> object:
        """See :class:`harness.clients.library.Member`: kafka-python's own description, of the last membership.

        Once it is out of the group, kafka-python describes it as no member, whose commits no coordinator fences.
        """
        described = self._consumer.group_metadata()
        if described.generation_id != NO_GENERATION:
            self._membership = described
        return self._membership

    def poll(self, max_records: int, timeout_s: float) -> Polled:
        """See :class:`harness.clients.library.Member`."""
        polled = _polled(self._consumer, max_records, timeout_s)
        self._serve_answers()
        for record in polled.records:
            name = TopicPartition(record.topic, record.partition)
            if name in self._has:
                self.positions[name] = CommittedOffset.after(record)
        if self._is_lost_in_doubt:
            return polled._replace(error=polled.error or LEFT_UNKNOWN)
        return polled

    def close(self) -> None:
        """See :class:`harness.clients.library.Member`."""
        _close(self._consumer, _CLOSE_MS, commits=self._is_automatic)
        self._serve_answers()

    def commit_async(self, offsets: Mapping[TopicPartition, CommittedOffset], answered: CommitAnswered) -> None:
        """See :class:`harness.clients.library.Member`."""

        def ended(_: object, result: object) -> None:
            error = name_of(result) if isinstance(result, Refused) else None
            self._answers.put((answered, error))

        try:
            self._consumer.commit_async(written_offsets(offsets), ended)
        except Refused as failed:
            answered(name_of(failed))

    def _serve_answers(self) -> None:
        with suppress(queue.Empty):
            while True:
                answered, error = self._answers.get_nowait()
                answered(error)

    def change(self, change: Change, places: Collection[Place]) -> None:
        """The group has given the member partitions, or takes them."""
        names = [TopicPartition(*place) for place in places]
        if change == "assigned":
            self._has.update(names)
        if change == "lost":
            self._forget(names)
        begins: Begins | None = None
        try:
            begins = self._rebalanced(change, names)
        finally:
            self._is_lost_in_doubt |= begins is None
            if change == "revoked":
                self._forget(names)
        if begins is None:
            self._consumer.pause(*places)
        else:
            _seek(self._consumer, {name: one.offset for name, one in begins.items()})

    def _forget(self, names: Iterable[TopicPartition]) -> None:
        for name in names:
            self._has.discard(name)
            self.positions.pop(name, None)


class _Listener(AsyncConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python is untyped
    """Lets a member act on each rebalance, in a thread of its own, and waits for its end."""

    def __init__(self, member: Member, consumer: KafkaConsumer) -> None:
        self._member = member
        self._loop = consumer._net  # noqa: SLF001 (nothing else can wait in it)

    async def on_partitions_assigned(self, assigned: Collection[Place]) -> None:
        """Called by kafka-python."""
        await self._ask("assigned", assigned)

    async def on_partitions_revoked(self, revoked: Collection[Place]) -> None:
        """Called by kafka-python."""
        if revoked:
            await self._ask("revoked", revoked)

    async def on_partitions_lost(self, lost: Collection[Place]) -> None:
        """Called by kafka-python."""
        await self._ask("lost", lost)

    async def _ask(self, change: Change, places: Collection[Place]) -> None:
        failures: list[BaseException] = []

        def ask() -> None:
            try:
                self._member.change(change, places)
            except BaseException as failure:  # noqa: BLE001 (raised again in the event loop)
                failures.append(failure)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        while thread.is_alive():
            await self._loop.sleep(_LOOK_S)
        if failures:
            raise failures[0]


def _close(consumer: KafkaConsumer, timeout_ms: int, *, commits: bool = False) -> None:
    with suppress(Refused):
        consumer.close(autocommit=commits, timeout_ms=timeout_ms)


def _record(record: Any) -> PolledRecord:
    created_ms = record.timestamp if record.timestamp_type == _CREATE_TIME else None
    stored = StoredRecord(record.key, record.value, list(record.headers), created_ms)
    found, intact = payload.judge(stored, TopicPartition(record.topic, record.partition))
    epoch = record.leader_epoch if record.leader_epoch is not None and record.leader_epoch >= 0 else None
    known_ms = record.timestamp if record.timestamp is not None and record.timestamp >= 0 else None
    return PolledRecord(record.topic, record.partition, record.offset, found, epoch, intact, known_ms)
