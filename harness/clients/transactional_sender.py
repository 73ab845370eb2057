"""A transactional producer: commits or aborts all records of a transaction together (KIP-98)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

from confluent_kafka import KafkaError, Message, Producer

from harness.client_ports import ABORTED, CommittedOffset, Transacted
from harness.client_properties import Access
from harness.clients.group import assigned
from harness.clients.librdkafka import CLOSES_WITHIN_S, ClientError, calling, configuration, made, within
from harness.clients.sender import produce
from harness.history.sends import Completion
from harness.model import Offset, TopicPartition
from harness.payload import ProducerRecord

_REQUEST_TIMEOUT_MS = 4000
_GRACE_MS = 500
_OVERDUE_S = 2.0
"""After how many seconds more than it was given a call of librdkafka is given up."""


class TransactionalSender:
    """One producer with a transactional id; one transaction at a time.

    After a fatal error librdkafka's producer refuses everything, and while a call is not over that took too long, every
    other one; the next transaction begins with a new producer then, which fences the old one off, as an application
    would.

    Args:
        access: to the brokers.
        transactional_id: who takes the same one fences this one off.
        timeout_s: how long each part of a transaction may take: to begin with a producer id, to have its records
            answered, and to end.
        log: takes librdkafka's log lines.

    Attributes:
        offsets: where the records of the open transaction are, as far as is known; empty: none is open.
    """

    def __init__(self, access: Access, transactional_id: str, timeout_s: float, log: logging.Logger) -> None:
        self._timeout_s = timeout_s
        self._has_producer_id = self._is_spent = False
        self.offsets: list[Offset | None] = []
        timeout_ms = max(1000, int(timeout_s * 1000))
        request_ms = min(_REQUEST_TIMEOUT_MS, timeout_ms - _GRACE_MS)
        self._settings = {
            **configuration(access, transactional_id, log),
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "message.timeout.ms": timeout_ms,
            "request.timeout.ms": request_ms,
            "socket.timeout.ms": request_ms + _GRACE_MS,
            "retry.backoff.ms": 100,
            "linger.ms": 0,
        }
        self._last = [made(Producer, self._settings)]

    def initialise(self) -> str | None:
        """Take the transactional id over; the error's name, None: it is taken over."""
        try:
            self._take_over()
        except ClientError as refused:
            self._is_spent = True
            return refused.name
        return None

    def send(self, partition: TopicPartition, batch: Sequence[ProducerRecord]) -> Transacted | None:
        """Send ``batch`` in the transaction that is open, or in a new one; None: it stays open."""
        first = len(self.offsets)
        self.offsets += [None] * len(batch)
        if not first:
            try:
                self._begin()
            except ClientError as refused:  # nothing has been sent
                self._is_spent = True
                return self._ended("fail", refused.name)
        try:
            with calling():
                for index, record in enumerate(batch, start=first):
                    produce(self._producer, partition, record, partial(_delivered, self.offsets, index))
                self._producer.flush(self._timeout_s)  # waits until every record has been answered
        except ClientError as refused:
            return self._given_up(refused.error)
        return None

    def commit_offsets(
        self, metadata: object, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> Transacted | None:  # fmt: skip
        """Commit ``offsets`` in the transaction that is open; ``metadata``: of the member; None: it stays open.

        librdkafka does not return from it, whatever time it is given, when the group's coordinator has died and is in
        no metadata any more (its issues 5511 and 5456).
        """
        wanted = [assigned(name, one.offset, one.leader_epoch) for name, one in offsets.items()]
        try:
            commit = partial(self._producer.send_offsets_to_transaction, wanted, metadata, self._timeout_s)
            within(commit, self._timeout_s + _OVERDUE_S)
        except ClientError as refused:
            return self._given_up(refused.error)
        return None

    def end(self, *, commits: bool) -> Transacted:
        """Commit or abort the transaction that is open."""
        try:
            with calling():
                if commits:
                    self._producer.commit_transaction(self._timeout_s)
                    return self._ended("ok")
                self._producer.abort_transaction(self._timeout_s)
        except ClientError as refused:
            return self._given_up(refused.error)
        return self._ended("fail", ABORTED)

    def _begin(self) -> None:
        self._take_over()
        with calling():
            self._producer.begin_transaction()

    def _take_over(self) -> None:
        if self._is_spent:
            self.close()
            self._last = [made(Producer, self._settings)]
            self._is_spent = self._has_producer_id = False
        if not self._has_producer_id:
            with calling():
                self._producer.init_transactions(self._timeout_s)
            self._has_producer_id = True

    def _given_up(self, error: KafkaError) -> Transacted:
        """What could not be committed is aborted, if that can be."""
        if error.txn_requires_abort() or error.code() == KafkaError._QUEUE_FULL:  # noqa: SLF001
            with suppress(ClientError), calling():
                self._producer.abort_transaction(self._timeout_s)
                return self._ended("fail", error.name())
        self._is_spent = True
        return self._ended("info", error.name())

    def _ended(self, kind: Completion, error: str | None = None) -> Transacted:
        offsets, self.offsets = self.offsets, []
        return Transacted(kind, offsets, error)

    @property
    def _producer(self) -> Producer:
        for one in self._last:
            return one
        raise ClientError(KafkaError(KafkaError._DESTROY))  # noqa: SLF001 (librdkafka's own code)

    def close(self) -> None:
        """Forget whatever is outstanding, and close the connections; idempotent. A call that goes on meanwhile fails.

        librdkafka's producer, with a thread for each broker, ends with the last reference to it. This sender may be
        part of a cycle of references, which the garbage collector, seldom at work in a run, would have to find.
        """
        last, self._last = self._last, []
        _purge(last)
        with suppress(ClientError):
            within(last.clear, CLOSES_WITHIN_S)


def _purge(producers: Sequence[Producer]) -> None:
    for one in producers:
        with suppress(ClientError), calling():
            one.purge(in_queue=True, in_flight=True, blocking=False)
            one.poll(0)


def _delivered(offsets: list[Offset | None], index: int, error: KafkaError | None, message: Message) -> None:
    if error is None:
        offsets[index] = message.offset()
