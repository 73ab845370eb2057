from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from confluent_kafka import KafkaError

from harness.client_ports import NUMBERED, Manner
from harness.client_properties import Access
from harness.clients.sender import Sender, classified, settings_of
from harness.history.sends import Answer
from harness.model import TopicPartition
from harness.target import ReplicaView
from harness.targets.builtin import BuiltinTarget
from tests.harness.broker.cluster import wait_until
from tests.harness.clients.played_broker import PlayedBroker
from tests.records import bare, record

LEDGER = TopicPartition("ledger", 0)

CODES = {name: code for name, code in vars(KafkaError).items() if isinstance(code, int) and name.lstrip("_").isupper()}
PROOFS = {
    "MSG_SIZE_TOO_LARGE",
    "RECORD_LIST_TOO_LARGE",
    "INVALID_REQUIRED_ACKS",
    "TOPIC_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "_QUEUE_FULL",
}


@contextmanager
def sending(bootstrap: str, log: logging.Logger, acks: int = -1, timeout_s: float = 5.0) -> Iterator[Sender]:
    sender = Sender(Access(bootstrap), "test", acks, timeout_s, log)
    try:
        yield sender
    finally:
        sender.close()


def test_no_error_fails_unless_it_proves_that_nothing_was_appended() -> None:
    failing = {name for name, code in CODES.items() if code and classified(KafkaError(code), None).kind == "fail"}
    assert len(CODES) > 100
    assert failing == PROOFS


@pytest.mark.parametrize("name", ["NOT_LEADER_FOR_PARTITION", "NOT_ENOUGH_REPLICAS", "_MSG_TIMED_OUT"])
def test_an_error_that_may_hide_an_append_is_info(name: str) -> None:
    assert classified(KafkaError(CODES[name]), 7) == Answer("info", error=name)


def test_an_answer_without_an_offset_has_none() -> None:
    assert classified(None, -1001) == Answer("ok", None)
    assert classified(None, 0) == Answer("ok", 0)


def test_a_sender_may_be_as_patient_as_it_likes(log: logging.Logger) -> None:
    with sending("127.0.0.1:1", log, timeout_s=1e6):
        pass


def test_records_go_to_consecutive_offsets(cluster: BuiltinTarget, log: logging.Logger) -> None:
    with sending(cluster.bootstrap(), log) as sender:
        answers = [sender.send(LEDGER, record(value)) for value in range(3)]
    assert [answer.kind for answer in answers] == ["ok"] * 3
    first = answers[0].offset
    assert first is not None
    assert [answer.offset for answer in answers] == [first, first + 1, first + 2]


def test_nobody_learns_an_offset_with_acks_0(cluster: BuiltinTarget, log: logging.Logger) -> None:
    with sending(cluster.bootstrap(), log, acks=0) as sender:
        assert sender.send(LEDGER, bare(b"x")) == Answer("ok", None)


def test_a_record_that_is_too_large_has_failed(cluster: BuiltinTarget, log: logging.Logger) -> None:
    with sending(cluster.bootstrap(), log) as sender:
        assert sender.send(LEDGER, bare(bytes(2_000_000))) == Answer("fail", error="MSG_SIZE_TOO_LARGE")


def test_a_cluster_that_does_not_answer_leaves_the_outcome_open(log: logging.Logger) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        with sending(f"{host}:{port}", log, timeout_s=0.3) as sender:
            assert sender.send(LEDGER, bare(b"x")) == Answer("info", error="_MSG_TIMED_OUT")


def test_what_a_broker_answers_when_it_has_waited_in_vain_is_heard(cluster: BuiltinTarget, log: logging.Logger) -> None:
    with sending(cluster.bootstrap(), log, timeout_s=0.8) as sender:
        assert sender.send(LEDGER, bare(b"x")).kind == "ok"
        leader = wait_until(lambda: cluster.view().partitions.get(LEDGER), "the controller's answer").leader
        follower = "1" if leader == 0 else "0"
        cluster.pause(follower)
        try:
            assert sender.send(LEDGER, bare(b"x")) == Answer("info", error="REQUEST_TIMED_OUT")
        finally:
            cluster.resume(follower)


def test_a_sender_that_is_told_to_gives_up(log: logging.Logger) -> None:
    give_up = threading.Event()
    give_up.set()
    with sending("127.0.0.1:1", log, timeout_s=60) as sender:
        begin = time.monotonic()
        assert sender.send(LEDGER, bare(b"x"), give_up) == Answer("info", error="_NO_DELIVERY_REPORT")
        assert time.monotonic() - begin < 30


