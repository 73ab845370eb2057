"""Samples what a running cluster tells any client of its partitions: who leads them, and how far they are committed.

A thread of its own, with a client of its own, asks again and again, one question at a time: DescribeTopics for leaders
and ISRs, then ListOffsets, for the leader epoch and the high watermark of each partition (LATEST, read_uncommitted) and
for where its log begins (EARLIEST). Each answer that is news is a row of the timeline of kind ``metadata``. What such
rows prove, although any answer may be stale: :mod:`checkers.hw_regression` and :mod:`checkers.wrong_deletion`. A
partition about which there was no answer has a row, too, which says why.

At most :data:`_ROUNDS_PER_S` rounds and :data:`_ROWS_PER_S` rows a second, whatever the number of partitions; the rows
are in a file until the run is over.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from confluent_kafka import IsolationLevel, TopicCollection
from confluent_kafka import TopicPartition as Asked
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from harness.client_properties import Access
from harness.clients.librdkafka import ClientError, calling
from harness.clients.topics import admin_client
from harness.errors import EnvironmentFault
from harness.model import NO_LEADER, NO_NODE, NodeId, Offset, TopicPartition
from harness.target import Leadership, TopicSpec
from harness.targets.replica_logs import STATE_COLUMNS, Row

_ROUNDS_PER_S = 4
_ROWS_PER_S = 200
_ASKED_AT_ONCE = 1000
"""The most partitions of one round."""

_TIMEOUT_S = 1.0
_STOP_TIMEOUT_S = 30.0
_UNCHANGED_NS = 1_000_000_000
"""After how long an unchanged partition gets a row again, which records that it has not changed until then."""

_MS = 1_000_000
_NOTHING: Mapping[str, None] = dict.fromkeys((*STATE_COLUMNS, "detail"))


class Latest(NamedTuple):
    """The answer of a leader: its epoch, and its high watermark in it.

    Attributes:
        log_start: where a log of the partition begins, by a leader of any epoch; else why none has answered that.
    """

    leader_epoch: int
    high_watermark: Offset
    log_start: Offset | str


class MetadataClient:
    """Asks one cluster for what it tells of its partitions.

    Args:
        access: to it.

    Raises:
        EnvironmentFault: librdkafka cannot start a client.
    """

    def __init__(self, access: Access) -> None:
        self._client = admin_client(access)

    def leaders(self, topics: Sequence[str]) -> Mapping[TopicPartition, Leadership]:
        """The leader and the ISR of each partition, by the ids of brokers; without topics about which none answers.

        librdkafka asks the leader that it has learned of so for the watermark, and names the epoch that it has learned.
        It asks one broker about topics, again and again, also when that has died; about the whole cluster it asks any.
        """
        found = {}
        try:
            with calling():
                asked = self._client.describe_topics(TopicCollection(list(topics)), request_timeout=_TIMEOUT_S)
        except ClientError:
            return {}
        within = _Patience()
        for topic, answer in asked.items():
            try:
                with calling():
                    partitions = answer.result(timeout=within.left_s()).partitions
            except (ClientError, TimeoutError):
                return {one: known for one, known in self._of_all().items() if one.topic in topics}
            for one in partitions:
                leader = NO_LEADER if one.leader is None else NodeId(one.leader.id)
                found[TopicPartition(topic, one.id)] = Leadership(leader, tuple(NodeId(node.id) for node in one.isr))
        return found

    def _of_all(self) -> Mapping[TopicPartition, Leadership]:
        try:
            with calling():
                known = self._client.list_topics(timeout=_TIMEOUT_S)
        except ClientError:
            return {}
        return {
            TopicPartition(name, number): Leadership(NodeId(one.leader), tuple(map(NodeId, one.isrs)))
            for name, topic in known.topics.items()
            for number, one in topic.partitions.items()
        }

    def latest(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, Latest | str]:
        """What the leader of each partition answers, or why there is no answer, in a word or few.

        Both questions are under way at one time: a broker that does not answer makes this wait once.
        """
        ends = self._asked(partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]
        begins = self._asked(partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
        within = _Patience()
        return {one: _latest(_answer(ends[one], within), _answer(begins[one], within)) for one in partitions}

    def _asked(self, partitions: Sequence[TopicPartition], of: OffsetSpec) -> Mapping[TopicPartition, Any]:
        """The answers to ListOffsets that are awaited, or by which word it was refused."""
        try:
            with calling():
                asked = self._client.list_offsets(
                    {Asked(*one): of for one in partitions},
                    isolation_level=IsolationLevel.READ_UNCOMMITTED,
                    request_timeout=_TIMEOUT_S,
                )
        except ClientError as refusal:
            return dict.fromkeys(partitions, refusal.name)
        return {TopicPartition(one.topic, one.partition): answer for one, answer in asked.items()}


class _Patience:
    """For how long all answers of one question are waited for together."""

    def __init__(self) -> None:
        self._until_s = time.monotonic() + 2 * _TIMEOUT_S

    def left_s(self) -> float:
        return max(0.0, self._until_s - time.monotonic())


def _answer(asked: Any, within: _Patience) -> Any:
    """What librdkafka was answered to ListOffsets, or why there is no answer."""
    if isinstance(asked, str):
        return asked
    try:
        with calling():
            told = asked.result(timeout=within.left_s())
    except ClientError as refusal:
        return refusal.name
    except TimeoutError:
        return "no answer"
    return told if told.offset >= 0 else "no answer"  # so librdkafka says that the leader has not answered in time


def _latest(end: Any, begin: Any) -> Latest | str:
    if isinstance(end, str):
        return end
    if end.leader_epoch is None or end.leader_epoch < 0:
        return "an answer without a leader epoch"
    return Latest(end.leader_epoch, end.offset, begin if isinstance(begin, str) else begin.offset)


class MetadataSampler:
    """Samples from the first :meth:`follow` to :meth:`stop`.

    Args:
        connect: makes the client, in the thread that uses it.
        path: of the file for the rows; its directory is created when missing.
    """

    def __init__(self, connect: Callable[[], MetadataClient], path: Path) -> None:
        self._connect = connect
        self._path = path
        self._partitions: list[TopicPartition] = []
        self._last: dict[TopicPartition, Row] = {}
        self._over = threading.Event()
        self._problem: BaseException | None = None
        self._thread: threading.Thread | None = None

    def follow(self, topic: TopicSpec) -> None:
        """Sample the partitions of a topic, too."""
        self._partitions += [TopicPartition(topic.name, number) for number in range(topic.partitions)]
        if self._thread is None:
            self._thread = threading.Thread(target=self._to_its_end, name="sampling metadata", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ask about everything a last time, while the cluster still runs; idempotent."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(_STOP_TIMEOUT_S)
            if self._thread.is_alive() and self._problem is None:
                self._problem = TimeoutError(f"a question has not ended in {_STOP_TIMEOUT_S:g} s")

    def rows(self, run: str, number_of: Callable[[int], NodeId]) -> Iterator[Row]:
        """Rows of ``schema.TIMELINE``. Call after :meth:`stop`.

        Args:
            run: its id.
            number_of: by which number seawall calls the broker with an id.

        Raises:
            EnvironmentFault: the thread failed, so that the rows are not complete.
        """
        if self._problem is not None:
            raise EnvironmentFault(
                f"the cluster was not asked for its metadata to the end: {self._problem!r}."
            ) from self._problem
        if self._thread is None:
            return
        with self._path.open() as lines:
            for sequence, row in enumerate(map(json.loads, lines)):
                known = {name: row[name] for name in row if name not in ("leader", "isr")}
                leader = None if row["leader"] is None else number_of(row["leader"])
                isr = None if row["isr"] is None else [number_of(broker) for broker in row["isr"]]
                yield {
                    **_NOTHING, **known, "run": run, "node": NO_NODE, "incarnation": 0, "sequence": sequence,
                    "kind": "metadata", "leader": leader, "isr": isr,
                }  # fmt: skip

    def _to_its_end(self) -> None:
        """The body of the thread; keeps its exception for :meth:`rows`."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            client = self._connect()
            with self._path.open("w") as file:
                is_last = False
                while not is_last:
                    is_last = self._over.is_set()
                    self._ask_about_all(client, file, in_a_hurry=is_last)
        except BaseException as problem:  # noqa: BLE001 - rows() raises it
            self._problem = problem

    def _ask_about_all(self, client: MetadataClient, file: TextIO, *, in_a_hurry: bool) -> None:
        known = tuple(self._partitions)
        for begin in range(0, len(known), _ASKED_AT_ONCE):
            some = known[begin : begin + _ASKED_AT_ONCE]
            self._look(client, some, file)
            if not in_a_hurry:
                self._over.wait(max(1 / _ROUNDS_PER_S, len(some) / _ROWS_PER_S))

    def _look(self, client: MetadataClient, partitions: Sequence[TopicPartition], file: TextIO) -> None:
        """Ask about some partitions once."""
        leaders = client.leaders(sorted({one.topic for one in partitions}))
        asked_ns = time.monotonic_ns()
        answers = client.latest(partitions)
        times = {"time_ns": time.monotonic_ns(), "wall_ms": time.time_ns() // _MS}
        for partition, answer in answers.items():
            row = {**_row(partition, answer, leaders.get(partition)), **times}
            if _is_news(self._last.get(partition), row):
                self._last[partition] = row
                detail = {"asked_ns": asked_ns, **_refused(answer)}
                file.write(json.dumps({**row, "detail": json.dumps(detail)}) + "\n")


def _refused(answer: Latest | str) -> dict[str, str]:
    """Why an answer is missing, by the key of a row's detail."""
    if isinstance(answer, str):
        return {"refused": answer}
    return {"start_refused": answer.log_start} if isinstance(answer.log_start, str) else {}


def _row(partition: TopicPartition, answer: Latest | str, leadership: Leadership | None) -> Row:
    told = answer if isinstance(answer, Latest) else None
    return {
        **partition._asdict(),
        "leader": None if leadership is None else leadership.leader,
        "isr": None if leadership is None else leadership.isr,
        "leader_epoch": None if told is None else told.leader_epoch,
        "high_watermark": None if told is None else told.high_watermark,
        "log_start_offset": told.log_start if told is not None and isinstance(told.log_start, int) else None,
    }


def _is_news(last: Row | None, row: Row) -> bool:
    """Whether something has changed, or an unchanged row is due."""
    if last is None or row["time_ns"] - last["time_ns"] >= _UNCHANGED_NS:
        return True
    return any(row[key] != last[key] for key in ("leader", "isr", "leader_epoch", "high_watermark", "log_start_offset"))
