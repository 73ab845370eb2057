"""Every way in which a produced batch can be wrong, and what real brokers and ours answer: one table.

``2.1.1`` and ``4.1.0`` were recorded from those releases; the nightly test asks them again. Between them Kafka got an
error of its own for invalid records (KIP-467, 2.4), and answers where it hung up before. ``seawall`` is empty where our
brokers answer as 4.1.0 does, whatever generation of the protocol they play.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.broker import validation
from harness.broker.codecs import inflate
from harness.broker.validation import Refused, Validation
from harness.error_codes import ErrorCode
from harness.model import NodeId
from harness.target import TopicSpec
from harness.targets.kafka.local import LocalKafka
from harness.targets.kafka.process import ProcessTarget
from harness.targets.kafka.server_properties import understood
from harness.wire import batches as wire
from harness.wire.batches import Record
from harness.wire.keys import ApiKey
from harness.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.harness.broker.produced_batches import CASES, Case, changed, sound
from tests.harness.broker.raw_client import RawClient
from tests.harness.targets.contract import fetched_or_skip

Answer = int | str | None
"""An error code, or what becomes of the connection."""

HANGS_UP, SILENT = "hangs up", "silent"
_MAX_BYTES = 1_048_588


class Answers(NamedTuple):
    """What each broker answers; ``seawall`` where that is not what 4.1.0 does, with the reason beside it."""

    v2_1_1: Answer
    v4_1_0: Answer
    seawall: Answer = None


OK = Answers(0, 0)
INVALID = Answers(2, 87)
CORRUPT = Answers(2, 2)
UNEXPECTED = Answers(-1, -1)

TABLE: dict[str, Answers] = {
    "sound": OK,
    "two records": OK,
    "with a base offset": INVALID,
    "with a leader epoch": OK,
    "null": Answers(HANGS_UP, SILENT, 87),  # an empty one, and no more: 4.1.0 fails and forgets to answer
    "empty": Answers(HANGS_UP, 87),
    "garbage": Answers(HANGS_UP, 87),
    "zeros": Answers(HANGS_UP, 2),
    "torn": Answers(HANGS_UP, 87),
    "torn header": Answers(HANGS_UP, 87),
    "garbage behind it": OK,
    "two batches": INVALID,
    "wrong checksum": CORRUPT,
    "length below a header's": Answers(HANGS_UP, 2),
    "negative length": Answers(HANGS_UP, 2),
    "magic -1": Answers(HANGS_UP, 2),
    "magic 3": Answers(HANGS_UP, 2),
    "format 0": INVALID,
    "format 1": INVALID,
    "format 1 in Produce v2": Answers(0, HANGS_UP),
    "format 0 in Produce v0": Answers(0, HANGS_UP),
    "no records": INVALID,
    "no records, and no bytes": INVALID,
    "negative count": INVALID,
    "negative last offset delta": INVALID,
    "count and last offset disagree": INVALID,
    "claims a record too many": INVALID,
    "claims a record too few": INVALID,
    "payload garbage": UNEXPECTED,
    "payload random": INVALID,
    "payload empty": INVALID,
    "record too long": INVALID,
    "record too short": INVALID,
    "record of no bytes": INVALID,
    "record of negative size": INVALID,
    "bytes behind the records": INVALID,
    "key beyond the record": INVALID,
    "value beyond the record": INVALID,
    "negative key length": OK,
    "negative value length": OK,
    "negative header count": INVALID,
    "claims a header too many": INVALID,
    "header without a name": INVALID,
    "header with a name that is not UTF-8": OK,
    "record attributes": OK,
    "varint without an end": UNEXPECTED,
    "offset deltas 0 0": OK,
    "offset deltas 1 0": OK,
    "offset deltas 0 5": OK,
    "offset delta -1": OK,
    "timestamp delta -1000": OK,
    "max timestamp wrong": OK,
    "max timestamp -1": OK,
    "timestamps -1": OK,
    "timestamps -5": OK,
    "log append time": Answers(32, 0),
    "control": INVALID,
    "transactional": Answers(53, 53),
    "transactional with a producer": Answers(53, 53),
    "attribute 6": OK,
    "attribute 7": OK,
    "attribute 14": OK,
    "producer without a sequence": INVALID,
    "producer without an epoch": OK,
    "producer -5": OK,
    "sequence without a producer": OK,
    "codec 5": UNEXPECTED,
    "codec 6": UNEXPECTED,
    "codec 7": UNEXPECTED,
    "gzip": OK,
    "snappy": OK,
    "lz4": OK,
    "lz4 of dependent blocks": UNEXPECTED,
    "zstd": OK,
    "zstd in Produce v6": Answers(76, 76),
    "gzip of garbage": Answers(-1, 87),
    "gzip of nothing": INVALID,
    "gzip of a record too few": INVALID,
    "gzip of a record too many": INVALID,
    "gzip with offset deltas 0 0": Answers(0, -1),
    "gzip with offset deltas 1 0": Answers(0, -1),
    "gzip with offset deltas 0 5": Answers(0, -1),
    "gzip torn": UNEXPECTED,
    "gzip torn in its trailer": UNEXPECTED,
    "gzip with a wrong checksum": UNEXPECTED,
    "gzip with bytes behind it": OK,
    "not gzip": UNEXPECTED,
    "gzip empty": UNEXPECTED,
    "not snappy": UNEXPECTED,
    "not lz4": UNEXPECTED,
    "not zstd": UNEXPECTED,
    "gzip with a key beyond the record": INVALID,
    "gzip with a record too long": Answers(2, 0, 87),  # no consumer can read it, and 2.1.1 refuses it, too
    "too large": Answers(10, 10),
    "with a key and headers": OK,
}


def test_there_is_an_answer_for_every_case() -> None:
    assert list(TABLE) == list(CASES)


def ours(case: Case) -> Answer:
    if case.version < 3:
        return HANGS_UP  # such versions cost the connection, whatever they carry: see test_session.py
    try:
        Validation(case.version, _MAX_BYTES).check(memoryview(bytearray(case.records or b"")))
    except Refused as refused:
        return int(refused.error)
    return 0


@pytest.mark.parametrize("name", CASES)
def test_a_batch_is_answered_as_a_current_kafka_answers_it(name: str) -> None:
    expected = TABLE[name]
    assert ours(CASES[name]) == (expected.v4_1_0 if expected.seawall is None else expected.seawall)


def test_where_ours_is_not_kafka_s_answer_it_is_never_the_more_lenient() -> None:
    differ = {name: one for name, one in TABLE.items() if one.seawall is not None}
    assert len(differ) == 2
    assert all(one.seawall != 0 for one in differ.values())


@pytest.mark.parametrize("name", CASES)
def test_every_batch_that_is_appended_can_be_read_to_its_end(name: str) -> None:
    case = CASES[name]
    if case.version < 3 or ours(case):
        return
    buffer, header = Validation(case.version, _MAX_BYTES).check(memoryview(bytearray(case.records or b"")))
    assert len(list(wire.records(buffer, header, inflate))) == header.record_count


# ------------------------------------------------------------------------------------------------- limits


def test_a_request_with_more_records_than_one_may_have_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "MAX_RECORDS", 5)
    checking = Validation(7, _MAX_BYTES)
    checking.check(memoryview(sound(b"a", b"b", b"c")))
    with pytest.raises(Refused, match="MESSAGE_TOO_LARGE"):
        checking.check(memoryview(sound(b"a", b"b", b"c")))
    checking.check(memoryview(sound(b"a", b"b")))


def test_a_request_that_inflates_to_more_than_one_may_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "MAX_INFLATED_BYTES", 5_000)
    checking = Validation(7, _MAX_BYTES)
    bomb = wire.build([bytes(3_000)], codec=wire.GZIP)
    checking.check(memoryview(bytearray(bomb)))
    with pytest.raises(Refused, match="MESSAGE_TOO_LARGE"):
        checking.check(memoryview(bomb))


# ------------------------------------------------------------------------------------------------- properties

RECORDS = st.lists(
    st.builds(
        lambda key, value, headers, timestamp: (key, value, tuple(headers), timestamp),
        st.none() | st.binary(max_size=200),
        st.none() | st.binary(max_size=300),
        st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=5)), max_size=80),
        st.integers(0, 1 << 45),
    ),
    min_size=1,
    max_size=90,
)


@settings(max_examples=200, deadline=None)
@given(RECORDS, st.sampled_from([wire.NONE, wire.GZIP]))
def test_whatever_a_client_writes_is_accepted(
    told: list[tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]], codec: int
) -> None:
    records = [Record(number, at, key, value, headers) for number, (key, value, headers, at) in enumerate(told)]
    Validation(7, 1 << 30).check(memoryview(wire.build(records, codec=codec)))


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_what_is_accepted_after_any_change_of_its_bytes_can_be_read(data: st.DataObject) -> None:
    batch = sound(b"one", b"two", b"three" * 40)
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(0, len(batch) - 1))] = data.draw(st.integers(0, 255))
    struct.pack_into(">qi", batch, 0, 0, len(batch) - 12)
    wire.seal(batch)
    try:
        buffer, header = Validation(7, _MAX_BYTES).check(memoryview(batch))
    except Refused:
        return
    assert len(list(wire.records(buffer, header))) == header.record_count


def test_random_bytes_are_refused_and_raise_nothing_else() -> None:
    rng = random.Random(1)
    for _ in range(2_000):
        junk = sound()[: wire.HEADER_BYTES] + rng.randbytes(rng.randrange(80))
        struct.pack_into(">i", junk, 8, len(junk) - 12)
        wire.seal(junk)
        with pytest.raises(Refused):
            Validation(7, _MAX_BYTES).check(memoryview(junk))


def test_a_batch_is_checked_before_its_length_is_believed() -> None:
    with pytest.raises(Refused) as refused:
        Validation(7, _MAX_BYTES).check(memoryview(changed(8, "i", (1 << 31) - 1)))
    assert refused.value.error == ErrorCode.INVALID_RECORD


# ------------------------------------------------------------------------------------------------- real brokers


@pytest.fixture(scope="module", params=["2.1.1", "4.1.0"])
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessTarget]:
    """One broker of a release."""
    local = LocalKafka(fetched_or_skip(request.param))
    named = {"min.insync.replicas": 1, "default.replication.factor": 1}
    target = ProcessTarget(tmp_path_factory.mktemp("kafka"), 1, local, understood(named, local.release, 1))
    try:
        target.start()
        yield target
    finally:
        target.stop()


def _old_produce(client: RawClient, version: int, topic: str, records: bytes) -> int:
    """Ask in a version that our codec lacks."""
    body = struct.pack(f">hiih{len(topic)}sii", -1, 5_000, 1, len(topic), topic.encode(), 1, 0)
    frame = struct.pack(">hhih", ApiKey.PRODUCE, version, 0, -1) + body + struct.pack(">i", len(records)) + records
    client.socket.sendall(struct.pack(">i", len(frame)) + frame)
    (size,) = struct.unpack(">i", client._exactly(4))
    error: int = struct.unpack_from(">h", client._exactly(size), 4 + 4 + 2 + len(topic) + 4 + 4)[0]
    return error


def _asked(client: RawClient, topic: str, case: Case) -> Answer:
    data = TopicProduceData(topic, partition_data=[PartitionProduceData(0, case.records)])
    body = ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[data])
    client.socket.settimeout(10)
    try:
        if case.version < 3:
            return _old_produce(client, case.version, topic, bytes(case.records or b""))
        answer = client.ask(ApiKey.PRODUCE, case.version, body).responses[0].partition_responses[0]
    except ConnectionError:
        return HANGS_UP
    except TimeoutError:
        return SILENT
    error: int = answer.error_code
    return error


@pytest.mark.nightly("starts real Kafka; by day our brokers are asked what was recorded")
def test_real_brokers_answer_as_the_table_has_it(kafka: ProcessTarget) -> None:
    host, port = kafka.bootstrap().split(",")[0].split(":")
    answers: dict[str, Answer] = {}
    for number, (name, case) in enumerate(CASES.items()):
        kafka.create_topic(TopicSpec(f"case-{number}", 1, 1, ((NodeId(0),),)))
        with RawClient(host, int(port)) as client:
            answers[name] = _asked(client, f"case-{number}", case)
    is_old = str(kafka._release.version) == "2.1.1"
    assert answers == {name: one.v2_1_1 if is_old else one.v4_1_0 for name, one in TABLE.items()}