def test_too_few_replicas_append_nothing_but_an_earlier_attempt_may_have(
    mortal_cluster: BuiltinTarget, log: logging.Logger
) -> None:
    def has_left() -> bool:
        seen = mortal_cluster.view().partitions.get(LEDGER)
        return seen is not None and set(seen.isr) == {0}

    def end_offset() -> int:
        seen: ReplicaView = wait_until(lambda: mortal_cluster.replica("0", LEDGER), "broker 0's answer")
        return seen.log_end_offset

    with sending(mortal_cluster.bootstrap(), log) as sender:
        mortal_cluster.kill("1")
        wait_until(has_left, "broker 1 to leave the ISR")
        before = end_offset()
        assert sender.send(LEDGER, bare(b"x")) == Answer("info", error="NOT_ENOUGH_REPLICAS")
        assert end_offset() == before


def test_a_fatal_error_ends_the_batch_with_info_and_the_next_one_has_a_new_client(log: logging.Logger) -> None:
    with PlayedBroker() as broker:
        sender = Sender(Access(broker.bootstrap), "test", -1, 5.0, log, manner=NUMBERED)
        try:
            assert sender.send(LEDGER, bare(b"x")).kind == "ok"
            broker.produce_error = KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
            assert sender.send(LEDGER, bare(b"x")) == Answer("info", error="OUT_OF_ORDER_SEQUENCE_NUMBER")
            broker.produce_error = KafkaError.NO_ERROR
            assert [sender.send(LEDGER, bare(b"x")).kind for _ in range(2)] == ["ok", "ok"]
        finally:
            sender.close()
        assert broker.producer_ids == 2


def test_every_thread_learns_of_a_fatal_error(log: logging.Logger) -> None:
    with PlayedBroker() as broker:
        broker.produce_error = KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
        sender = Sender(Access(broker.bootstrap), "test", -1, 5.0, log, manner=NUMBERED)
        try:
            with ThreadPoolExecutor(4) as pool:
                answers = list(pool.map(lambda _: sender.send(LEDGER, bare(b"x")), range(8)))
        finally:
            sender.close()
    assert {answer.kind for answer in answers} == {"info"}
    assert "OUT_OF_ORDER_SEQUENCE_NUMBER" in {answer.error for answer in answers}


def test_closing_a_client_that_has_failed_is_harmless(log: logging.Logger) -> None:
    with PlayedBroker() as broker:
        broker.produce_error = KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
        sender = Sender(Access(broker.bootstrap), "test", -1, 5.0, log, manner=NUMBERED)
        give_up = threading.Event()
        give_up.set()
        sender.send(LEDGER, bare(b"x"), give_up)
        time.sleep(0.5)  # the fatal error comes while no call waits for it
        sender.close()


def test_every_answer_is_passed_on_once_whichever_thread_has_polled_for_it(
    cluster: BuiltinTarget, log: logging.Logger
) -> None:
    manner = Manner(retries=1000, idempotent=True, batch=20, linger_s=0.005, in_flight=5, compression="lz4")
    sender = Sender(Access(cluster.bootstrap()), "test", -1, 20.0, log, manner=manner)

    def send(first: int) -> tuple[list[Answer], dict[int, Answer]]:
        heard: dict[int, Answer] = {}

        def answered(which: Sequence[int], answers: Sequence[Answer]) -> None:
            assert not heard.keys() & set(which), "an answer was passed on twice"
            heard.update(zip(which, answers, strict=True))

        batch = [record(value) for value in range(first, first + 100)]
        return sender.send_batch(LEDGER, batch, answered=answered), heard

    try:
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(send, range(0, 800, 100)))
    finally:
        sender.close()
    for answers, heard in results:
        assert [heard[place] for place in range(100)] == answers
        offsets = [answer.offset or 0 for answer in answers]
        assert {answer.kind for answer in answers} == {"ok"}
        assert offsets == sorted(offsets), "a burst is stored in the order in which it was handed over"
    assert len({answer.offset for answers, _ in results for answer in answers}) == 800


def test_what_has_not_been_answered_is_passed_on_in_the_end(log: logging.Logger) -> None:
    give_up = threading.Event()
    give_up.set()
    heard: list[tuple[Sequence[int], Sequence[Answer]]] = []
    with sending("127.0.0.1:1", log, timeout_s=60) as sender:
        sender.send_batch(
            LEDGER, [bare(b"x"), bare(b"y")], give_up=give_up, answered=lambda *answers: heard.append(answers)
        )
    assert heard == [([0, 1], [Answer("info", error="_NO_DELIVERY_REPORT")] * 2)]


def test_a_manner_is_what_librdkafka_is_told() -> None:
    settings = settings_of(Manner(batch=100, linger_s=0.005, in_flight=1, compression="zstd"), 5.0)
    wanted = {"batch.num.messages": 100, "linger.ms": 5.0, "max.in.flight.requests.per.connection": 1}
    assert settings.items() >= {**wanted, "compression.type": "zstd", "enable.idempotence": False}.items()
