"""A producer of transactions: everything it sends in one is committed or aborted together (KIP-98)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from harness.clients.librdkafka import configuration
from harness.history.recorder import Completion
from harness.model import Offset, TopicPartition

ABORTED = "ABORTED"
"""The error of a transaction that its client has aborted, as it was to."""

_REQUEST_TIMEOUT_MS = 4000
_GRACE_MS = 500


class Transacted(NamedTuple):
    """How a transaction ended: ``ok``: committed; ``fail``: proven never to be; and where its records are, if known."""

    kind: Completion
    offsets: list[Offset | None]
    error: str | None = None


class TransactionalSender:
    """One producer with a transactional id; one transaction at a time.

    Args:
        bootstrap: ``host:port,...``.
        transactional_id: who takes the same one fences this one off.
        timeout_s: how long each part of a transaction may take: to begin with a producer id, to have its records
            answered, and to end.
        log: takes what librdkafka has to say.

    Attributes:
        offsets: where the records of the open transaction are, as far as is known; empty: none is open.
    """

    def __init__(self, bootstrap: str, transactional_id: str, timeout_s: float, log: logging.Logger) -> None:
        self._timeout_s = timeout_s
        self._has_producer_id = False
        self.offsets: list[Offset | None] = []
        timeout_ms = max(1000, int(timeout_s * 1000))
        request_ms = min(_REQUEST_TIMEOUT_MS, timeout_ms - _GRACE_MS)
        self._producer = Producer(
            {
                **configuration(bootstrap, transactional_id, log),
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "message.timeout.ms": timeout_ms,
                "request.timeout.ms": request_ms,
                "socket.timeout.ms": request_ms + _GRACE_MS,
                "retry.backoff.ms": 100,
                "linger.ms": 0,
            }
        )

    def send(self, partition: TopicPartition, batch: Sequence[bytes]) -> Transacted | None:
        """Send ``batch`` in the transaction that is open, or in a new one; None: it stays open."""
        first = len(self.offsets)
        self.offsets += [None] * len(batch)
        if not first:
            try:
                self._begin()
            except KafkaException as refused:  # nothing has been sent
                return self._ended("fail", refused.args[0].name())
        try:
            for index, data in enumerate(batch, start=first):
                told = partial(_delivered, self.offsets, index)
                self._producer.produce(partition.topic, data, partition=partition.partition, on_delivery=told)
            self._flush()
        except KafkaException as refused:
            return self._given_up(refused.args[0])
        return None

    def end(self, *, commits: bool) -> Transacted:
        """Commit or abort the transaction that is open."""
        try:
            if commits:
                self._producer.commit_transaction(self._timeout_s)
                return self._ended("ok")
            self._producer.abort_transaction(self._timeout_s)
        except KafkaException as refused:
            return self._given_up(refused.args[0])
        return self._ended("fail", ABORTED)

    def _begin(self) -> None:
        if not self._has_producer_id:
            self._producer.init_transactions(self._timeout_s)
            self._has_producer_id = True
        self._producer.begin_transaction()

    def _flush(self) -> None:
        """Wait until every record has been answered."""
        try:
            self._producer.flush(self._timeout_s)
        except SystemError as both:  # a fatal error, in the midst of which a record was answered
            if isinstance(both.__cause__, KafkaException):
                raise both.__cause__ from None
            raise

    def _given_up(self, error: KafkaError) -> Transacted:
        """What could not be committed is aborted, if that can be."""
        if not error.txn_requires_abort():
            return self._ended("info", error.name())
        try:
            self._producer.abort_transaction(self._timeout_s)
        except KafkaException:
            return self._ended("info", error.name())
        return self._ended("fail", error.name())

    def _ended(self, kind: Completion, error: str | None = None) -> Transacted:
        offsets, self.offsets = self.offsets, []
        return Transacted(kind, offsets, error)

    def close(self) -> None:
        """Forget whatever is outstanding and close the connections."""
        self._producer.purge(in_queue=True, in_flight=True, blocking=False)
        self._producer.poll(0)


def _delivered(offsets: list[Offset | None], index: int, error: KafkaError | None, message: Message) -> None:
    if error is None:
        offsets[index] = message.offset()
