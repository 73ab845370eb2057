"""Where librdkafka's chatter goes."""

from __future__ import annotations

import logging
import socket
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

from harness.client_properties import Access
from harness.clients.librdkafka import ClientError, calling, close_log, configuration, file_log, made, within
from harness.errors import EnvironmentFault

FENCED = KafkaException(KafkaError(KafkaError._FENCED, fatal=True))


def while_a_report_is_served() -> SystemError:
    """What CPython makes of a fatal error when a delivery report is served after it by the same call."""
    both = SystemError("a callback returned a result with an exception set")
    both.__cause__ = FENCED
    return both


@pytest.mark.parametrize(
    ("raised", "name"),
    [(FENCED, "_FENCED"), (while_a_report_is_served(), "_FENCED"), (BufferError("Local: Queue full"), "_QUEUE_FULL")],
)
def test_whatever_librdkafka_raises_is_one_kind_of_error_with_a_name(raised: Exception, name: str) -> None:
    with pytest.raises(ClientError) as caught, calling():
        raise raised
    assert caught.value.name == name


@pytest.mark.parametrize("raised", [SystemError("of CPython's own"), TypeError("a bug")])
def test_what_is_not_librdkafkas_stays_what_it_is(raised: Exception) -> None:
    with pytest.raises(type(raised)), calling():
        raise raised


def test_a_bounded_call_within_a_callback_of_its_consumer_does_not_wait_for_the_callbacks_end() -> None:
    found: list[str] = []

    def failed(_: KafkaError) -> None:
        if not found:
            within(lambda: found.append(consumer.memberid()), 20)

    settings = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0, "error_cb": failed}
    consumer = Consumer(settings)
    consumer.subscribe(["t"])
    deadline = time.monotonic() + 60
    while not found and time.monotonic() < deadline:
        consumer.consume(1, 1.0)
    assert len(found) == 1
    within(consumer.close, 20)


def test_a_call_that_is_given_up_does_not_keep_its_consumer_from_the_next_one() -> None:
    consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0})
    with pytest.raises(ClientError) as given_up:
        within(lambda: consumer.consume(1, 3600.0), 0.05)
    assert given_up.value.name == "_TIMED_OUT"
    assert consumer.assignment() == []


def test_clients_ask_for_ipv4_but_where_the_c_library_would_resolve_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(answer: object) -> object:
        monkeypatch.setattr(socket, "getaddrinfo", answer)
        return configuration(Access("127.0.0.1:9092"), "seawall-7", logging.getLogger())["broker.address.family"]

    def refuse(*_: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    assert asked(lambda *_: []) == "v4"
    assert asked(refuse) == "any"  # a container without a network


def test_a_client_that_cannot_be_started_is_the_fault_of_the_machine() -> None:
    def refuse(_: object) -> None:
        raise KafkaException(KafkaError(KafkaError._CRIT_SYS_RESOURCE))

    with pytest.raises(EnvironmentFault, match=r"client 'seawall-7' could not be started: .*ulimit -u"):
        made(refuse, {"client.id": "seawall-7"})


def test_a_log_takes_lines(tmp_path: Path) -> None:
    log = file_log(tmp_path / "clients.log", "a-log")
    log.info("a line")
    close_log(log)
    assert (tmp_path / "clients.log").read_text().endswith(" a line\n")


def test_a_log_of_so_many_bytes_begins_anew(tmp_path: Path) -> None:
    log = file_log(tmp_path / "clients.log", "a-long-log", most_bytes=1000)
    for _ in range(200):
        log.info("a line")
    close_log(log)
    assert {one.name for one in tmp_path.iterdir()} == {"clients.log", "clients.log.1"}
    assert all(one.stat().st_size <= 1000 for one in tmp_path.iterdir())


@pytest.mark.parametrize("path", ["/dev/full", "/dev/null/clients.log"])
def test_a_log_that_cannot_be_written_says_nothing(path: str, capfd: pytest.CaptureFixture[str]) -> None:
    log = file_log(Path(path), "a-full-log")
    for _ in range(1000):
        log.info("a line that is longer than most, so that a buffer would overflow at last")
    close_log(log)
    assert capfd.readouterr() == ("", "")


def test_a_line_that_cannot_be_formatted_is_a_bug(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = file_log(tmp_path / "clients.log", "a-broken-line")
    log.info("%d", "no number")
    close_log(log)
    assert "--- Logging error ---" in capfd.readouterr().err
