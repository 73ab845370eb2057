"""Clients that do otherwise than they report: a wrapper of the port of clients, with one lie at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from harness.client_ports import (
    BEGINNING,
    Answered,
    Begins,
    CommittedOffset,
    OffsetForTime,
    Polled,
    Rebalanced,
    Transacted,
    not_recorded,
)
from harness.history.delete_records_log import DeleteRecordsLog
from harness.history.polls import OutOfRange
from harness.history.recorder import Change, PolledRecord
from harness.history.sends import Answer
from harness.model import NodeId, TopicPartition
from harness.orders import DeleteOrder
from harness.payload import ProducerRecord

_EVERY = 4
"""Every so manyth time a client lies."""


LIES = {
    "acknowledges_what_it_never_sent": "reports an acknowledgement that never came",
    "reports_another_offset": "reports an offset other than that of the acknowledgement",
    "sends_twice": "sends a record again, and reports one send",
    "reports_refusals": "reports that a record was refused which was acknowledged",
    "drops_a_record": "leaves a record out that it was sent",
    "reports_a_record_elsewhere": "reports a record at another offset",
    "delivers_late": "delivers two records in the wrong order",
    "makes_up_a_record": "delivers a record that it was not sent",
    "commits_nothing": "reports a commit that it did not send",
    "misstates_a_commit": "reports another committed offset than the coordinator answered",
    "ends_a_transaction_otherwise": "aborts what it reports as committed, and the other way round",
    "says_that_it_is_out_of_range": "reports that its position is out of range, which no broker has said",
    "begins_anew": "begins at the beginning of its partitions, and reports what its group has committed",
    "leaves_a_record_out": "reports a later offset than it was answered for a time",
    "remembers_a_commit": "reports the coordinator's first answer, and does not ask again",
    "asks_to_delete_more": "has one record more deleted than it reports",
    "reports_a_deletion": "reports that records are deleted, and has none deleted",
    "reports_that_a_deletion_was_refused": "reports a refusal that no broker has answered",
}
"""What clients may do, by the name of the lie."""


class Liar:
    """Clients of a port that tell the truth, until one of them does not.

    Args:
        clients: the port.
        lie: one of :data:`LIES`; empty: none.
    """

    def __init__(self, clients: Any, lie: str) -> None:
        self._clients = clients
        self._lie = lie

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clients, name)

    def producer(self, *arguments: Any, **named: Any) -> Any:
        return LyingProducer(self._clients.producer(*arguments, **named), self._lie)

    def transactional_producer(self, *arguments: Any, **named: Any) -> Any:
        return LyingTransactionalProducer(self._clients.transactional_producer(*arguments, **named), self._lie)

    def consumer(self, *arguments: Any, **named: Any) -> Any:
        return LyingConsumer(self._clients.consumer(*arguments, **named), self._lie)

    def member(self, *arguments: Any, **named: Any) -> Any:
        *others, rebalanced = arguments
        if self._lie == "begins_anew":
            rebalanced = _at_the_beginning(rebalanced)
        return LyingMember(self._clients.member(*others, rebalanced, **named), self._lie)

    async def delete_records(self, order: DeleteOrder, orders: DeleteRecordsLog) -> str | None:
        error: str | None
        if order.before and self._lie == "asks_to_delete_more":
            error = await self._clients.delete_records(order, _OneLess(orders))
        elif order.before and self._lie in ("reports_a_deletion", "reports_that_a_deletion_was_refused"):
            error = None if self._lie == "reports_a_deletion" else "UNKNOWN_SERVER_ERROR"
            await self._clients.sleep(0.01)
            for place in order.partitions:
                orders.ended(orders.sent(place, order.before, round(order.timeout_s * 1_000)), error, order.before)
        else:
            error = await self._clients.delete_records(order, orders)
        return error


class _OneLess:
    """Records requests for one offset less than what is sent."""

    def __init__(self, orders: DeleteRecordsLog) -> None:
        self._orders = orders

    def sent(self, where: TopicPartition, before: int | None, timeout_ms: int, node: NodeId | None = None) -> int:
        return self._orders.sent(where, before and before - 1, timeout_ms, node)

    def ended(self, order: int, error: str | None, low_watermark: int | None = None) -> None:
        self._orders.ended(order, error, low_watermark)


def _at_the_beginning(rebalanced: Rebalanced) -> Rebalanced:
    """Ask where to begin, and begin elsewhere."""

    async def lying(change: Change, partitions: Sequence[TopicPartition]) -> Begins | None:
        begins = await rebalanced(change, partitions)
        return begins and dict.fromkeys(begins, CommittedOffset(BEGINNING))

    return lying


class _Lying:
    """Passes everything on; counts the occasions to lie."""

    def __init__(self, true: Any, lie: str) -> None:
        self._true = true
        self._lie = lie
        self._occasions = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._true, name)

    def _lies(self, *lies: str) -> bool:
        if self._lie not in lies:
            return False
        self._occasions += 1
        return self._occasions % _EVERY == 0


class LyingProducer(_Lying):
    """Lies about sends."""

    _last: Answer | None = None

    async def send_batch(
        self, partition: TopicPartition, batch: Sequence[ProducerRecord], answered: Answered = not_recorded
    ) -> list[Answer]:
        if self._last is not None and self._lies("acknowledges_what_it_never_sent"):
            return _told([Answer("ok", (self._last.offset or 0) + 1) for _ in batch], answered)
        lies = self._lies("reports_another_offset")
        twice = self._lies("sends_twice")
        answers: list[Answer] = await self._true.send_batch(partition, batch)
        if twice:
            await self._true.send_batch(partition, batch)
        if lies:
            answers = [a._replace(offset=a.offset + 1) if a.offset is not None else a for a in answers]
        if self._lies("reports_refusals"):
            answers = [Answer("fail", None, "TOPIC_AUTHORIZATION_FAILED") for _ in answers]
        self._last = next((one for one in reversed(answers) if one.kind == "ok"), self._last)
        return _told(answers, answered)


def _told(answers: list[Answer], answered: Callable[[Sequence[int], Sequence[Answer]], None]) -> list[Answer]:
    answered(range(len(answers)), answers)
    return answers


class LyingTransactionalProducer(_Lying):
    """Lies about the ends of transactions."""

    async def end(self, *, commits: bool) -> Transacted:
        lies = self._lies("ends_a_transaction_otherwise")
        ended: Transacted = await self._true.end(commits=commits is not lies)
        return ended._replace(kind="ok" if commits else "fail") if lies and ended.kind != "info" else ended


class LyingConsumer(_Lying):
    """Lies about polls."""

    async def poll(self, max_records: int, timeout_s: float) -> Polled:
        polled: Polled = await self._true.poll(max_records, timeout_s)
        records = self._bent(polled.records)
        if records and self._lies("says_that_it_is_out_of_range"):
            place = TopicPartition(records[-1].topic, records[-1].partition)
            return Polled(records, "_AUTO_OFFSET_RESET", OutOfRange(place, records[-1].offset + 1))
        return polled._replace(records=records)

    async def offset_for_time(self, partition: TopicPartition, timestamp_ms: int, timeout_s: float) -> OffsetForTime:
        found: OffsetForTime = await self._true.offset_for_time(partition, timestamp_ms, timeout_s)
        if found.offset is None or not self._lies("leaves_a_record_out"):
            return found
        return OffsetForTime(found.offset + 1)

    def _bent(self, records: Sequence[PolledRecord]) -> list[PolledRecord]:
        bent: list[PolledRecord] = []
        for record in records:
            if not self._lies("drops_a_record"):
                bent.append(record)
            if bent and self._lies("reports_a_record_elsewhere"):
                bent[-1] = record._replace(offset=record.offset + 1)
            if len(bent) > 1 and self._lies("delivers_late"):
                bent[-2:] = [bent[-1], bent[-2]]
            if self._lies("makes_up_a_record"):
                bent[-1] = record._replace(value=999_999_999)
        return bent


class LyingMember(LyingConsumer):
    """Lies about the commits of a member of a group, too."""

    _first: Mapping[TopicPartition, CommittedOffset] = MappingProxyType({})

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> str | None:
        if self._lies("commits_nothing"):
            return None
        error: str | None = await self._true.commit(offsets)
        return error

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: float
    ) -> Mapping[TopicPartition, CommittedOffset] | str:
        names = tuple(partitions)
        known = {name: self._first[name] for name in names if name in self._first}
        if len(known) == len(names) and self._lie == "remembers_a_commit":
            return known
        told: Mapping[TopicPartition, CommittedOffset] | str = await self._true.committed(names, timeout_s)
        if not isinstance(told, str):
            self._first = {**told, **self._first}
        if isinstance(told, str) or not told or not self._lies("misstates_a_commit"):
            return told
        return {where: one._replace(offset=max(0, one.offset - 1)) for where, one in told.items()}
