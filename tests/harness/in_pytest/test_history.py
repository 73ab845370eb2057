"""What the clients of a test send and are given, as rows of the history."""

from __future__ import annotations

from typing import Any

import pytest

from harness import payload
from harness.client_ports import ClientContext
from harness.clock import SystemClock
from harness.errors import UsageError
from harness.history.kept_recorder import KeptRecorder
from harness.in_pytest.clients import RecordingProducer
from harness.in_pytest.history import ClientHistory
from harness.in_pytest.wanted import planned, slug, wanted
from harness.model import TopicPartition
from harness.payload import StoredRecord

PLACE = TopicPartition("ledger", 0)


@pytest.fixture
def history() -> ClientHistory:
    recorder = KeptRecorder("r", SystemClock())
    context = ClientContext(lambda: pytest.fail("no client is needed"), [PLACE], recorder, 1)
    made = ClientHistory(context, [], {"bootstrap.servers": "127.0.0.1:1"})
    made.partitions["ledger"] = 2
    return made


def rows(history: ClientHistory) -> list[dict[str, Any]]:
    recorder = history.context.recorder
    assert isinstance(recorder, KeptRecorder)
    recorder.flush()
    return recorder.rows


def test_each_record_is_known_by_its_header_and_any_change_of_it_is_seen(history: ClientHistory) -> None:
    sent = history.sent("ledger", 0, b"10 EUR", b"key", [("trace", b"1"), ("null", None)])
    stored = StoredRecord(b"key", b"10 EUR", sent.headers, None)
    assert payload.judge(stored, PLACE) == (0, True)
    for changed in (
        stored._replace(key=b"kez"),
        stored._replace(value=b"11 EUR"),
        stored._replace(headers=sent.headers[1:]),
    ):
        assert payload.judge(changed, PLACE) == (0, False)
    assert payload.judge(stored, TopicPartition("ledger", 1)) == (0, False)
    for headers in ([], [("seawall", None)], [("seawall", b"x")], [sent.headers[-1]] * 2):
        assert payload.judge(stored._replace(headers=headers), PLACE) == (None, False)


def test_a_process_has_one_record_under_way_and_none_after_one_that_was_not_answered(history: ClientHistory) -> None:
    first, second = (history.sent("ledger", 0, b"x") for _ in range(2))
    history.acknowledged(first, 0)
    history.unanswered(second, "_TIMED_OUT")
    history.failed(history.sent("ledger", 1, b"x"), "_QUEUE_FULL")
    said = [(row["process"], row["type"], row["value"], row["offset"], row["error"]) for row in rows(history)]
    assert said == [
        (0, "invoke", 0, None, None),
        (1, "invoke", 1, None, None),
        (0, "ok", 0, 0, None),
        (1, "info", 1, None, "_TIMED_OUT"),
        (0, "invoke", 2, None, None),
        (0, "fail", 2, None, "_QUEUE_FULL"),
    ]
    assert history.steps == [
        {"send": {"per_partition": 2, "acks": "all", "expect": "any", "producer": "producer-0"}},
    ]


def test_a_record_for_a_partition_that_is_not_there_is_refused_in_a_sentence(history: ClientHistory) -> None:
    with pytest.raises(
        UsageError, match=r"sent to ledger-2, and the cluster has no such partition; topics: ledger \(2\)"
    ):
        history.sent("ledger", 2, b"x")


def test_what_is_not_recorded_is_refused_in_a_sentence(history: ClientHistory) -> None:
    with pytest.raises(UsageError, match="transactions are not recorded"):
        RecordingProducer(history, {"transactional.id": "t"})
    with pytest.raises(UsageError, match="acks=2 is none of"):
        RecordingProducer(history, {"acks": 2})
    with pytest.raises(UsageError, match="produce_batch is not recorded"):
        RecordingProducer(history, {}).produce_batch("ledger", [])


def test_an_empty_poll_is_recorded_too(history: ClientHistory) -> None:
    history.polled([])
    assert [(row["f"], row["type"], row["topic"]) for row in rows(history)] == [
        ("poll", "invoke", None),
        ("poll", "ok", None),
    ]


def test_the_marker_becomes_a_plan_or_a_sentence() -> None:
    asked = wanted({"generation": "2.1", "brokers": 2, "replication": {"bugs": "ack_on_append"}})
    topics = [{"name": "ledger", "partitions": 1, "replication_factor": 2}]
    made = planned(asked, "tests/test_it.py::test_one", topics, [{"wait_s": 1.0}])
    assert (made.generation, made.system.protocol.knobs.bugs) == ("2.1", ("ack_on_append",))
    assert made.system.known_settings().min_insync_replicas == 2
    assert made.scenario.id == slug("tests/test_it.py::test_one") == "tests-test-it-py-test-one"
    with pytest.raises(UsageError, match=r"@pytest.mark.seawall: unknown key 'topic'; did you mean 'topics'"):
        wanted({"topic": 1})
    with pytest.raises(UsageError, match="no broker 7"):
        planned(asked, "t", topics, [{"inject": {"fault": "kill", "node": 7, "as": "f"}}])
