"""Consumers of Kafka's own Java client: those of assigned partitions, and members of groups."""

from __future__ import annotations

import base64
import queue
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness import payload
from harness.client_ports import (
    LEFT_UNKNOWN,
    Begins,
    Bounds,
    CommitAnswered,
    CommittedOffset,
    Isolation,
    OffsetForTime,
    Polled,
)
from harness.clients import kafka_settings
from harness.clients.java.driver import Answer as Said
from harness.clients.java.driver import Driver, written_offsets
from harness.clients.library import OnRebalance
from harness.errors import EnvironmentFault
from harness.history.polls import OutOfRange
from harness.history.recorder import PolledRecord
from harness.membership import Membership
from harness.model import NO_EPOCH, NO_GENERATION, Offset, TopicPartition
from harness.payload import StoredRecord

_ENDED = "_DESTROY"
"""The error of what was asked of a client whose process has ended."""

_COMMIT_S = 3.0
_CLOSE_MS = 1000

_ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


def reading(isolation: Isolation) -> dict[str, object]:
    """How all our consumers read."""
    return {**kafka_settings.reading(isolation), "default.api.timeout.ms": 3000}


def belonging(membership: Membership) -> dict[str, object]:
    """The settings of a member of a group."""
    own = _classic(membership) if membership.protocol == "classic" else _consumer(membership)
    return {**kafka_settings.belonging(membership), **own}


def _classic(membership: Membership) -> dict[str, object]:
    return {
        "partition.assignment.strategy": _ASSIGNORS[membership.assignor],
        **kafka_settings.heartbeating(membership),
    }


def _consumer(membership: Membership) -> dict[str, object]:
    return {"group.protocol": "consumer", "group.remote.assignor": membership.remote_assignor}


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
        driver.ask(self._client, "assign", positions=written_offsets(begins))

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

    def offset_for_time(self, partition: TopicPartition, timestamp_ms: int, timeout_s: float) -> OffsetForTime:
        """See :class:`harness.client_ports.Consumer`."""
        said = self._driver.ask(
            self._client, "offset_for_time", topic=partition.topic, partition=partition.partition,
            timestamp_ms=timestamp_ms, timeout_ms=int(timeout_s * 1000),
        )  # fmt: skip
        return OffsetForTime(said.get("offset"), said.get("error"))

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
        return self._ask("commit", offsets=written_offsets(offsets), timeout_ms=int(_COMMIT_S * 1000)).get("error")

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
        self._commits: list[tuple[queue.SimpleQueue[Said], CommitAnswered]] = []
        by_broker = membership.protocol == "consumer"
        words = {"topics": membership.topics, "pattern": membership.pattern, "by_broker": by_broker}
        said = driver.ask(self._client, "subscribe", **words)
        if said.get("error") not in (None, _ENDED):
            what = membership.pattern or ", ".join(membership.topics)
            raise EnvironmentFault(f"Kafka's own client does not subscribe to {what}: {said['error']}, {said['text']}.")

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
            return polled._replace(error=polled.error or LEFT_UNKNOWN)
        return polled

    def close(self) -> None:
        """See :class:`harness.clients.library.Member`."""
        self._run("close", _CLOSE_MS)

    def commit_async(self, offsets: Mapping[TopicPartition, CommittedOffset], answered: CommitAnswered) -> None:
        """See :class:`harness.clients.library.Member`."""
        given = self._driver.begin(self._client, "commit_async", offsets=written_offsets(offsets))
        self._commits.append((given, answered))

    def _run(self, do: str, timeout_ms: int) -> Said:
        """Run what may bring a rebalance, in which the Java process waits until it knows where to begin."""
        said: Said = {}
        for said in self._driver.answers(self._client, do, timeout_ms=timeout_ms):
            if "change" in said:
                self._is_nested = True
                try:
                    self._change(said)
                finally:
                    self._is_nested = False
        self._serve_answers()
        return said

    def _serve_answers(self) -> None:
        """Hand the answers to asynchronous commits over that have come."""
        waiting, self._commits = self._commits, []
        for given, answered in waiting:
            try:
                answered(given.get_nowait().get("error"))
            except queue.Empty:
                self._commits.append((given, answered))

    def _change(self, said: Said) -> None:
        names = [TopicPartition(topic, number) for topic, number in said["partitions"]]
        change = said["change"]
        if change == "assigned":
            self._has.update(names)
        if change == "lost":
            self._forget(names)
        begins: Begins | None = None
        try:
            begins = self._rebalanced(change, names)
        finally:  # the process waits for it, and could not even be closed
            self._is_lost_in_doubt |= begins is None
            written = None if begins is None else written_offsets(begins)
            self._driver.tell(self._client, "begin", begins=written, nested=True)
            if change == "revoked":
                self._forget(names)

    def _forget(self, names: Iterable[TopicPartition]) -> None:
        for name in names:
            self._has.discard(name)
            self.positions.pop(name, None)

    def _ask(self, do: str, **words: object) -> Said:
        return super()._ask(do, **words, **({"nested": True} if self._is_nested else {}))


def _polled(said: Said) -> Polled:
    found = [OutOfRange(TopicPartition(*place), position) for *place, position in said.get("out_of_range", ())]
    return Polled([polled_record(one) for one in said.get("records", ())], said.get("error"), next(iter(found), None))


def polled_record(written: Sequence[Any]) -> PolledRecord:
    """A record as the process writes it."""
    topic, partition, offset, epoch, timestamp, is_created, key, value, headers = written
    carried = [(name, _data(content)) for name, content in headers]
    stored = StoredRecord(_data(key), _data(value), carried, timestamp if is_created else None)
    found, intact = payload.judge(stored, TopicPartition(topic, partition))
    known_ms = timestamp if timestamp >= 0 else None
    return PolledRecord(topic, partition, offset, found, epoch if epoch >= 0 else None, intact, known_ms)


def _data(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
