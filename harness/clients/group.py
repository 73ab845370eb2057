"""Fetches and commits the offsets of a consumer group at its coordinator, without joining the group."""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable, Mapping
from itertools import count

from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as Assigned

from harness.client_ports import CommitAnswered, CommittedOffset
from harness.client_properties import Access
from harness.clients.librdkafka import ClientError, calling, closed, configuration, made, within
from harness.errors import EnvironmentFault
from harness.model import NO_EPOCH, Offset, TopicPartition

PATIENCE_S = 30.0
"""How long a group's coordinator may take to come back."""

_METADATA = b"CGMDv2:"


class GroupClient:
    """The offsets of one group."""

    def __init__(self, access: Access, client_id: str, group: str, log: logging.Logger) -> None:
        self._consumer = made(
            Consumer,
            {
                **configuration(access, client_id, log),
                "group.id": group,
                "enable.auto.commit": False,
                "socket.timeout.ms": 3000,
            },
        )

    def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: float
    ) -> dict[TopicPartition, CommittedOffset] | str:
        """What is committed, partitions without it left out; or the error's name."""
        return committed(self._consumer, partitions, timeout_s)

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> str | None:
        """Commit ``offsets``, and wait for the answer; returns the error's name, None for success."""
        return commit(self._consumer, offsets)

    def close(self) -> None:
        """Close the connections."""
        closed(self._consumer)


def assigned(partition: TopicPartition, offset: Offset, leader_epoch: int, metadata: str = "") -> Assigned:
    """A position as librdkafka takes it; with an epoch, it is validated before it is read from (KIP-320)."""
    if leader_epoch == NO_EPOCH:
        return Assigned(partition.topic, partition.partition, offset, metadata=metadata)
    return Assigned(partition.topic, partition.partition, offset, metadata=metadata, leader_epoch=leader_epoch)


def committed(
    consumer: Consumer, partitions: Iterable[TopicPartition], timeout_s: float
) -> dict[TopicPartition, CommittedOffset] | str:
    """What the group of ``consumer`` has committed, partitions without it left out; or the error's name."""
    asked = [Assigned(name.topic, name.partition) for name in partitions]
    try:
        with calling():
            answers = consumer.committed(asked, timeout=timeout_s)
    except ClientError as refused:
        return refused.name
    return _first_error(answers) or {
        TopicPartition(one.topic, one.partition): CommittedOffset(one.offset, _epoch(one.leader_epoch))
        for one in answers
        if one.offset >= 0
    }


class PendingCommits:
    """Asynchronous commits of one consumer, told apart by numbers that they carry as their metadata."""

    def __init__(self) -> None:
        self._numbers = count()
        self._waiting: dict[str, CommitAnswered] = {}

    def begin(
        self, consumer: Consumer, offsets: Mapping[TopicPartition, CommittedOffset], answered: CommitAnswered
    ) -> None:
        """Commit ``offsets`` as ``consumer``; ``answered`` is called when a later call of it serves the answer."""
        number = str(next(self._numbers))
        wanted = [assigned(name, one.offset, one.leader_epoch, number) for name, one in offsets.items()]
        self._waiting[number] = answered
        try:
            with calling():
                consumer.commit(offsets=wanted, asynchronous=True)
        except ClientError as refused:
            self._waiting.pop(number)(refused.name)

    def served(self, error: KafkaError | None, committed: Iterable[Assigned]) -> None:
        """The callback of the consumer: also of commits that it has waited for, which carry no number."""
        partitions = list(committed)
        answered = self._waiting.pop(str(partitions[0].metadata), None) if partitions else None
        if answered is not None:
            answered(_first_error(partitions) if error is None else str(error.name()))


def generation_of(metadata: bytes) -> int:
    """The generation in what librdkafka says of a member's group; ``NO_GENERATION``: it is in none.

    Raises:
        EnvironmentFault: this librdkafka says it in another way.
    """
    if not metadata.startswith(_METADATA):
        raise EnvironmentFault(
            f"librdkafka describes a member's group as {metadata[:20]!r}, which does not begin with {_METADATA!r}.",
            "Install the confluent-kafka that requirements.lock names.",
        )
    (generation,) = struct.unpack_from("=i", metadata, len(_METADATA))
    return int(generation)


def commit(consumer: Consumer, offsets: Mapping[TopicPartition, CommittedOffset]) -> str | None:
    """Commit ``offsets`` as ``consumer``, and wait for the answer; returns the error's name, None for success.

    ``_TIMED_OUT`` after :data:`PATIENCE_S`: librdkafka waits for ever for a coordinator that does not come back, and
    may still send the commit.
    """
    wanted = [assigned(name, one.offset, one.leader_epoch) for name, one in offsets.items()]
    answers: list[Assigned] = []
    try:
        within(lambda: answers.extend(consumer.commit(offsets=wanted, asynchronous=False) or ()), PATIENCE_S)
    except ClientError as refused:
        return refused.name
    return _first_error(answers)


def _first_error(answers: Iterable[Assigned]) -> str | None:
    return next((str(one.error.name()) for one in answers if one.error is not None), None)


def _epoch(told: int | None) -> int:
    return NO_EPOCH if told is None else told
