"""Producers of kafka-python, those of transactions too."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError
from kafka import KafkaProducer
from kafka.errors import KafkaError as Refused
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as Place

from harness.client_ports import ABORTED, Answered, CommittedOffset, Manner, Transacted
from harness.clients.batch_answers import awaited, taken
from harness.clients.kafka_python.errors import made, name_of
from harness.clients.kafka_settings import sending, transacting, underscored
from harness.clients.sender import REJECTED_BEFORE_APPEND
from harness.history.sends import Answer, Completion
from harness.model import Offset, TopicPartition
from harness.payload import ProducerRecord

_GRACE_S = 5.0
_REJECTED = frozenset(str(KafkaError(code).name()) for code in REJECTED_BEFORE_APPEND)
_FATAL = frozenset(
    {
        "PRODUCER_FENCED",
        "INVALID_PRODUCER_EPOCH",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "IllegalStateError",
        "_TIMED_OUT",
    }
)
"""After these a transactional producer is of no use any more."""


def settings_of(manner: Manner, acks: int, timeout_s: float) -> dict[str, Any]:
    """``manner`` as settings of a producer that waits ``timeout_s`` for each answer."""
    codec = None if manner.compression == "none" else manner.compression
    return {**underscored(sending(manner, acks, timeout_s)), "compression_type": codec}


def _handed_over(producer: KafkaProducer, partition: TopicPartition, record: ProducerRecord) -> Any:
    """The future of a record."""
    return producer.send(
        partition.topic, record.value, record.key, list(record.headers), partition.partition, record.timestamp_ms
    )


class Sender:
    """Implements :class:`harness.clients.library.Sender`."""

    def __init__(self, settings: Mapping[str, Any], timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._has_offsets = settings["acks"] != 0
        self._producer = made(KafkaProducer, settings)

    def send_batch(
        self,
        partition: TopicPartition,
        batch: Sequence[ProducerRecord],
        *,
        give_up: threading.Event,
        answered: Answered,
    ) -> list[Answer]:
        """See :class:`harness.clients.library.Sender`."""
        arrived: queue.SimpleQueue[tuple[int, Answer]] = queue.SimpleQueue()
        deadline = time.monotonic() + self._timeout_s + _GRACE_S
        for index, record in enumerate(batch):
            if give_up.is_set() or time.monotonic() > deadline:
                break
            try:
                future = _handed_over(self._producer, partition, record)
            except Refused as refused:  # it has not left
                name = name_of(refused)
                arrived.put((index, Answer("fail" if name in _REJECTED else "info", error=name)))
                continue
            future.add_callback(lambda where, index=index: arrived.put((index, self._acknowledged(where.offset))))
            future.add_errback(lambda why, index=index: arrived.put((index, _failed(why))))
        news = iter(lambda: dict(taken(arrived)), None)
        return awaited(len(batch), news, deadline, give_up, answered)

    def close(self) -> None:
        """See :class:`harness.clients.library.Sender`."""
        _close(self._producer)

    def _acknowledged(self, offset: int) -> Answer:
        return Answer("ok", offset if self._has_offsets and offset >= 0 else None)  # it answers 0 to acks=0


def _failed(why: BaseException) -> Answer:
    """Of a record that may be in the log: kafka-python fails what is under way with the error of another batch."""
    return Answer("info", error=name_of(why))


def _close(producer: KafkaProducer) -> None:
    """End a producer at once."""
    try:
        producer.close(timeout=0)
    except Refused:  # it waits for what is under way, even without time to do so, and then closes nothing
        producer._sender.force_close()  # noqa: SLF001
        producer._closed = True  # noqa: SLF001 (else its finaliser waits once more, and fails)


class TransactionalSender:
    """Implements :class:`harness.clients.library.TransactionalSender`.

    kafka-python waits for some answers without a limit, so each call has a thread, and what it has not done in time is
    left to itself: the producer is closed.
    """

    def __init__(self, common: Mapping[str, Any], name: str, timeout_s: float) -> None:
        settings = underscored(transacting(name, timeout_s))
        self.offsets: list[Offset | None] = []
        self._timeout_s = settings["transaction_timeout_ms"] / 1000
        self._settings = {**common, **settings}
        self._producer: KafkaProducer | None = None

    def initialise(self) -> str | None:
        """See :class:`harness.clients.library.TransactionalSender`."""
        if self._producer is None:
            self._producer = made(KafkaProducer, self._settings)
            if (error := self._called(self._producer.init_transactions)) is not None:
                self.close()
                return error
        return None

    def send(self, partition: TopicPartition, batch: Sequence[ProducerRecord]) -> Transacted | None:
        """See :class:`harness.clients.library.TransactionalSender`."""
        first = len(self.offsets)
        self.offsets += [None] * len(batch)
        if not first:
            error = self.initialise() or self._called(self._ours.begin_transaction)
            if error is not None:  # nothing has been sent
                self.close()
                return self._ended("fail", error)
        error = None
        try:
            sent = [_handed_over(self._ours, partition, record) for record in batch]
            deadline = time.monotonic() + self._timeout_s + _GRACE_S
            for index, future in enumerate(sent, start=first):
                where = future.get(timeout=max(0.0, deadline - time.monotonic()))
                self.offsets[index] = where.offset if where.offset >= 0 else None
        except Refused as failed:
            error = name_of(failed)
        return None if error is None else self._given_up(error)

    def commit_offsets(self, metadata: object, offsets: Mapping[TopicPartition, CommittedOffset]) -> Transacted | None:
        """See :class:`harness.clients.library.TransactionalSender`; ``metadata``: kafka-python's own description."""
        error = self._called(self._ours.send_offsets_to_transaction, written_offsets(offsets), metadata)
        return None if error is None else self._given_up(error)

    def end(self, *, commits: bool) -> Transacted:
        """See :class:`harness.clients.library.TransactionalSender`."""
        error = self._called(self._ours.commit_transaction if commits else self._ours.abort_transaction)
        if error is None:
            return self._ended("ok") if commits else self._ended("fail", ABORTED)
        return self._given_up(error)

    def close(self) -> None:
        """See :class:`harness.clients.library.TransactionalSender`."""
        if self._producer is not None:
            _close(self._producer)
            self._producer = None

    @property
    def _ours(self) -> KafkaProducer:
        assert self._producer is not None, "no transaction is open"
        return self._producer

    def _given_up(self, error: str) -> Transacted:
        """What could not be committed is aborted, if that can be."""
        if error not in _FATAL and self._called(self._ours.abort_transaction) is None:
            return self._ended("fail", error)
        self.close()
        return self._ended("info", error)

    def _called(self, do: Callable[..., object], *arguments: object) -> str | None:
        """Call a method of the producer, and wait; returns the error's name."""
        errors: list[str | None] = []

        def call() -> None:
            try:
                do(*arguments)
                errors.append(None)
            except Exception as failed:  # noqa: BLE001 (its name is what the caller learns)
                errors.append(name_of(failed))

        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        thread.join(self._timeout_s + _GRACE_S)
        return errors[0] if errors else "_TIMED_OUT"

    def _ended(self, kind: Completion, error: str | None = None) -> Transacted:
        offsets, self.offsets = self.offsets, []
        return Transacted(kind, offsets, error)


def written_offsets(offsets: Mapping[TopicPartition, CommittedOffset]) -> dict[Place, OffsetAndMetadata]:
    """Offsets as kafka-python takes them."""
    return {Place(*name): OffsetAndMetadata(one.offset, "", one.leader_epoch) for name, one in offsets.items()}
