"""A producing client: one record at a time, no retries, and an honest answer for each."""

from __future__ import annotations

import logging
import threading
import time
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from harness.clients.librdkafka import configuration
from harness.history.recorder import Completion
from harness.model import Offset, TopicPartition

_POLL_S = 0.1
_GRACE_S = 5.0
"""How much later than its delivery timeout librdkafka may report: it looks for expired records once a second."""

REJECTED_BEFORE_APPEND = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_REQUIRED_ACKS,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError._QUEUE_FULL,  # noqa: SLF001 (librdkafka's own codes begin with an underscore)
    }
)
"""Errors that prove that the record is in no log: every attempt at it must have met them.

Not among them, though they look it: NOT_LEADER_OR_FOLLOWER (KAFKA-13574: also the answer to a request that was
appended and then lost its leader while waiting), NOT_ENOUGH_REPLICAS (librdkafka sends a record again after
NOT_LEADER_OR_FOLLOWER even without retries, so this may be the answer to the second attempt, and the first is in the
log), NOT_ENOUGH_REPLICAS_AFTER_APPEND, KAFKA_STORAGE_ERROR, timeouts and lost connections.
"""


class Answer(NamedTuple):
    """What became of a record: the kind of completion, its offset if known, the error's name unless ``ok``."""

    kind: Completion
    offset: Offset | None = None
    error: str | None = None


class Sender:
    """One producer.

    Args:
        bootstrap: ``host:port,...``.
        client_id: for the brokers' logs and ours.
        acks: -1 (all in-sync replicas), 1 or 0.
        timeout_s: how long to wait for the answer to one record.
        log: takes what librdkafka has to say.
    """

    def __init__(self, bootstrap: str, client_id: str, acks: int, timeout_s: float, log: logging.Logger) -> None:
        timeout_ms = max(1, int(timeout_s * 1000))
        self._timeout_s = timeout_s
        self._acks = acks
        self._answer: Answer | None = None
        self._producer = Producer(
            {
                **configuration(bootstrap, client_id, log),
                "acks": acks,
                "enable.idempotence": False,
                "message.send.max.retries": 0,
                "linger.ms": 0,
                "message.timeout.ms": timeout_ms,
                "request.timeout.ms": timeout_ms,
                "socket.timeout.ms": timeout_ms + 1000,
            }
        )

    def send(self, partition: TopicPartition, data: bytes, give_up: threading.Event | None = None) -> Answer:
        """Send one record and wait for its answer; ``info`` when ``give_up`` is set before one came."""
        self._answer = None
        try:
            self._producer.produce(partition.topic, data, partition=partition.partition, on_delivery=self._delivered)
        except BufferError:
            return classified(KafkaError(KafkaError._QUEUE_FULL), None)  # noqa: SLF001
        except KafkaException as refused:
            return classified(refused.args[0], None)
        return self._await_answer(give_up)

    def close(self) -> None:
        """Forget whatever is outstanding and close the connections."""
        self._producer.purge(in_queue=True, in_flight=True, blocking=False)
        self._producer.poll(0)

    def _await_answer(self, give_up: threading.Event | None) -> Answer:
        deadline = time.monotonic() + self._timeout_s + _GRACE_S
        while self._answer is None and time.monotonic() < deadline and not (give_up and give_up.is_set()):
            self._producer.poll(_POLL_S)
        return self._answer or Answer("info", error="_NO_DELIVERY_REPORT")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        self._answer = classified(error, message.offset() if self._acks else None)


def classified(error: KafkaError | None, offset: Offset | None) -> Answer:
    """``ok`` without an error, ``fail`` where the error proves that nothing was appended, else ``info``."""
    if error is None:
        return Answer("ok", offset if offset is not None and offset >= 0 else None)
    kind: Completion = "fail" if error.code() in REJECTED_BEFORE_APPEND else "info"
    return Answer(kind, error=error.name())
