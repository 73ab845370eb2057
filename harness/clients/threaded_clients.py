"""The port of clients in real time: the clients of a library, and a thread for every task.

What a task awaits blocks its thread, so a coroutine never suspends: one ``send(None)`` runs it to its end.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Generic, TypeVar

from harness.client_ports import (
    PLAIN,
    Answered,
    Begins,
    Bounds,
    CommitAnswered,
    CommittedOffset,
    Isolation,
    Manner,
    Member,
    OffsetForTime,
    Polled,
    Rebalanced,
    Transacted,
    not_recorded,
)
from harness.client_properties import Access
from harness.client_tasks.wire_transactions import WireTransactions
from harness.clients import library as blocking
from harness.clients.librdkafka_library import Librdkafka
from harness.clients.spoofed_fetch import spoof_fetch
from harness.clients.topics import delete_records
from harness.clients.wire import BlockingWire
from harness.errors import EnvironmentFault
from harness.history.delete_records_log import DeleteRecordsLog
from harness.history.recorder import Change
from harness.history.sends import Answer
from harness.history.shares import Acknowledging
from harness.membership import Membership
from harness.model import Offset, TopicPartition
from harness.orders import DeleteOrder, SpoofedFetchOrder
from harness.payload import ProducerRecord
from harness.share_ports import Acquired, ShareMembership

ResultT = TypeVar("ResultT")

_LOOK_S = 0.02
_ENDS_WITHIN_S = 300.0
"""How long clients may take to end, beyond the time for which the slowest waits for its answer. A call of a library
that never returns, which librdkafka has known, must not hold up a run for ever."""


class ThreadTask(Generic[ResultT]):
    """A coroutine in a thread, which starts at once; implements :class:`harness.orders.Pending`."""

    def __init__(self, work: Coroutine[Any, Any, ResultT]) -> None:
        self._work = work
        self._results: list[ResultT] = []
        self._failures: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def result(self) -> ResultT | None:
        """See :class:`harness.orders.Pending`."""
        if self._failures:
            raise self._failures[0]
        return self._results[0] if self._results else None

    def join(self, timeout_s: float) -> None:
        """Wait until it has ended, but no longer than ``timeout_s``."""
        self._thread.join(timeout_s)

    def waits_in(self) -> str:
        """The function in which it is now; empty: it has ended."""
        frame = sys._current_frames().get(self._thread.ident or 0)  # noqa: SLF001 - documented, and the only way
        while frame is not None and frame.f_code.co_filename == threading.__file__:
            frame = frame.f_back
        if frame is None or not self._thread.is_alive():
            return ""
        return f"{frame.f_code.co_qualname} ({frame.f_code.co_filename}, line {frame.f_lineno})"

    def _run(self) -> None:
        try:
            self._results.append(_to_its_end(self._work))
        except BaseException as failure:  # noqa: BLE001 (raised again where the result is looked at)
            self._failures.append(failure)


def _to_its_end(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine, which blocks and never suspends; returns its result."""
    try:
        work.send(None)
    except StopIteration as end:
        result: ResultT = end.value
        return result
    raise AssertionError("a task in real time has suspended: it awaits what is not in the port of clients")


