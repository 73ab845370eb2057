"""Fetches and commits the offsets of a consumer group at its coordinator, without joining the group."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Assigned

from harness.client_ports import CommittedOffset
from harness.clients.librdkafka import ClientError, calling, configuration, made
from harness.model import NO_EPOCH, Offset, TopicPartition


class GroupClient:
    """The offsets of one group."""

    def __init__(self, bootstrap: str, client_id: str, group: str, log: logging.Logger) -> None:
        self._consumer = made(
            Consumer,
            {
                **configuration(bootstrap, client_id, log),
                "group.id": group,
                "enable.auto.commit": False,
                "socket.timeout.ms": 3000,
            },
        )

    def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: float
    ) -> dict[TopicPartition, CommittedOffset] | str:
        """What is committed, partitions without it left out; or the error's name."""
        asked = [Assigned(name.topic, name.partition) for name in partitions]
        try:
            with calling():
                answers = self._consumer.committed(asked, timeout=timeout_s)
        except ClientError as refused:
            return refused.name
        return first_error(answers) or known(answers)

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> str | None:
        """Commit ``offsets``, and wait for the answer; returns the error's name, None for success."""
        wanted = [assigned(name, committed.offset, committed.leader_epoch) for name, committed in offsets.items()]
        try:
            with calling():
                answers = self._consumer.commit(offsets=wanted, asynchronous=False)
        except ClientError as refused:
            return refused.name
        return first_error(answers or ())

    def close(self) -> None:
        """Close the connections."""
        with suppress(ClientError), calling():
            self._consumer.close()


def assigned(partition: TopicPartition, offset: Offset, leader_epoch: int) -> Assigned:
    """A position as librdkafka takes it; with an epoch, it is validated before it is read from (KIP-320)."""
    if leader_epoch == NO_EPOCH:
        return Assigned(partition.topic, partition.partition, offset)
    return Assigned(partition.topic, partition.partition, offset, leader_epoch=leader_epoch)


def known(answers: Iterable[Assigned]) -> dict[TopicPartition, CommittedOffset]:
    """What a coordinator has answered; partitions without a commit are left out."""
    return {
        TopicPartition(one.topic, one.partition): CommittedOffset(one.offset, _epoch(one.leader_epoch))
        for one in answers
        if one.offset >= 0
    }


def first_error(answers: Iterable[Assigned]) -> str | None:
    """The name of the first error among the answers about partitions; None: there is none."""
    return next((str(one.error.name()) for one in answers if one.error is not None), None)


def _epoch(told: int | None) -> int:
    return NO_EPOCH if told is None else told
