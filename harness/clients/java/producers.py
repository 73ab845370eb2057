"""Producers of Kafka's own Java client, those of transactions too."""

from __future__ import annotations

import base64
import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

from harness.client_ports import ABORTED, Answered, CommittedOffset, Transacted
from harness.clients.batch_answers import awaited, taken
from harness.clients.java.driver import Answer as Said
from harness.clients.java.driver import Driver, written_offsets
from harness.clients.kafka_settings import transacting
from harness.history.sends import Answer, Completion
from harness.model import Offset, TopicPartition
from harness.payload import ProducerRecord

_GRACE_S = 5.0

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
        said = self._driver.begin(self._client, "send", **_written(partition, batch))
        deadline = time.monotonic() + self._timeout_s + _GRACE_S
        return awaited(len(batch), _news(said), deadline, give_up, answered)

    def close(self) -> None:
        """See :class:`harness.clients.library.Sender`."""
        self._driver.tell(self._client, "close")


def _news(said: queue.SimpleQueue[Said]) -> Iterator[Mapping[int, Answer]]:
    """The answers by index, until the process has ended."""
    while True:
        news: dict[int, Answer] = {}
        for one in taken(said):
            if "index" not in one:
                yield news
                return
            news[one["index"]] = _answer_of(one)
        yield news


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
        self.offsets: list[Offset | None] = []
        self._driver = driver
        self._settings = {**common, **transacting(name, timeout_s)}
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
