"""A producer: sends one batch at a time, retries only on request, and reports the outcome of each record."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from confluent_kafka import KafkaError, Message, Producer

from harness.client_ports import PLAIN, Answered, Manner, not_recorded
from harness.client_properties import Access
from harness.clients.librdkafka import ClientError, Configuration, calling, configuration, made
from harness.history.sends import Answer, Completion
from harness.model import Offset, TopicPartition
from harness.payload import ProducerRecord

_POLL_S = 0.1
_GRACE_S = 5.0
"""How much later than its delivery timeout librdkafka may report: it looks for expired records once a second."""

_LINGER_S = 5.0
"""How long a batch that is not full waits for what is still to be handed over, unless it is flushed."""

_LONGEST_REQUEST_MS = 299_000
"""librdkafka's ``socket.timeout.ms``, which must be longer, ends at five minutes."""

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


def settings_of(manner: Manner, timeout_s: float) -> Configuration:
    """``manner`` as librdkafka's settings, for a producer that waits ``timeout_s`` for each answer."""
    request_ms = min(max(1, int(manner.request_timeout_s(timeout_s) * 1000)), _LONGEST_REQUEST_MS)
    linger_s = min(_LINGER_S, timeout_s / 2) if manner.linger_s is None else manner.linger_s
    filled = {"batch.num.messages": manner.batch, "linger.ms": linger_s * 1000}
    window = {} if manner.in_flight is None else {"max.in.flight.requests.per.connection": manner.in_flight}
    return {
        "enable.idempotence": manner.idempotent,
        "message.send.max.retries": max(manner.retries, 1 if manner.idempotent else 0),
        "request.timeout.ms": request_ms,
        "socket.timeout.ms": request_ms + 1000,
        "retry.backoff.ms": 100,
        "compression.type": manner.compression,
        **window,
        **(filled if manner.batch > 1 else {"linger.ms": 0}),
    }


class Sender:
    """One producer; any number of threads may send with it.

    After a fatal error librdkafka's producer refuses everything. The sender then retires it, ends whatever it has not
    answered with ``info`` and the error's name, and sends the next batch with a new one.

    Args:
        access: to the brokers.
        client_id: for the brokers' logs and ours.
        acks: -1 (all in-sync replicas), 1 or 0.
        timeout_s: how long to wait for the answer to one batch.
        log: takes librdkafka's log lines.
        manner: how it sends; by default every record at once, alone, and once only.

    Raises:
        EnvironmentFault: librdkafka cannot start a client on this machine.
    """

    def __init__(
        self,
        access: Access,
        client_id: str,
        acks: int,
        timeout_s: float,
        log: logging.Logger,
        *,
        manner: Manner = PLAIN,
    ) -> None:
        self._timeout_s = timeout_s
        self._acks = acks
        self._manner = manner
        self._filling = threading.Lock()
        self._settings = {
            **configuration(access, client_id, log),
            "acks": acks,
            "message.timeout.ms": max(1, int(timeout_s * 1000)),
            **settings_of(manner, timeout_s),
        }
        self._under_way: list[_Batch] = []
        self._client = FallibleProducer(self._settings)

    def send(self, partition: TopicPartition, record: ProducerRecord, give_up: threading.Event | None = None) -> Answer:
        """Send one record and wait for its answer; ``info`` when ``give_up`` is set before one came."""
        return self.send_batch(partition, [record], give_up=give_up)[0]

    def send_batch(
        self,
        partition: TopicPartition,
        batch: Sequence[ProducerRecord],
        *,
        give_up: threading.Event | None = None,
        answered: Answered = not_recorded,
    ) -> list[Answer]:
        """See :meth:`harness.client_ports.Producer.send_batch`."""
        under_way = _Batch(len(batch), answered, has_offsets=self._acks != 0)
        with self._filling:
            client = self._usable_client()
            self._under_way.append(under_way)
            client.produce_all(partition, batch, under_way)
            if len(batch) < self._manner.batch and self._manner.linger_s is None:
                client.flush(_POLL_S)  # sends all that there is at once, so no batch may be half handed over
        try:
            self._await(client, under_way, give_up)
        finally:
            self._under_way.remove(under_way)
        return under_way.end(Answer("info", error=client.failure or "_NO_DELIVERY_REPORT"))

    def close(self) -> None:
        """Forget whatever is outstanding and close the connections."""
        self._client.close()

    def _usable_client(self) -> FallibleProducer:
        if self._client.failure is not None:
            self._client.close()
            self._client = FallibleProducer(self._settings)
        return self._client

    def _await(self, client: FallibleProducer, batch: _Batch, give_up: threading.Event | None) -> None:
        deadline = time.monotonic() + self._timeout_s + _GRACE_S
        while batch.is_under_way and time.monotonic() < deadline and not (give_up and give_up.is_set()):
            if client.failure is not None:
                break
            client.poll_in_turn(_POLL_S)
            for one in list(self._under_way):  # what was polled may be of the batches of other threads
                one.pass_on()


