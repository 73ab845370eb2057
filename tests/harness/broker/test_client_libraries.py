"""Every client library does what the port of clients asks of it, on the same brokers."""

from __future__ import annotations

import sys
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from checkers.verdicts.check import check
from harness import payload, runner, scenario
from harness.checker import Outcome
from harness.client_ports import BEGINNING, MOVED_ERRORS, PLAIN, CommittedOffset, Manner, OffsetForTime, Polled
from harness.client_properties import Access
from harness.clients.java.library import Java
from harness.clients.library import ClientLibrary, Reader
from harness.clients.threaded_clients import ThreadedClients
from harness.errors import EnvironmentFault, UsageError
from harness.history.polls import OutOfRange
from harness.history.recorder import PolledRecord
from harness.history.sends import Answer
from harness.membership import Commits
from harness.model import NO_EPOCH, NO_GENERATION, GroupProtocol, TopicPartition
from harness.payload import ProducerRecord
from harness.runner.client_libraries import carried_by, kafka_python
from harness.workload import KAFKA_PYTHON
from tests.harness.broker.client_libraries import (
    LIBRARIES,
    LOG,
    NEWEST,
    PATIENCE_S,
    Group,
    fails,
    java_classpath,
    polled,
    watch_clients,
)
from tests.harness.broker.cluster import Cluster
from tests.records import CREATED_MS

pytestmark = pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning")

PROGRAM = Path(__file__).parents[2] / "workloads" / "programs" / "processor.py"
NUMBERED = Manner(retries=1000, idempotent=True, batch=10)


