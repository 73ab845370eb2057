"""Producers of Kafka's own Java client, those of transactions too."""

from __future__ import annotations

import base64
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from harness.client_ports import ABORTED, Answered, CommittedOffset, Manner, Transacted
from harness.clients.java.driver import Answer as Said
from harness.clients.java.driver import Driver, written_offsets
from harness.history.sends import Answer, Completion
from harness.model import Offset, TopicPartition
from harness.payload import ProducerRecord

_LOOK_S = 0.1
_GRACE_S = 5.0
_LINGER_S = 0.005
_BYTES_BESIDE = 150
"""About what a record takes besides its text, where batches are counted in bytes."""

REJECTED_BEFORE_APPEND = frozenset(
    {
        "MESSAGE_TOO_LARGE",
        "RECORD_LIST_TOO_LARGE",
        "INVALID_REQUIRED_ACKS",
        "TOPIC_AUTHORIZATION_FAILED",
        "CLUSTER_AUTHORIZATION_FAILED",
    }
)
"""Errors that prove that the record is in no log, as :data:`harness.clients.sender.REJECTED_BEFORE_APPEND`."""

_FATAL = frozenset(
    {
        "PRODUCER_FENCED",
        "INVALID_PRODUCER_EPOCH",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "UNSUPPORTED_VERSION",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "IllegalStateException",
        "_DESTROY",
    }
)
"""After these a transactional producer is of no use any more."""


def settings_of(manner: Manner, acks: int, timeout_s: float) -> dict[str, object]:
    """``manner`` as settings of a producer that waits ``timeout_s`` for each answer."""
    request_ms = max(1, int(manner.request_timeout_s(timeout_s) * 1000))
    linger_s = _LINGER_S if manner.linger_s is None else manner.linger_s
    linger_ms = int(linger_s * 1000) if manner.batch > 1 else 0
    in_flight = manner.in_flight or (5 if manner.idempotent else 1)
    return {
        "acks": acks,
        "enable.idempotence": manner.idempotent,
        "retries": max(manner.retries, 1 if manner.idempotent else 0),
        "request.timeout.ms": request_ms,
        "linger.ms": linger_ms,
        "delivery.timeout.ms": max(int(timeout_s * 1000), request_ms + linger_ms),
        "max.block.ms": max(1, int(timeout_s * 1000)),
        "batch.size": 0 if manner.batch == 1 else manner.batch * _BYTES_BESIDE,
        "compression.type": manner.compression,
        "max.in.flight.requests.per.connection": in_flight,
    }


class Sender:
    """Implements :class:`harness.clients.library.Sender`."""

    def __init__(self, driver: Driver, settings: Mapping[str, object], timeout_s: float) -> None:
        self._driver = driver
        self._timeout_s = timeout_s
        self._client = driver.client("producer", settings)

    def send_batch(
        self,
        partition: TopicPartition,
        batch: Sequence[ProducerRecord],
        *,
        give_up: threading.Event,
        answered: Answered,
    ) -> list[Answer]:
        """See :class:`harness.clients.library.Sender`."""
        answers: list[Answer | None] = [None] * len(batch)
        said = self._driver.begin(self._client, "send", **_written(partition, batch))
        deadline = time.monotonic() + self._timeout_s + _GRACE_S
        while None in answers and time.monotonic() < deadline and not give_up.is_set():
            which: list[int] = []
            for one in _arrived(said):
                if "index" not in one:  # the process has ended
                    deadline = 0.0
                    break
                answers[one["index"]] = _answer_of(one)
                which.append(one["index"])
            if which:
                answered(which, [answer for index in which if (answer := answers[index]) is not None])
        missing = [index for index, answer in enumerate(answers) if answer is None]
        unknown = Answer("info", error="_NO_DELIVERY_REPORT")
        if missing:
            answered(missing, [unknown] * len(missing))
        return [answer or unknown for answer in answers]

    def close(self) -> None:
        """See :class:`harness.clients.library.Sender`."""
        self._driver.tell(self._client, "close")