class _Batch:
    """Records under way; any thread that polls their producer may bring their answers.

    Args:
        number: of records.
        answered: see :class:`harness.client_ports.Producer`.
        has_offsets: whether an acknowledgement says where the record is.
    """

    def __init__(self, number: int, answered: Answered, *, has_offsets: bool) -> None:
        self._answers: list[Answer | None] = [None] * number
        self._answered = answered
        self._has_offsets = has_offsets
        self._arrived: deque[tuple[int, KafkaError | None, Offset | None]] = deque()
        self._left = number
        self._passing_on = threading.Lock()

    @property
    def is_under_way(self) -> bool:
        """Whether a record's answer has not been passed on."""
        return self._left > 0

    def arrives(self, index: int, error: KafkaError | None, message: Message | None) -> None:
        """A delivery report has come."""
        offset = message.offset() if self._has_offsets and error is None and message is not None else None
        self._arrived.append((index, error, offset if offset is None or offset >= 0 else None))

    def pass_on(self) -> None:
        """Pass on the answers that have arrived since; the first one of a record counts."""
        with self._passing_on:
            which: list[int] = []
            answers: list[Answer] = []
            while self._arrived:
                index, error, offset = self._arrived.popleft()
                if self._answers[index] is None:
                    answer = self._answers[index] = Answer("ok", offset) if error is None else classified(error, None)
                    which.append(index)
                    answers.append(answer)
            self._tell(which, answers)

    def end(self, missing: Answer) -> list[Answer]:
        """Have ``missing`` stand for the answers that have not come, pass on the rest, and return all."""
        self.pass_on()
        with self._passing_on:
            which = [index for index, answer in enumerate(self._answers) if answer is None]
            for index in which:
                self._answers[index] = missing
            self._tell(which, [missing] * len(which))
        return [answer or missing for answer in self._answers]

    def _tell(self, which: list[int], answers: list[Answer]) -> None:
        if which:
            self._left -= len(which)
            self._answered(which, answers)


class Reports(Protocol):
    """Takes delivery reports."""

    def arrives(self, index: int, error: KafkaError | None, message: Message | None) -> None:
        """Record ``index`` of a batch was delivered, or was not; ``message`` is None of one that was not taken."""
        ...


class FallibleProducer:
    """One producer of librdkafka's, until it fails as a whole.

    Attributes:
        failure: the name of the fatal error that has ended it; None: none has.
    """

    def __init__(self, settings: Configuration) -> None:
        self.failure: str | None = None
        self._producer = made(Producer, settings)
        self._turn = threading.Condition()
        self._is_polled = False

    def produce_all(self, partition: TopicPartition, batch: Sequence[ProducerRecord], reports: Reports) -> None:
        """Hand over records; ``reports`` is given the error of one that is refused at once."""
        index, left = 0, iter(enumerate(batch))
        producer, arrives = self._producer, reports.arrives
        while True:
            try:
                with calling():
                    for index, record in left:
                        produce(producer, partition, record, partial(arrives, index))
                return
            except ClientError as refused:
                if refused.error.code() == KafkaError._FATAL:  # noqa: SLF001
                    self.poll(0)  # which raises the error that was the fatal one
                    self.failure = self.failure or refused.name
                    return
                reports.arrives(index, refused.error, None)

    def poll(self, timeout_s: float) -> None:
        """Wait up to ``timeout_s`` for delivery reports."""
        try:
            with calling():
                self._producer.poll(timeout_s)
        except ClientError as failed:
            self.failure = failed.name

    def poll_in_turn(self, timeout_s: float) -> None:
        """As :meth:`poll`, of one thread at a time: the others wait until it has got some, or its time is up."""
        with self._turn:
            if self._is_polled:
                self._turn.wait(timeout_s)
                return
            self._is_polled = True
        try:
            self.poll(timeout_s)
        finally:
            with self._turn:
                self._is_polled = False
                self._turn.notify_all()

    def flush(self, timeout_s: float) -> None:
        """Send what waits for a batch to fill up, and wait up to ``timeout_s`` for the answers."""
        try:
            with calling():
                self._producer.flush(timeout_s)
        except ClientError as failed:
            self.failure = failed.name

    def close(self) -> None:
        """Forget whatever is outstanding."""
        with suppress(ClientError), calling():
            self._producer.purge(in_queue=True, in_flight=True, blocking=False)
            self._producer.poll(0)


def produce(
    producer: Producer,
    partition: TopicPartition,
    record: ProducerRecord,
    delivered: Callable[[KafkaError | None, Message], None],
) -> None:
    """Hand one record to librdkafka, whole: it must not choose a timestamp, as it does where it is given 0."""
    assert record.timestamp_ms, "a record needs a CreateTime of its client's"
    key, value, headers, timestamp_ms = record
    producer.produce(partition[0], value, key, partition[1], delivered, timestamp=timestamp_ms, headers=list(headers))


def classified(error: KafkaError | None, offset: Offset | None) -> Answer:
    """``ok`` without an error, ``fail`` where the error proves that nothing was appended, else ``info``."""
    if error is None:
        return Answer("ok", offset if offset is not None and offset >= 0 else None)
    kind: Completion = "fail" if error.code() in REJECTED_BEFORE_APPEND else "info"
    return Answer(kind, error=error.name())
