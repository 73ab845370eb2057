"""Kafka's own Java clients as seawall uses them: what librdkafka does in :mod:`harness.clients`, by the Java process.

Errors have the names of the protocol's error codes, as ``NOT_ENOUGH_REPLICAS``, or those that librdkafka has for its
own where there are such (``_TIMED_OUT``), or that of the Java exception.
"""

from __future__ import annotations

import base64
import logging
import queue
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from harness import payload
from harness.client_ports import (
    ABORTED,
    LEFT_UNKNOWN,
    Answered,
    Bounds,
    CommittedOffset,
    Isolation,
    Manner,
    Membership,
    Polled,
    Transacted,
)
from harness.clients.java.driver import Answer as Said
from harness.clients.java.driver import Driver
from harness.clients.library import OnRebalance
from harness.errors import EnvironmentFault
from harness.history.recorder import PolledRecord
from harness.history.sends import Answer, Completion
from harness.model import NO_EPOCH, NO_GENERATION, Offset, TopicPartition
from harness.payload import ProducerRecord, StoredRecord

_POLL_RECORDS = 500
_HEARTBEATS = 10
_LOOK_S = 0.1
_GRACE_S = 5.0
_COMMIT_S = 3.0
_CLOSE_MS = 1000
_BYTES_BESIDE = 150
"""About what a record takes besides its text, where batches are counted in bytes."""

_ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}

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

_IMPATIENT = {
    "metadata.max.age.ms": 1000,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 250,
    "socket.connection.setup.timeout.ms": 1000,
    "retry.backoff.ms": 100,
}
"""As for librdkafka: a client that takes seconds to notice a new leader measures itself."""


class Java:
    """Implements :class:`harness.clients.library.ClientLibrary`.

    Args:
        bootstrap: ``host:port,...``.
        classpath: the jars of the release whose client it is.
        log: takes what the process prints.

    Raises:
        EnvironmentFault: the process cannot be started.
    """

    def __init__(self, bootstrap: str, classpath: str, log: logging.Logger) -> None:
        self._bootstrap = bootstrap
        self._driver = Driver(classpath, log)
        self._log = log

    def sender(self, name: str, acks: int, timeout_s: float, manner: Manner) -> Sender:
        """See :class:`harness.clients.library.ClientLibrary`."""
        return Sender(self._driver, {**self._common(name), **settings_of(manner, acks, timeout_s)}, timeout_s)

    def transactional_sender(self, name: str, timeout_s: float) -> TransactionalSender:
        """See :class:`harness.clients.library.ClientLibrary`."""
        return TransactionalSender(self._driver, self._common(name), name, timeout_s)

    def reader(
        self,
        name: str,
        positions: Mapping[TopicPartition, Offset],
        epochs: Mapping[TopicPartition, int] | None,
        isolation: Isolation,
    ) -> Reader:
        """See :class:`harness.clients.library.ClientLibrary`."""
        return Reader(self._driver, {**self._common(name), **_reading(isolation)}, positions, epochs, isolation)

    def group_offsets(self, name: str, group: str) -> GroupOffsets:
        """See :class:`harness.clients.library.ClientLibrary`."""
        settings = {**self._common(name), **_reading("read_committed"), "group.id": group}
        return GroupOffsets(self._driver, settings)

    def member(self, name: str, membership: Membership, isolation: Isolation, rebalanced: OnRebalance) -> Member:
        """See :class:`harness.clients.library.ClientLibrary`."""
        settings = {**self._common(name), **_reading(isolation), **_belonging(membership)}
        return Member(self._driver, settings, membership, rebalanced)

    def close(self) -> None:
        """See :class:`harness.clients.library.ClientLibrary`: ends the process."""
        self._driver.close()

    def _common(self, name: str) -> dict[str, object]:
        return {**_IMPATIENT, "bootstrap.servers": self._bootstrap, "client.id": name}