def _arrived(said: queue.SimpleQueue[Said]) -> list[Said]:
    """What has come, after waiting for something a little."""
    arrived: list[Said] = []
    with suppress(queue.Empty):
        arrived.append(said.get(timeout=_LOOK_S))
        while True:
            arrived.append(said.get_nowait())
    return arrived


def _answer_of(one: Said) -> Answer:
    if (failed := one.get("failed")) is not None:
        return Answer("fail" if failed in REJECTED_BEFORE_APPEND else "info", error=failed)
    return Answer("ok", one["offset"] if one["offset"] >= 0 else None)


def _written(partition: TopicPartition, batch: Sequence[ProducerRecord]) -> dict[str, object]:
    """Records as the Java process takes them."""
    records = [
        {
            "key": _text(one.key),
            "value": _text(one.value),
            "timestamp": one.timestamp_ms,
            "headers": [[name, _text(content)] for name, content in one.headers],
        }
        for one in batch
    ]
    return {"topic": partition.topic, "partition": partition.partition, "records": records}


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


class TransactionalSender:
    """Implements :class:`harness.clients.library.TransactionalSender`."""

    def __init__(self, driver: Driver, common: Mapping[str, object], name: str, timeout_s: float) -> None:
        timeout_ms = max(1000, int(timeout_s * 1000))
        self.offsets: list[Offset | None] = []
        self._driver = driver
        self._settings = {
            **common,
            "transactional.id": name,
            "transaction.timeout.ms": timeout_ms,
            "delivery.timeout.ms": timeout_ms,
            "request.timeout.ms": max(500, timeout_ms - 500),
            "max.block.ms": timeout_ms,
            "linger.ms": 0,
        }
        self._client: int | None = None

    def initialise(self) -> str | None:
        """See :class:`harness.clients.library.TransactionalSender`."""
        if self._client is None:
            self._client = self._driver.client("transactions", self._settings)
            if (error := self._ask("init").get("error")) is not None:
                self.close()
                return str(error)
        return None

    def send(self, partition: TopicPartition, batch: Sequence[ProducerRecord]) -> Transacted | None:
        """See :class:`harness.clients.library.TransactionalSender`."""
        first = len(self.offsets)
        self.offsets += [None] * len(batch)
        if not first:
            error = self.initialise() or self._ask("begin").get("error")
            if error is not None:  # nothing has been sent
                self.close()
                return self._ended("fail", error)
        said = self._ask("send", **_written(partition, batch))
        self.offsets[first:] = said.get("offsets", self.offsets[first:])
        return self._given_up(said["error"]) if "error" in said else None

    def commit_offsets(self, metadata: object, offsets: Mapping[TopicPartition, CommittedOffset]) -> Transacted | None:
        """See :class:`harness.clients.library.TransactionalSender`; ``metadata``: the number of the member."""
        said = self._ask("offsets", member=metadata, offsets=written_offsets(offsets))
        return self._given_up(said["error"]) if "error" in said else None

    def end(self, *, commits: bool) -> Transacted:
        """See :class:`harness.clients.library.TransactionalSender`."""
        error = self._ask("commit" if commits else "abort").get("error")
        if error is None:
            return self._ended("ok") if commits else self._ended("fail", ABORTED)
        if error == "_TIMED_OUT":  # it may be committed, or not, and is only to be committed again
            self.close()
            return self._ended("info", error)
        return self._given_up(error)

    def close(self) -> None:
        """See :class:`harness.clients.library.TransactionalSender`."""
        if self._client is not None:
            self._driver.tell(self._client, "close")
            self._client = None

    def _given_up(self, error: str) -> Transacted:
        """What could not be committed is aborted, if that can be."""
        if error not in _FATAL and self._ask("abort").get("error") is None:
            return self._ended("fail", error)
        self.close()
        return self._ended("info", error)

    def _ask(self, do: str, **words: object) -> Said:
        assert self._client is not None, "no transaction is open"
        return self._driver.ask(self._client, do, **words)

    def _ended(self, kind: Completion, error: str | None = None) -> Transacted:
        offsets, self.offsets = self.offsets, []
        return Transacted(kind, offsets, error)
