"""Reads a topic that a user's program writes: whole records, those of open and aborted transactions left out."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError
from confluent_kafka import TopicPartition as Assigned

from harness.client_properties import Access
from harness.clients.librdkafka import ClientError, calling, closed, configuration, made
from harness.clients.reader import reading
from harness.model import Offset, TopicPartition
from harness.payload import Headers

_MOST = 500
_WAIT_S = 0.2
_BOUNDS_S = 2.0
_AGAIN_S = 0.5


class RawRecord(NamedTuple):
    """A record as it is stored."""

    where: TopicPartition
    offset: Offset
    key: bytes | None
    value: bytes | None
    headers: Headers


class OutputReader:
    """A consumer of all partitions of the output from their beginnings.

    Attributes:
        at_end: the partitions of which it has come to the end; more may have been written since.
    """

    def __init__(
        self, access: Access, client_id: str, partitions: Iterable[TopicPartition], log: logging.Logger
    ) -> None:
        self.at_end: set[TopicPartition] = set()
        self._consumer = made(
            Consumer,
            {
                **configuration(access, client_id, log),
                **reading("read_committed"),
                "group.id": client_id,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
            },
        )
        names = sorted(partitions)
        self._consumer.assign([Assigned(name.topic, name.partition, OFFSET_BEGINNING) for name in names])

    def poll(self) -> list[RawRecord] | str:
        """Wait a little for records; or the name of the error after which the reader is of no more use."""
        records: list[RawRecord] = []
        try:
            with calling():
                messages = self._consumer.consume(_MOST, _WAIT_S)
        except ClientError as failed:
            return failed.name
        for message in messages:
            place = TopicPartition(message.topic() or "", message.partition() or 0)
            if (error := message.error()) is None:
                headers = cast("Headers", message.headers() or ())
                records.append(RawRecord(place, message.offset() or 0, message.key(), message.value(), headers))
                self.at_end.discard(place)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 (librdkafka's own code)
                self.at_end.add(place)
            else:
                return str(error.name())
        return records

    def close(self) -> None:
        """Close the connections."""
        closed(self._consumer)


def bounds(
    access: Access, name: str, partitions: Sequence[TopicPartition], log: logging.Logger, *, stable: bool
) -> list[Offset]:
    """Of each partition the high watermark, or the last stable offset, below which no transaction is open.

    ``name``: of the client, and of its group, which has no members.

    Raises:
        ClientError: a leader does not answer.
    """
    isolation = "read_committed" if stable else "read_uncommitted"
    settings = {
        **configuration(access, name, log),
        "group.id": name,
        "isolation.level": isolation,
    }
    consumer = made(Consumer, settings)
    try:
        ends: list[Offset] = []
        for place in partitions:
            with calling():
                asked = Assigned(place.topic, place.partition)
                answer = consumer.get_watermark_offsets(asked, timeout=_BOUNDS_S, cached=False)
            if answer is None:
                raise ClientError(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 (librdkafka's own code)
            ends.append(int(answer[1]))
        return ends
    finally:
        closed(consumer)


def read_to_the_end(
    access: Access, name: str, partitions: Sequence[TopicPartition], log: logging.Logger, timeout_s: float
) -> list[RawRecord] | str:
    """All records of the output, once no transaction is open there; or why they could not be read in time."""
    deadline_s, why = time.monotonic() + timeout_s, "_TIMED_OUT"
    while time.monotonic() < deadline_s:
        try:
            ends = bounds(access, name, partitions, log, stable=False)
            if bounds(access, name, partitions, log, stable=True) == ends:
                found = _read(access, name, partitions, log, deadline_s)
                if not isinstance(found, str):
                    return found
                why = found
            else:
                why = "a transaction is open"
        except ClientError as refused:
            why = refused.name
        time.sleep(_AGAIN_S)
    return why


def _read(
    access: Access, name: str, partitions: Sequence[TopicPartition], log: logging.Logger, deadline_s: float
) -> list[RawRecord] | str:
    reader, records = OutputReader(access, name, partitions, log), list[RawRecord]()
    try:
        while reader.at_end != set(partitions):
            polled = reader.poll()
            if isinstance(polled, str):
                return polled
            records += polled
            if time.monotonic() >= deadline_s:
                return "_TIMED_OUT"
        return records
    finally:
        reader.close()