def settings_of(manner: Manner, acks: int, timeout_s: float) -> dict[str, object]:
    """``manner`` as settings of a producer that waits ``timeout_s`` for each answer."""
    request_ms = max(1, int(manner.request_timeout_s(timeout_s) * 1000))
    linger_ms = 0 if manner.linger_s is None else int(manner.linger_s * 1000)
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


def _reading(isolation: Isolation) -> dict[str, object]:
    """How all our consumers read; see :func:`harness.clients.reader.reading`."""
    return {
        "enable.auto.commit": False,
        "auto.offset.reset": "none",
        "isolation.level": isolation,
        "fetch.max.wait.ms": 100,
        "max.poll.records": _POLL_RECORDS,
        "allow.auto.create.topics": False,
        "request.timeout.ms": 3000,
        "default.api.timeout.ms": 3000,
    }


def _belonging(membership: Membership) -> dict[str, object]:
    session_ms = round(membership.session_timeout_s * 1000)
    static = {} if membership.instance is None else {"group.instance.id": membership.instance}
    return {
        "group.id": membership.group,
        "partition.assignment.strategy": _ASSIGNORS[membership.assignor],
        "session.timeout.ms": session_ms,
        "heartbeat.interval.ms": max(session_ms // _HEARTBEATS, 1),
        "max.poll.interval.ms": max(round(membership.poll_timeout_s * 1000), session_ms),
        **static,
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
            "headers": [[name, None if content is None else _text(content)] for name, content in one.headers],
        }
        for one in batch
    ]
    return {"topic": partition.topic, "partition": partition.partition, "records": records}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


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
        said = self._ask("offsets", member=metadata, offsets=_offsets(offsets))
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


class Reader:
    """Implements :class:`harness.clients.library.Reader`."""

    def __init__(
        self,
        driver: Driver,
        settings: Mapping[str, object],
        positions: Mapping[TopicPartition, Offset],
        epochs: Mapping[TopicPartition, int] | None,
        isolation: Isolation,
    ) -> None:
        self.positions = dict(positions)
        self.isolation = isolation
        self._driver = driver
        self._client = driver.client("consumer", settings)
        known = epochs or {}
        begins = {name: CommittedOffset(at, known.get(name, NO_EPOCH)) for name, at in positions.items()}
        driver.ask(self._client, "assign", positions=_offsets(begins))

    def poll(self, max_records: int, timeout_s: float) -> Polled:
        """See :class:`harness.clients.library.Reader`; ``max_records`` is a setting of the Java client."""
        del max_records
        said = self._driver.ask(self._client, "poll", timeout_ms=int(timeout_s * 1000))
        self.positions |= {TopicPartition(topic, number): at for topic, number, at in said.get("positions", ())}
        return _polled(said)

    def bounds(self, partition: TopicPartition, timeout_s: float) -> Bounds:
        """See :class:`harness.clients.library.Reader`."""
        said = self._driver.ask(
            self._client, "bounds", topic=partition.topic, partition=partition.partition,
            timeout_ms=int(timeout_s * 1000),
        )  # fmt: skip
        if "error" in said:
            raise EnvironmentFault(f"the end of {partition} is not known: {said['error']}.")
        return Bounds(said["start"], said["stop"])

    def close(self) -> None:
        """See :class:`harness.clients.library.Reader`."""
        self._driver.tell(self._client, "close", timeout_ms=0)


class GroupOffsets:
    """Implements :class:`harness.clients.library.GroupOffsets`."""

    def __init__(self, driver: Driver, settings: Mapping[str, object]) -> None:
        self._driver = driver
        self._client = driver.client("consumer", settings)

    def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: float
    ) -> dict[TopicPartition, CommittedOffset] | str:
        """See :class:`harness.clients.library.GroupOffsets`."""
        asked = [[name.topic, name.partition] for name in partitions]
        said = self._ask("committed", partitions=asked, timeout_ms=int(timeout_s * 1000))
        if "error" in said:
            return str(said["error"])
        return {TopicPartition(topic, n): CommittedOffset(at, epoch) for topic, n, at, epoch in said["offsets"]}

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> str | None:
        """See :class:`harness.clients.library.GroupOffsets`."""
        return self._ask("commit", offsets=_offsets(offsets), timeout_ms=int(_COMMIT_S * 1000)).get("error")

    def close(self) -> None:
        """See :class:`harness.clients.library.GroupOffsets`."""
        self._driver.tell(self._client, "close", timeout_ms=0)

    def _ask(self, do: str, **words: object) -> Said:
        return self._driver.ask(self._client, do, **words)


