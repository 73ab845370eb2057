from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

from harness.client_ports import BEGINNING, MOVED_ERRORS, Polled
from harness.client_properties import Access
from harness.clients.reader import Reader
from harness.clients.sender import Sender
from harness.errors import EnvironmentFault
from harness.history.polls import OutOfRange
from harness.history.recorder import PolledRecord
from harness.model import Offset, TopicPartition
from harness.targets.builtin import BuiltinTarget
from tests.records import CREATED_MS, bare, record

ZERO, ONE = TopicPartition("ledger", 0), TopicPartition("ledger", 1)


@contextmanager
def reading(bootstrap: str, positions: Mapping[TopicPartition, Offset], log: logging.Logger) -> Iterator[Reader]:
    reader = Reader(Access(bootstrap), "test", positions, log)
    try:
        yield reader
    finally:
        reader.close()


def polled(reader: Reader, count: int) -> list[PolledRecord]:
    records: list[PolledRecord] = []
    deadline = time.monotonic() + 60
    while len(records) < count and time.monotonic() < deadline:
        found, error, _ = reader.poll(count, 0.2)
        assert error is None
        records += found
    return records


@pytest.fixture(scope="module")
def sent(cluster: BuiltinTarget) -> BuiltinTarget:
    """``ledger-0`` holds 10, 11, a record of ``ledger-1``, and bytes that are no record of ours."""
    sender = Sender(Access(cluster.bootstrap()), "test", -1, 5.0, logging.getLogger("seawall.tests.sent"))
    for one in (
        record(10),
        record(11),
        record(12, ONE),
        bare(b"hello"),
    ):
        assert sender.send(ZERO, one).kind == "ok"
    sender.close()
    return cluster


def test_records_come_with_offset_value_and_epoch(sent: BuiltinTarget, log: logging.Logger) -> None:
    with reading(sent.bootstrap(), {ZERO: BEGINNING, ONE: BEGINNING}, log) as reader:
        first, second, *_ = polled(reader, 4)
        assert first == PolledRecord("ledger", 0, 0, 10, 0, True, CREATED_MS)
        assert second == PolledRecord("ledger", 0, 1, 11, 0, True, CREATED_MS)
        assert reader.positions[ZERO] == 4


def test_a_misplaced_record_and_foreign_bytes_are_not_intact(sent: BuiltinTarget, log: logging.Logger) -> None:
    with reading(sent.bootstrap(), {ZERO: 2}, log) as reader:
        misplaced, foreign = polled(reader, 2)
    assert (misplaced.value, misplaced.intact) == (12, False)
    assert (foreign.value, foreign.intact) == (None, False)


def test_what_was_sent_with_another_key_or_headers_or_timestamp_is_not_intact(
    cluster: BuiltinTarget, log: logging.Logger
) -> None:
    one = record(20, ONE)
    garbled = [
        one._replace(key=b"21"),
        one._replace(headers=one.headers[1:]),
        one._replace(timestamp_ms=CREATED_MS + 1),
    ]
    sender = Sender(Access(cluster.bootstrap()), "test", -1, 5.0, logging.getLogger("seawall.tests.sent"))
    answers = [sender.send(ONE, each) for each in (one, *garbled)]
    sender.close()
    assert answers[0].offset is not None
    with reading(cluster.bootstrap(), {ONE: answers[0].offset}, log) as reader:
        found = polled(reader, 4)
    assert [(each.value, each.intact) for each in found] == [(20, True), *[(20, False)] * 3]
    assert [each.timestamp_ms for each in found] == [*[CREATED_MS] * 3, CREATED_MS + 1]


def test_a_position_beyond_the_log_is_an_error_and_no_jump(sent: BuiltinTarget, log: logging.Logger) -> None:
    with reading(sent.bootstrap(), {ZERO: 1000}, log) as reader:
        deadline = time.monotonic() + 60
        while (answer := reader.poll(10, 0.2)).error is None and time.monotonic() < deadline:
            assert not answer.records
        assert answer.error in MOVED_ERRORS
        assert answer.out_of_range == OutOfRange(ZERO, 1000)
        assert reader.positions[ZERO] == 1000


def test_the_end_is_the_leaders_high_watermark(sent: BuiltinTarget, log: logging.Logger) -> None:
    with reading(sent.bootstrap(), {ZERO: BEGINNING}, log) as reader:
        assert reader.bounds(ZERO, 5.0) == (0, 4)
        with pytest.raises(EnvironmentFault, match="the end of nowhere-0 is not known"):
            reader.bounds(TopicPartition("nowhere", 0), 1.0)


class Ended:
    """A consumer of librdkafka's that is of no use any more."""

    def refuse(self, *_: object, **__: object) -> None:
        raise KafkaException(KafkaError(KafkaError._FATAL, fatal=True))

    consume = get_watermark_offsets = close = refuse


def test_a_reader_whose_client_fails_says_so_in_its_answers(log: logging.Logger) -> None:
    reader = Reader(Access("127.0.0.1:1"), "test", {ZERO: 0}, log)
    reader._consumer, alive = cast("Consumer", Ended()), reader._consumer
    try:
        assert reader.poll(10, 0.1) == Polled([], "_FATAL")
        with pytest.raises(EnvironmentFault, match="_FATAL"):
            reader.bounds(ZERO, 0.1)
        reader.close()
    finally:
        alive.close()
