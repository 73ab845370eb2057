"""A transaction is recorded as what it was: committed, proven never to be, or unknown."""

from __future__ import annotations

import logging
import multiprocessing
import threading
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException

from harness import payload
from harness.client_ports import ABORTED, CommittedOffset, Transacted
from harness.client_properties import Access
from harness.client_tasks.sending_process import TransactingProcess
from harness.clients import transactional_sender
from harness.clients.transactional_sender import TransactionalSender
from harness.clock import SystemClock
from harness.history.kept_recorder import KeptRecorder
from harness.history.sends import Completion
from harness.model import ProcessId, TopicPartition
from harness.payload import EVERYTHING
from tests.records import CREATED_MS, bare

LEDGER = TopicPartition("ledger", 0)


@pytest.mark.parametrize(
    ("ended", "kinds"),
    [
        (Transacted("ok", [4, 5]), {("ok", None)}),
        (Transacted("fail", [4, 5], ABORTED), {("fail", ABORTED)}),
        (Transacted("info", [4, None], "_TIMED_OUT"), {("info", "_TIMED_OUT")}),
    ],
)
def test_every_record_of_a_transaction_ends_as_the_transaction_does(
    ended: Transacted, kinds: set[tuple[Completion, str | None]]
) -> None:
    recorder = KeptRecorder("run", SystemClock())
    process = TransactingProcess(recorder, ProcessId(3), EVERYTHING)
    values = [payload.decode(record.value) for record in process.begin(LEDGER, 2, 0, CREATED_MS)]
    sent = process.end(ended)
    recorder.flush()
    rows = [row for row in recorder.rows if row["type"] != "invoke"]
    assert [one.value for one in sent] == [one.value for one in values if one] == [row["value"] for row in rows]
    assert {(one.kind, one.error) for one in sent} == {(row["type"], row["error"]) for row in rows} == kinds
    assert [one.offset for one in sent] == ended.offsets
    assert {row["op"] for row in rows if row["txn"]} == {row["op"] for row in recorder.rows}


def test_the_end_of_a_transaction_answers_for_all_its_parts() -> None:
    recorder, other = KeptRecorder("run", SystemClock()), TopicPartition("ledger", 1)
    process = TransactingProcess(recorder, ProcessId(3), EVERYTHING)
    process.begin(LEDGER, 1, 0, CREATED_MS)
    taken = process.taken([4])
    process.begin(other, 1, 0, CREATED_MS)
    assert [(one.partition, one.kind, one.offset) for one in taken] == [(LEDGER, "ok", 4)]
    assert [one.kind for one in process.taken([4, None])] == ["ok", "info"]
    assert process.begin(other, 0, 0, CREATED_MS) == []
    sent = process.end(Transacted("fail", [4, 0], ABORTED))
    recorder.flush()
    assert [(one.partition, one.kind, one.offset) for one in sent] == [(LEDGER, "fail", 4), (other, "fail", 0)]
    assert len({one.value for one in sent}) == 2
    assert [(row["type"], row["mop"], row["partition"]) for row in recorder.rows] == [
        ("invoke", 0, 0), ("invoke", 1, 1), ("fail", 0, 0), ("fail", 1, 1),
    ]  # fmt: skip


def test_without_a_coordinator_nothing_was_sent() -> None:
    sender = TransactionalSender(Access("127.0.0.1:1"), "no-coordinator", 1.0, logging.getLogger("test"))
    try:
        ended = sender.send(LEDGER, [bare(b"a"), bare(b"b")])
    finally:
        sender.close()
    assert ended is not None
    assert (ended.kind, ended.offsets) == ("fail", [None, None])
    assert ended.error


class Fenced:
    """A producer of librdkafka's that another has fenced off while it was sending."""

    made = 0

    def __init__(self, _: object) -> None:
        type(self).made += 1

    def refuse(self, *_: object) -> None:
        raise KafkaException(KafkaError(KafkaError._FENCED, fatal=True))

    def accept(self, *_: object, **__: object) -> None:
        pass

    init_transactions = begin_transaction = produce = purge = accept
    flush = poll = commit_transaction = abort_transaction = refuse


def test_after_a_fatal_error_the_next_transaction_has_a_new_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactional_sender, "Producer", Fenced)
    sender = TransactionalSender(Access("127.0.0.1:1"), "fenced", 1.0, logging.getLogger("test"))
    for number in range(2):
        assert sender.send(LEDGER, [bare(b"a")]) == Transacted("info", [None], "_FENCED")
        assert Fenced.made == number + 1
    sender.close()


def test_a_call_that_does_not_return_holds_the_process_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As librdkafka's does when the group's coordinator is gone: what becomes of the transaction is unknown."""
    forever = threading.Event()

    class Hanging(Fenced):
        made = 0
        poll = Fenced.accept

        def send_offsets_to_transaction(self, *_: object) -> None:
            forever.wait()

    monkeypatch.setattr(transactional_sender, "Producer", Hanging)
    monkeypatch.setattr(transactional_sender, "_OVERDUE_S", 0.0)
    sender = TransactionalSender(Access("127.0.0.1:1"), "held up", 0.05, logging.getLogger("test"))
    assert sender.commit_offsets(object(), {LEDGER: CommittedOffset(3)}) == Transacted("info", [], "_TIMED_OUT")
    assert sender.initialise() is None
    assert Hanging.made == 2
    forever.set()
    sender.close()


def test_a_closed_producer_has_no_threads_whatever_refers_to_its_sender() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as alone:  # here other clients begin and end
        opened, closed = alone.apply(threads_of_one_sender)
    assert opened > 0
    assert closed == 0


def test_a_closed_producer_sends_nothing_any_more() -> None:
    sender = TransactionalSender(Access("127.0.0.1:1"), "closed", 1.0, logging.getLogger("test"))
    sender.close()
    sender.close()
    ended = sender.send(LEDGER, [bare(b"a")])
    assert ended is not None
    assert (ended.kind, ended.error) == ("fail", "_DESTROY")


def threads_of_one_sender() -> tuple[int, int]:
    """How many threads there are with it, and once it is closed."""
    sender = TransactionalSender(Access("127.0.0.1:1"), "closed", 1.0, logging.getLogger("test"))
    opened = threads_of_librdkafka()
    sender.close()
    return opened, threads_of_librdkafka()


def threads_of_librdkafka() -> int:
    return sum(one.read_text().startswith("rdk:") for one in Path("/proc/self/task").glob("*/comm"))