class ThreadedClients:
    """Implements :class:`harness.client_ports.TransactionalClients` and :class:`harness.share_ports.SharingClients`.

    Args:
        access: to the brokers, in the order of their ids.
        log: takes what clients have to say.
        library: of the clients; None: librdkafka.
        prefix: with what the names of groups and clients begin, and so transactional ids, on a cluster that others use.
    """

    def __init__(
        self, access: Access, log: logging.Logger, library: blocking.ClientLibrary | None = None, prefix: str = ""
    ) -> None:
        self._access = access
        self._prefix = prefix
        self._library = library or Librdkafka(access, log)
        self._log = log
        self._stop = threading.Event()
        self._tasks: list[ThreadTask[Any]] = []
        self._slowest_s = 0.0

    @property
    def stopping(self) -> bool:
        """See :class:`harness.client_ports.Clients`."""
        return self._stop.is_set()

    def monotonic_ns(self) -> int:
        """See :class:`harness.client_ports.Clients`."""
        return time.monotonic_ns()

    def wall_ms(self) -> int:
        """See :class:`harness.client_ports.Clients`."""
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        """See :class:`harness.client_ports.Clients`."""
        self._stop.wait(seconds)

    def begin(self, work: Coroutine[Any, Any, ResultT]) -> ThreadTask[ResultT]:
        """See :class:`harness.client_ports.Clients`."""
        task = ThreadTask(work)
        self._tasks.append(task)
        return task

    def wait_until(self, holds: Callable[[], bool], timeout_s: float) -> bool:
        """See :class:`harness.client_ports.Clients`."""
        deadline = time.monotonic() + timeout_s
        while not holds():
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            time.sleep(min(left_s, _LOOK_S))
        return True

    def stop(self) -> None:
        """See :class:`harness.client_ports.Clients`."""
        self._stop.set()

    def join(self, timeout_s: float | None = None) -> None:
        """See :class:`harness.client_ports.Clients`."""
        until_s = time.monotonic() + self._slowest_s + _ENDS_WITHIN_S
        for task in self._tasks:
            task.join(max(0.0, until_s - time.monotonic()) if timeout_s is None else timeout_s)
        waiting = [where for task in self._tasks if timeout_s is None and (where := task.waits_in())]
        while self._tasks:
            self._tasks.pop(0).result()
        if waiting:
            raise EnvironmentFault(
                f"{len(waiting)} clients did not end within {self._slowest_s + _ENDS_WITHIN_S:g} s of their stop; the "
                f"first is in {waiting[0]}.",
                "See clients.log in the run directory; another client library is an option: workload.client.",
            )

    def producer(self, name: str, acks: int, timeout_s: float, manner: Manner = PLAIN) -> _Producer:
        """See :class:`harness.client_ports.Clients`."""
        self._slowest_s = max(self._slowest_s, timeout_s)
        return _Producer(self._library.sender(self._named(name), acks, timeout_s, manner), self._stop)

    def transactional_producer(
        self,
        name: str,
        timeout_s: float,
        *,
        numbered: bool = False,
    ) -> _TransactionalProducer:
        """See :class:`harness.client_ports.TransactionalClients`."""
        self._slowest_s = max(self._slowest_s, timeout_s)
        return _TransactionalProducer(self._library.transactional_sender(self._named(name), timeout_s))

    def wire_producer(self, name: str, timeout_s: float, version: int) -> WireTransactions:
        """See :class:`harness.client_ports.TransactionalClients`."""
        pairs = [address.rsplit(":", 1) for address in self._access.bootstrap.split(",")]
        wire = BlockingWire([(host, int(port)) for host, port in pairs])
        return WireTransactions(wire, self._named(name), timeout_s, version)

    def consumer(
        self,
        name: str,
        positions: Mapping[TopicPartition, Offset],
        epochs: Mapping[TopicPartition, int] | None = None,
        isolation: Isolation = "read_uncommitted",
    ) -> _Consumer:
        """See :class:`harness.client_ports.Clients`."""
        return _Consumer(self._library.reader(self._named(name), positions, epochs, isolation), self._log)

    def group(self, group: str) -> _GroupOffsets:
        """See :class:`harness.client_ports.Clients`."""
        return _GroupOffsets(
            self._library.group_offsets(self._named(group), f"{self._prefix}{group}"), group, self._log
        )

    def member(self, name: str, membership: Membership, isolation: Isolation, rebalanced: Rebalanced) -> _Member:
        """See :class:`harness.client_ports.Clients`."""

        def in_this_thread(change: Change, partitions: Sequence[TopicPartition]) -> Begins | None:
            return _to_its_end(rebalanced(change, partitions))

        ours = replace(membership, group=f"{self._prefix}{membership.group}")
        return _Member(self._library.member(self._named(name), ours, isolation, in_this_thread), isolation)

    def process(self) -> ThreadedProcess | None:
        """See :class:`harness.client_ports.Clients`."""
        library = self._library.apart()
        return None if library is None else ThreadedProcess(self._access, self._log, library, self, self._prefix)

    def share_consumer(self, name: str, membership: ShareMembership) -> _ShareConsumer:
        """See :class:`harness.share_ports.SharingClients`."""
        ours = replace(membership, group=f"{self._prefix}{membership.group}")
        return _ShareConsumer(self._sharing.share_consumer(self._named(name), ours))

    async def configure_group(self, group: str, configs: Mapping[str, str]) -> str | None:
        """See :class:`harness.share_ports.SharingClients`."""
        return self._sharing.configure_group(f"{self._prefix}{group}", configs)

    def _named(self, name: str) -> str:
        return f"{self._prefix or 'seawall-'}{name}"

    @property
    def _sharing(self) -> blocking.SharingLibrary:
        assert isinstance(self._library, blocking.SharingLibrary), "the plan refuses share groups with this library"
        return self._library

    async def delete_records(self, order: DeleteOrder, orders: DeleteRecordsLog) -> str | None:
        """See :class:`harness.client_ports.Clients`."""
        return delete_records(self._access, order.partitions, order.before, order.timeout_s, orders)

    async def spoof_fetch(self, order: SpoofedFetchOrder) -> str | None:
        """See :class:`harness.client_ports.Clients`."""
        host, port = self._access.bootstrap.split(",")[order.to].rsplit(":", 1)
        return spoof_fetch((host, int(port)), order)


class ThreadedProcess(ThreadedClients):
    """Implements :class:`harness.client_ports.ClientProcess`.

    Args:
        access: as for the clients that have made it.
        log: likewise.
        library: runs in the process.
        makers: those clients.
        prefix: as theirs.
    """

    def __init__(
        self,
        access: Access,
        log: logging.Logger,
        library: blocking.ClientLibrary,
        makers: ThreadedClients,
        prefix: str,
    ) -> None:
        super().__init__(access, log, library, prefix)
        self._stop = makers._stop  # noqa: SLF001 (they stop together)
        self._makers = makers

    def begin(self, work: Coroutine[Any, Any, ResultT]) -> ThreadTask[ResultT]:
        """See :class:`harness.client_ports.Clients`."""
        return self._makers.begin(work)

    def kill(self, *, silently: bool) -> None:
        """See :class:`harness.client_ports.ClientProcess`: by SIGKILL."""
        del silently
        self._library.close()


