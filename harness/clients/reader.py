"""A consumer of assigned partitions, from given positions; it never skips records silently."""

from __future__ import annotations

import logging
from collections.abc import Mapping, MutableMapping
from typing import cast

from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    Message,
)
from confluent_kafka import TopicPartition as Assigned

from harness import payload
from harness.client_ports import MOVED_ERRORS, TRUNCATED, Bounds, Isolation, OffsetForTime, Polled
from harness.client_properties import Access
from harness.clients.group import assigned
from harness.clients.librdkafka import ClientError, Configuration, calling, closed, configuration, made
from harness.errors import EnvironmentFault
from harness.history.polls import OutOfRange
from harness.history.recorder import PolledRecord
from harness.model import NO_EPOCH, Offset, TopicPartition
from harness.payload import Headers, StoredRecord

_TRUNCATION_TEXT = "log truncation detected"


class Reader:
    """One consumer of ``positions``: the partitions it reads and the offset at which it starts on each.

    It has ``auto.offset.reset=error``: when its position is out of range, a poll reports it instead of going on
    somewhere else. Where ``epochs`` knows the leader epoch of the record before the position, that is validated
    first (KIP-320).
    """

    def __init__(
        self,
        access: Access,
        client_id: str,
        positions: Mapping[TopicPartition, Offset],
        log: logging.Logger,
        *,
        epochs: Mapping[TopicPartition, int] | None = None,
        isolation: Isolation = "read_uncommitted",
    ) -> None:
        self.positions = dict(positions)
        self.isolation = isolation
        self._consumer = made(
            Consumer,
            {
                **configuration(access, client_id, log),
                **reading(isolation),
                "enable.partition.eof": True,
                "group.id": client_id,
            },
        )
        known = epochs or {}
        self._consumer.assign(
            [assigned(name, offset, known.get(name, NO_EPOCH)) for name, offset in sorted(self.positions.items())]
        )

    def poll(self, max_records: int, timeout_s: float) -> Polled:
        """Wait up to ``timeout_s`` for up to ``max_records`` records.

        What librdkafka has drawn from its queue before it fails as a whole is lost: the caller takes a new
        reader from :attr:`positions`, as after any other error.
        """
        ends: dict[TopicPartition, Offset] = {}
        polled = consumed(self._consumer, max_records, timeout_s, ends)
        reached = {record[:2]: record.offset + 1 for record in polled.records}
        self.positions |= {TopicPartition(*place): position for place, position in reached.items()}
        self.positions |= {place: max(end, self.positions[place]) for place, end in ends.items()}
        return polled

    def bounds(self, partition: TopicPartition, timeout_s: float) -> Bounds:
        """What there is to read of ``partition``, asked of its leader.

        Raises:
            EnvironmentFault: no leader answered within ``timeout_s``.
        """
        asked = Assigned(partition.topic, partition.partition)
        try:
            with calling():
                answer = self._consumer.get_watermark_offsets(asked, timeout=timeout_s, cached=False)
        except ClientError as refused:
            raise EnvironmentFault(f"the end of {partition} is not known: {refused.name}.") from None
        if answer is None:
            raise EnvironmentFault(f"the end of {partition} is not known: no answer in {timeout_s:g} s.")
        return Bounds(*map(int, answer))

    def offset_for_time(self, partition: TopicPartition, timestamp_ms: int, timeout_s: float) -> OffsetForTime:
        """See :class:`harness.client_ports.Consumer`; librdkafka answers with the log's end where no record is."""
        try:
            with calling():
                [found] = self._consumer.offsets_for_times([Assigned(*partition, timestamp_ms)], timeout=timeout_s)
        except ClientError as refused:
            return OffsetForTime(None, refused.name)
        if found.error is not None:
            return OffsetForTime(None, _name(found.error))
        return OffsetForTime(found.offset if found.offset >= 0 else None)

    def close(self) -> None:
        """Close the connections."""
        closed(self._consumer)


def reading(isolation: Isolation) -> Configuration:
    """How all our consumers read: they commit and reset nothing by themselves, and ask often."""
    return {
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "isolation.level": isolation,
        "check.crcs": True,
        "fetch.wait.max.ms": 100,
        "fetch.error.backoff.ms": 50,
        "fetch.queue.backoff.ms": 10,
        "socket.timeout.ms": 3000,
    }


def consumed(
    consumer: Consumer, max_records: int, timeout_s: float, ends: MutableMapping[TopicPartition, Offset] | None = None
) -> Polled:
    """What ``consumer`` delivers within ``timeout_s``; an error ends it, and what comes behind it is lost.

    ``ends`` takes the end of each partition that it has come to; it may lie behind markers and aborted records.
    """
    records: list[PolledRecord] = []
    try:
        with calling():
            messages = consumer.consume(max_records, timeout_s)
    except ClientError as failed:
        return Polled(records, failed.name)
    for message in messages:
        error = message.error()
        if error is None:
            records.append(polled_record(message))
        elif error.code() == KafkaError._PARTITION_EOF and ends is not None:  # noqa: SLF001 (its own codes begin so)
            ends[_place(message)] = message.offset() or 0
        else:
            return Polled(records, _name(error), _out_of_range(message, _name(error)))
    return Polled(records, None)


def _out_of_range(message: Message, name: str) -> OutOfRange | None:
    """What an error of that name says of a consumer's position; None: it is about something else."""
    offset = message.offset()
    return OutOfRange(_place(message), offset) if name in MOVED_ERRORS and offset is not None and offset >= 0 else None


def _place(message: Message) -> TopicPartition:
    topic, partition = message.topic(), message.partition()
    assert topic is not None
    assert partition is not None
    return TopicPartition(topic, partition)


def _name(error: KafkaError) -> str:
    """The error's name; a truncation found by epochs goes by its own, which librdkafka gives in the text alone."""
    return TRUNCATED if _TRUNCATION_TEXT in error.str() else error.name()


def polled_record(message: Message) -> PolledRecord:
    """A record that a poll delivered, as the history has it."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    kind, timestamp_ms = message.timestamp()
    created = timestamp_ms if kind == TIMESTAMP_CREATE_TIME else None
    headers = cast("Headers", message.headers() or ())
    found = StoredRecord(message.key(), message.value(), headers, created)
    value, intact = payload.judge(found, TopicPartition(topic, partition))
    epoch = message.leader_epoch()
    known_epoch = epoch if epoch is not None and epoch >= 0 else None
    known_ms = None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp_ms
    return PolledRecord(topic, partition, offset, value, known_epoch, intact, known_ms)