class Member(GroupOffsets):
    """Implements :class:`harness.clients.library.Member`."""

    def __init__(
        self, driver: Driver, settings: Mapping[str, object], membership: Membership, rebalanced: OnRebalance
    ) -> None:
        super().__init__(driver, settings)
        self.positions: dict[TopicPartition, CommittedOffset] = {}
        self._rebalanced = rebalanced
        self._has: set[TopicPartition] = set()
        self._is_nested = self._is_lost_in_doubt = False
        driver.ask(self._client, "subscribe", topics=membership.topics)

    @property
    def generation(self) -> int:
        """See :class:`harness.clients.library.Member`."""
        return int(self._ask("generation").get("generation", NO_GENERATION))

    @property
    def metadata(self) -> object:
        """See :class:`harness.clients.library.Member`: its number, which requests of producers name."""
        return self._client

    def poll(self, max_records: int, timeout_s: float) -> Polled:
        """See :class:`harness.clients.library.Member`."""
        del max_records
        polled = _polled(self._run("poll", int(timeout_s * 1000)))
        for record in polled.records:
            name = TopicPartition(record.topic, record.partition)
            if name in self._has:
                self.positions[name] = CommittedOffset.after(record)
        if self._is_lost_in_doubt:
            return Polled(polled.records, polled.error or LEFT_UNKNOWN)
        return polled

    def close(self) -> None:
        """See :class:`harness.clients.library.Member`."""
        self._run("close", _CLOSE_MS)

    def _run(self, do: str, timeout_ms: int) -> Said:
        """Run what may bring a rebalance, in which the Java process waits until it knows where to begin."""
        said: Said = {}
        for said in self._driver.answers(self._client, do, timeout_ms=timeout_ms):
            if "change" in said:
                self._is_nested = True
                self._change(said)
                self._is_nested = False
        return said

    def _change(self, said: Said) -> None:
        names = [TopicPartition(topic, number) for topic, number in said["partitions"]]
        change = said["change"]
        if change == "assigned":
            self._has.update(names)
        if change == "lost":
            self._forget(names)
        begins = self._rebalanced(change, names)
        if change == "revoked":
            self._forget(names)
        self._is_lost_in_doubt |= begins is None
        written = None if begins is None else _offsets(begins)
        self._driver.tell(self._client, "begin", begins=written, nested=True)

    def _forget(self, names: Iterable[TopicPartition]) -> None:
        for name in names:
            self._has.discard(name)
            self.positions.pop(name, None)

    def _ask(self, do: str, **words: object) -> Said:
        return super()._ask(do, **words, **({"nested": True} if self._is_nested else {}))


def _offsets(offsets: Mapping[TopicPartition, CommittedOffset]) -> list[list[object]]:
    return [[name.topic, name.partition, one.offset, one.leader_epoch] for name, one in sorted(offsets.items())]


def _polled(said: Said) -> Polled:
    return Polled([_record(one) for one in said.get("records", ())], said.get("error"))


def _record(written: Sequence[Any]) -> PolledRecord:
    topic, partition, offset, epoch, timestamp, is_created, key, value, headers = written
    carried = [(name, _data(content)) for name, content in headers]
    stored = StoredRecord(_data(key), _data(value), carried, timestamp if is_created else None)
    found, intact = payload.judge(stored, TopicPartition(topic, partition))
    known_ms = timestamp if timestamp >= 0 else None
    return PolledRecord(topic, partition, offset, found, epoch if epoch >= 0 else None, intact, known_ms)


def _data(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