class _Producer:
    """Implements :class:`harness.client_ports.Producer`."""

    def __init__(self, sender: blocking.Sender, give_up: threading.Event) -> None:
        self._sender = sender
        self._give_up = give_up

    async def send_batch(
        self, partition: TopicPartition, batch: Sequence[ProducerRecord], answered: Answered = not_recorded
    ) -> list[Answer]:
        return self._sender.send_batch(partition, batch, give_up=self._give_up, answered=answered)

    def close(self) -> None:
        self._sender.close()


class _TransactionalProducer:
    """Implements :class:`harness.client_ports.TransactionalProducer`."""

    def __init__(self, sender: blocking.TransactionalSender) -> None:
        self._turn = threading.Lock()
        self._sender = sender

    @property
    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        with self._turn:  # each task has a thread of its own
            yield

    @property
    def offsets(self) -> Sequence[Offset | None]:
        return self._sender.offsets

    async def send(self, partition: TopicPartition, batch: Sequence[ProducerRecord]) -> Transacted | None:
        return self._sender.send(partition, batch)

    async def initialise(self) -> str | None:
        return self._sender.initialise()

    async def commit_offsets(
        self, member: Member, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> Transacted | None:
        return self._sender.commit_offsets(member.metadata, offsets)

    async def end(self, *, commits: bool) -> Transacted:
        return self._sender.end(commits=commits)

    def close(self) -> None:
        self._sender.close()


class _Consumer:
    """Implements :class:`harness.client_ports.Consumer`."""

    def __init__(self, reader: blocking.Reader, log: logging.Logger) -> None:
        self.isolation = reader.isolation
        self._reader = reader
        self._log = log

    @property
    def positions(self) -> Mapping[TopicPartition, Offset]:
        return self._reader.positions

    async def poll(self, max_records: int, timeout_s: float) -> Polled:
        return self._reader.poll(max_records, timeout_s)

    async def bounds(self, partition: TopicPartition, timeout_s: float) -> Bounds | None:
        try:
            return self._reader.bounds(partition, timeout_s)
        except EnvironmentFault as unknown:
            self._log.info("%s", unknown)
            return None

    async def offset_for_time(self, partition: TopicPartition, timestamp_ms: int, timeout_s: float) -> OffsetForTime:
        return self._reader.offset_for_time(partition, timestamp_ms, timeout_s)

    def close(self) -> None:
        self._reader.close()


class _Member:
    """Implements :class:`harness.client_ports.Member`."""

    def __init__(self, consumer: blocking.Member, isolation: Isolation) -> None:
        self.isolation = isolation
        self._consumer = consumer

    @property
    def positions(self) -> Mapping[TopicPartition, CommittedOffset]:
        return self._consumer.positions

    @property
    def generation(self) -> int:
        return self._consumer.generation

    @property
    def metadata(self) -> object:
        return self._consumer.metadata

    async def poll(self, max_records: int, timeout_s: float) -> Polled:
        return self._consumer.poll(max_records, timeout_s)

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> str | None:
        return self._consumer.commit(offsets)

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: float
    ) -> Mapping[TopicPartition, CommittedOffset] | str:
        return self._consumer.committed(partitions, timeout_s)

    def commit_async(self, offsets: Mapping[TopicPartition, CommittedOffset], answered: CommitAnswered) -> None:
        """See :class:`harness.client_ports.Member`."""
        self._consumer.commit_async(offsets, answered)

    def stand_still(self, seconds: float) -> None:
        """See the port: librdkafka's heartbeats cannot be stopped."""

    async def close(self) -> None:
        self._consumer.close()


class _ShareConsumer:
    """Implements :class:`harness.share_ports.ShareConsumer`."""

    def __init__(self, consumer: blocking.ShareConsumer) -> None:
        self._consumer = consumer

    async def acquire(self, timeout_s: float) -> Acquired:
        return self._consumer.acquire(timeout_s)

    async def acknowledge(self, said: Sequence[Acknowledging], timeout_s: float) -> list[Answer]:
        return self._consumer.acknowledge(said, timeout_s)

    async def close(self) -> None:
        self._consumer.close()


class _GroupOffsets:
    """Implements :class:`harness.client_ports.GroupOffsets`."""

    def __init__(self, client: blocking.GroupOffsets, group: str, log: logging.Logger) -> None:
        self._client = client
        self._group = group
        self._log = log

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: float
    ) -> Mapping[TopicPartition, CommittedOffset] | str:
        answer = self._client.committed(partitions, timeout_s)
        if isinstance(answer, str):
            self._log.info("offsets of group %s: %s", self._group, answer)
        return answer

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> str | None:
        error = self._client.commit(offsets)
        if error is not None:
            self._log.info("commit of group %s: %s", self._group, error)
        return error

    def close(self) -> None:
        self._client.close()