@pytest.fixture(scope="module", params=LIBRARIES)
def library(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[ClientLibrary]:
    made = LIBRARIES[request.param](Access(cluster.bootstrap))
    yield made
    made.close()


@pytest.fixture(autouse=True)
def closed_clients(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A test that fails leaves no client open, whose sockets would fail the tests during which they are collected."""
    left: list[Any] = []
    if "library" in request.fixturenames:
        watch_clients(request.getfixturevalue("library"), left, monkeypatch)
    yield
    for client in left:
        client.close()


@pytest.fixture
def places(cluster: Cluster) -> list[TopicPartition]:
    name = f"lib-{uuid.uuid4().hex[:8]}"
    cluster.create_topic(name, [[0, 1, 2], [1, 2, 0]])
    return [TopicPartition(name, number) for number in range(2)]


def records(
    library: ClientLibrary, place: TopicPartition, values: Sequence[int], created_ms: int = CREATED_MS
) -> list[ProducerRecord]:
    client = KAFKA_PYTHON if type(library).__name__ == "KafkaPython" else ""
    carried = carried_by(client, payload.EVERYTHING)
    return [payload.encode(value, *place, timestamp_ms=created_ms, carried=carried) for value in values]


def sent(
    library: ClientLibrary, place: TopicPartition, values: Sequence[int], manner: Manner = NUMBERED,
    created_ms: int = CREATED_MS,
) -> list[Answer]:  # fmt: skip
    sender = library.sender("sender", -1, 10.0, manner)
    told: list[int] = []

    def answered(which: Sequence[int], answers: Sequence[Answer]) -> None:
        told.extend(which)

    batch = records(library, place, values, created_ms)
    answers = sender.send_batch(place, batch, give_up=threading.Event(), answered=answered)
    sender.close()
    assert sorted(told) == list(range(len(values)))
    return answers


def read(reader: Reader, end: int) -> list[PolledRecord]:
    """What a reader of one partition is given until it has come to ``end``."""
    found: list[PolledRecord] = []
    deadline = time.monotonic() + PATIENCE_S
    while max(reader.positions.values()) < end:
        assert time.monotonic() < deadline
        polled, error, _ = reader.poll(500, 0.2)
        assert error is None
        found += polled
    return found


@pytest.mark.parametrize("manner", [PLAIN, NUMBERED])
def test_records_come_back_as_they_were_sent(
    library: ClientLibrary, places: list[TopicPartition], manner: Manner
) -> None:
    answers = sent(library, places[0], range(1, 31), manner)
    assert [(one.kind, one.offset) for one in answers] == [("ok", offset) for offset in range(30)]
    reader = library.reader("reader", {places[0]: BEGINNING}, None, "read_uncommitted")
    found = read(reader, 30)
    assert reader.bounds(places[0], 10.0) == (0, 30)
    reader.close()
    assert [(one.offset, one.value, one.intact, one.timestamp_ms) for one in found] == [
        (offset, offset + 1, True, CREATED_MS) for offset in range(30)
    ]
    assert {one.leader_epoch for one in found} == {0}


def test_what_is_not_answered_is_unknown(library: ClientLibrary) -> None:
    sender = library.sender("sender", -1, 1.0, PLAIN)
    nowhere = TopicPartition("nowhere", 0)
    batch = records(library, nowhere, [1])
    [answer] = sender.send_batch(nowhere, batch, give_up=threading.Event(), answered=lambda which, answers: None)
    sender.close()
    assert answer.kind == "info"
    assert answer.error


def test_a_closed_producer_of_kafka_python_waits_for_nothing(
    cluster: Cluster, places: list[TopicPartition], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = kafka_python(Access(cluster.bootstrap))
    accumulator = "kafka.producer.record_accumulator.RecordAccumulator"
    monkeypatch.setattr(f"{accumulator}.drain", lambda *arguments, **named: {})  # nothing is sent
    monkeypatch.setattr(f"{accumulator}.abort_incomplete_batches", lambda accumulator: None)  # nor given up
    sender = library.sender("sender", -1, 1.0, PLAIN)
    producer = vars(sender)["_producer"]
    producer.send(places[0].topic, b"a", partition=0)
    sender.close()
    library.close()
    producer.__del__()


def test_a_position_behind_the_end_is_an_error(library: ClientLibrary, places: list[TopicPartition]) -> None:
    sent(library, places[0], [1])
    reader = library.reader("reader", {places[0]: 5}, None, "read_uncommitted")
    deadline, polled = time.monotonic() + PATIENCE_S, Polled([], None)
    while polled.error is None and time.monotonic() < deadline:
        polled = reader.poll(500, 0.2)
    reader.close()
    assert polled.error in MOVED_ERRORS
    assert polled.out_of_range == OutOfRange(places[0], 5)


def test_an_offset_is_found_by_its_time(library: ClientLibrary, places: list[TopicPartition]) -> None:
    for value in range(3):
        sent(library, places[0], [value], created_ms=CREATED_MS + 10 * value)
    reader = library.reader("reader", {}, None, "read_uncommitted")
    times = (CREATED_MS - 5, CREATED_MS + 10, CREATED_MS + 11, CREATED_MS + 21)
    answers = [reader.offset_for_time(places[0], at, 10.0) for at in times]
    lost = reader.offset_for_time(TopicPartition("nowhere", 0), CREATED_MS, 1.0)
    reader.close()
    assert answers == [OffsetForTime(0), OffsetForTime(1), OffsetForTime(2), OffsetForTime(None)]
    assert lost.offset is None
    assert lost.error


def test_transactions_are_whole_and_the_next_process_fences_the_last(
    library: ClientLibrary, places: list[TopicPartition]
) -> None:
    name = uuid.uuid4().hex
    first, second = library.transactional_sender(name, 10.0), library.transactional_sender(name, 10.0)
    for place in places:
        assert first.send(place, records(library, place, [1, 2])) is None
    assert list(first.offsets) == [0, 1, 0, 1]
    assert first.end(commits=True) == ("ok", [0, 1, 0, 1], None)
    assert first.send(places[0], records(library, places[0], [3])) is None
    assert first.end(commits=False).kind == "fail"
    assert first.send(places[0], records(library, places[0], [4])) is None
    assert second.initialise() is None
    assert (first.end(commits=True).kind, second.send(places[0], records(library, places[0], [5]))) == ("info", None)
    assert second.end(commits=True).kind == "ok"
    reader = library.reader("reader", {places[0]: BEGINNING}, None, "read_committed")
    assert [one.value for one in read(reader, reader.bounds(places[0], 10.0).end_offset)] == [1, 2, 5]
    reader.close()
    first.close()
    second.close()


def test_a_member_goes_on_from_what_its_group_has_committed(
    library: ClientLibrary, places: list[TopicPartition]
) -> None:
    for place in places:
        sent(library, place, range(1, 6))
    group = Group(library, places)
    first = group.member()
    assert len(polled(first, lambda found: len(found) == 10)) == 10
    assert group.changes == [("assigned", places)]
    assert first.generation == 1
    assert first.positions == dict.fromkeys(places, (5, 0))
    assert first.commit({places[0]: CommittedOffset(3)}) is None
    producer = library.transactional_sender(uuid.uuid4().hex, 10.0)
    assert producer.send(places[1], records(library, places[1], [6])) is None
    assert producer.commit_offsets(first.metadata, {places[1]: CommittedOffset(4)}) is None
    assert producer.end(commits=True).kind == "ok"
    first.close()
    assert group.changes[1:] == [("revoked", places)]
    second = group.member()
    found = polled(second, lambda found: len(found) == 4)
    assert [one.value for one in found if one.partition == 0] == [4, 5]
    assert [one.value for one in found if one.partition == 1] == [5, 6]
    second.close()
    producer.close()


def test_the_answer_to_an_asynchronous_commit_comes_with_a_later_poll(
    library: ClientLibrary, places: list[TopicPartition]
) -> None:
    member = Group(library, places).member()
    sent(library, places[0], range(1, 6))
    polled(member, lambda found: len(found) == 5)
    answers: dict[int, list[str | None]] = {2: [], 4: []}
    for offset, answered in answers.items():
        member.commit_async({places[0]: CommittedOffset(offset)}, answered.append)
    assert member.commit({places[1]: CommittedOffset(0)}) is None, "and its own answer is taken for no other's"
    polled(member, lambda _: all(answers.values()))
    assert answers == {2: [None], 4: [None]}
    assert member.committed(places, 10.0) == {places[0]: (4, -1), places[1]: (0, -1)}
    member.close()


def test_a_member_that_was_replaced_is_not_told_that_its_asynchronous_commit_was_stored(
    library: ClientLibrary, places: list[TopicPartition]
) -> None:
    group = Group(library, places, instance="one")
    sent(library, places[0], [1, 2])
    first = group.member()
    polled(first, lambda found: len(found) == 2)
    second = Group(library, places, group.name, instance="one").member()
    polled(second, lambda found: len(found) == 2)
    answers: list[str | None] = []
    first.commit_async({places[0]: CommittedOffset(2)}, answers.append)
    error: str | None = None
    deadline = time.monotonic() + PATIENCE_S
    while error is None and not answers and time.monotonic() < deadline:
        error = first.poll(500, 0.2).error
    assert error or answers, "neither a poll nor the commit says that it was replaced"
    assert None not in answers
    assert second.committed(places, 10.0) == {}
    second.close()
    first.close()


def test_a_client_commits_by_itself_what_earlier_polls_have_returned(
    library: ClientLibrary, places: list[TopicPartition]
) -> None:
    group = Group(library, places, commits=Commits("auto", 0.1))
    member, looker = group.member(), library.group_offsets("looker", group.name)
    # With each answer without records kafka-python forgets the epoch of the last record.
    epochs = (0, NO_EPOCH) if type(library).__name__ == "KafkaPython" else (0,)
    sent(library, places[0], range(1, 6))
    polled(member, lambda found: len(found) == 5)
    time.sleep(0.5)
    assert looker.committed([places[0]], 10.0) in ({}, {places[0]: (0, -1)}), "nothing without a further poll"
    seen: list[object] = []
    deadline = time.monotonic() + PATIENCE_S
    while not any({places[0]: (5, epoch)} in seen for epoch in epochs):
        assert time.monotonic() < deadline, f"{seen[-3:]} of {len(seen)} answers, and the changes {group.changes}"
        assert member.poll(500, 0.2) == Polled([], None)
        seen.append(looker.committed([places[0]], 10.0))
    sent(library, places[1], range(6, 9))
    polled(member, lambda found: len(found) == 3)
    member.close()
    last = looker.committed([places[1]], 10.0)
    assert last in [{places[1]: (3, epoch)} for epoch in epochs], "its last commit, as it leaves"
    looker.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_reads_just_the_topics_that_its_pattern_is_made_of(
    cluster: Cluster, library: ClientLibrary, protocol: GroupProtocol
) -> None:
    if protocol == "consumer" and type(library).__name__ == "KafkaPython":
        pytest.skip("kafka-python knows no groups of the consumer protocol")
    name = f"pat.{uuid.uuid4().hex[:8]}"
    for topic in (name, f"{name}-more", f"more-{name}", name.replace(".", "-")):
        cluster.create_topic(topic, [[0, 1, 2], [1, 2, 0]])
    ours = [TopicPartition(topic, number) for topic in (name, f"{name}-more") for number in range(2)]
    group = Group(library, ours, subscription="pattern", protocol=protocol)
    member, had = group.member(), set[TopicPartition]()
    polled(member, lambda _: {one for _, given in group.changes for one in given} >= set(ours))
    had.update(one for _, given in group.changes for one in given)
    assert had == set(ours)
    member.close()


def test_librdkafka_has_no_process_of_its_own(cluster: Cluster) -> None:
    assert ThreadedClients(Access(cluster.bootstrap), LOG).process() is None


def test_a_java_process_of_its_own_is_killed_in_a_transaction_and_the_group_goes_on(
    cluster: Cluster, places: list[TopicPartition]
) -> None:
    whole = Java(Access(cluster.bootstrap), java_classpath(), LOG, fails)
    doomed = whole.apart()
    name, place = uuid.uuid4().hex, places[0]
    sent(whole, place, [1, 2])
    group = Group(doomed, [place], session_timeout_s=2.0)
    member, producer = group.member(), doomed.transactional_sender(name, 10.0)
    assert len(polled(member, lambda found: len(found) == 2)) == 2
    assert producer.send(places[1], records(doomed, places[1], [3, 4])) is None
    assert producer.commit_offsets(member.metadata, {place: CommittedOffset(2)}) is None
    pid = doomed._driver.pid
    doomed.close()
    assert not psutil.pid_exists(pid)
    assert producer.end(commits=True) == ("info", [0, 1], "_DESTROY")
    assert member.poll(1, 0.1).error == "_DESTROY"
    assert member.generation == NO_GENERATION
    successor = whole.transactional_sender(name, 10.0)
    assert successor.initialise() is None, "ends the transaction"
    follower = Group(whole, [place], group.name)
    second = follower.member()
    assert [one.value for one in polled(second, lambda found: len(found) == 2)] == [1, 2], "no offset was committed"
    assert group.changes == follower.changes == [("assigned", places)]
    reader = whole.reader("reader", {places[1]: BEGINNING}, None, "read_committed")
    assert read(reader, reader.bounds(places[1], 10.0).end_offset) == []
    for one in (reader, second, successor):
        one.close()
    whole.close()


def test_virtual_time_has_clients_of_its_own() -> None:
    with pytest.raises(UsageError, match=r"workload.client=java:4.3.0 is a client in real time"):
        runner.plan(scenario.load("random-chaos"), "simulated", overrides={"workload.client": "java:4.3.0"})


def test_kafka_python_has_no_consumer_protocol() -> None:
    asked = {"workload.name": "consumer_groups", "workload.client": KAFKA_PYTHON, "workload.protocol": "[consumer]"}
    with pytest.raises(UsageError, match=r"kafka-python knows no groups of the consumer protocol"):
        runner.plan(scenario.load("random-chaos"), "builtin", overrides=asked)


def test_a_run_without_kafka_python_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "harness.clients.kafka_python.library", None)
    with pytest.raises(EnvironmentFault, match=r"workload.client=kafka-python needs kafka-python 3") as missing:
        runner.plan(scenario.load("random-chaos"), "builtin", overrides={"workload.client": KAFKA_PYTHON})
    assert "pip install 'seawall[kafka-python]'" in str(missing.value.remedy)


def test_a_client_of_kafka_python_that_cannot_be_made_is_an_error() -> None:
    kafka_python(Access(""))
    from harness.clients.kafka_python.errors import made

    def refuses(**settings: str) -> None:
        raise RuntimeError(f"Libraries for {settings['compression_type']} compression codec not found")

    with pytest.raises(EnvironmentFault, match=r"could not be made: RuntimeError: Libraries for lz4"):
        made(refuses, {"compression_type": "lz4"})


LOADS = {
    "unique_sends": {"rate": "40"},
    "pipelined_sends": {"rate": "300"},
    "consumer_groups": {"rate": "40"},
    "transactions": {},
    "consume_transform_produce": {"rate": "40"},
    "compacted_keys": {"rate": "40"},
    "deleted_records": {"rate": "40"},
    "command": {"rate": "40", "argv": f"[{sys.executable}, {PROGRAM}]"},
}


@pytest.mark.nightly("whole runs with other clients; by day each of them is asked what the port asks")
@pytest.mark.parametrize("client", [f"java:{NEWEST}", KAFKA_PYTHON])
@pytest.mark.parametrize("name", LOADS)
def test_another_client_runs_no_workload(name: str, client: str, tmp_path: Path) -> None:
    if client != KAFKA_PYTHON:
        java_classpath()
    settings = {f"workload.{key}": value for key, value in LOADS[name].items()}
    overrides = {"workload.name": name, "workload.client": client, **settings}
    planned = runner.plan(scenario.load("random-chaos"), "builtin", seed=3, duration_s=10.0, overrides=overrides)
    directory = runner.run(planned, tmp_path)
    assert directory.manifest().state == "complete"
    [verdict] = check([directory.path], engine="reference")
    assert verdict.outcome is Outcome.PASS
