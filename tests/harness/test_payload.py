"""Every part of a record is derived from its value, so that whatever a cluster does to any part shows."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import payload
from harness.model import TopicPartition
from harness.payload import EVERYTHING, Carried, ProducerRecord, StoredRecord, judge
from tests.records import CREATED_MS, LEDGER, record

VALUE = 42 << 32


def found(one: ProducerRecord) -> StoredRecord:
    """The record as a cluster that keeps everything gives it back."""
    return StoredRecord(one.key, one.value, tuple(one.headers), one.timestamp_ms)


@pytest.mark.parametrize(("headers", "timestamp", "size"), [*product((True, False), (True, False), (0, 500))])
def test_a_record_that_comes_back_as_it_was_sent_is_intact(headers: bool, timestamp: bool, size: int) -> None:
    one = record(VALUE, size=size, carried=Carried(headers, timestamp))
    assert judge(found(one), LEDGER) == (VALUE, True)
    assert len(one.value or b"") >= size
    assert bool(one.headers) == headers


GARBLED: dict[str, Callable[[StoredRecord], StoredRecord]] = {
    "another key": lambda one: one._replace(key=b"43"),
    "no key": lambda one: one._replace(key=None),
    "another header": lambda one: one._replace(headers=(("value", b"43"), *one.headers[1:])),
    "another header's name": lambda one: one._replace(headers=(("valve", one.headers[0][1]), *one.headers[1:])),
    "an empty header for a null one": lambda one: one._replace(headers=(one.headers[0], ("null", b""))),
    "headers in another order": lambda one: one._replace(headers=one.headers[::-1]),
    "one header less": lambda one: one._replace(headers=one.headers[:1]),
    "one header more": lambda one: one._replace(headers=(*one.headers, ("trace", b"1"))),
    "no headers": lambda one: one._replace(headers=()),
    "a later timestamp": lambda one: one._replace(create_time_ms=CREATED_MS + 1),
    "no timestamp, or LogAppendTime": lambda one: one._replace(create_time_ms=None),
    "another text": lambda one: one._replace(value=(one.value or b"").replace(b"ledger", b"lodger")),
}


@pytest.mark.parametrize("name", GARBLED)
def test_a_record_of_which_any_part_is_another_is_not_intact(name: str) -> None:
    assert judge(GARBLED[name](found(record(VALUE))), LEDGER) == (VALUE, False)


def test_a_record_of_another_partition_is_not_intact_and_bytes_of_no_workload_have_no_value() -> None:
    assert judge(found(record(VALUE)), TopicPartition("ledger", 1)) == (VALUE, False)
    for data in (None, b"", b"seawall ledger", b"seawall ledger 0 x 0 2 . 00000000", b"hello"):
        assert judge(StoredRecord(None, data, (), CREATED_MS), LEDGER) == (None, False)


def test_the_parts_of_two_records_cannot_be_exchanged() -> None:
    one, other = found(record(VALUE)), found(record(VALUE + 1, timestamp_ms=CREATED_MS - 1))
    for part in ("key", "headers", "create_time_ms"):
        assert judge(one._replace(**{part: getattr(other, part)}), LEDGER) == (VALUE, False), part


@pytest.mark.parametrize("create_time_ms", [CREATED_MS, CREATED_MS - 9, None])
def test_where_the_cluster_stamps_records_itself_any_timestamp_is_intact(create_time_ms: int | None) -> None:
    one = found(record(VALUE, carried=Carried(timestamp=False)))._replace(create_time_ms=create_time_ms)
    assert judge(one, LEDGER) == (VALUE, True)


def test_a_record_that_was_sent_without_headers_has_none() -> None:
    one = found(record(VALUE, carried=Carried(headers=False)))
    assert judge(one._replace(headers=payload.headers_of(VALUE)), LEDGER) == (VALUE, False)


def test_an_age_is_no_exception() -> None:
    one = found(record(VALUE, timestamp_ms=CREATED_MS - 691_200_000))
    assert judge(one, LEDGER) == (VALUE, True)
    assert judge(one._replace(create_time_ms=CREATED_MS), LEDGER) == (VALUE, False)


@given(value=st.integers(0, 2**62), at=st.integers(0, 10_000), bit=st.integers(0, 7), size=st.integers(0, 200))
def test_no_flipped_bit_of_a_text_goes_unnoticed(value: int, at: int, bit: int, size: int) -> None:
    one = found(record(value, size=size, carried=EVERYTHING))
    text = bytearray(one.value or b"")
    text[at % len(text)] ^= 1 << bit
    assert not judge(one._replace(value=bytes(text)), LEDGER)[1]


def resigned(text: bytes) -> bytes:
    """The text with the hash that it should have."""
    return text[:-8] + b"%08x" % zlib.crc32(text[:-8])


@given(
    st.sampled_from([b"0", b"7", b"007", b"%d" % VALUE, b"x", b""]),
    st.sampled_from([b"0", b"7", b"007", b"%d" % VALUE]),
    st.sampled_from([b"2", b"0", b"02", b"1"]),
    st.sampled_from([b"..", b"", b". .", b"\xc2\xb7"]),
    st.tuples(st.sampled_from([0, 2]), st.booleans()),
)
def test_what_is_seen_to_be_sound_at_a_glance_is_sound(
    key: bytes, value: bytes, count: bytes, filler: bytes, about: tuple[int, bool]
) -> None:
    headers, signed = about
    text = b"seawall ledger 0 %s %d %s %s 00000000" % (value, CREATED_MS, count, filler)
    held = (("value", key), ("null", None))[:headers]
    one = StoredRecord(key, resigned(text) if signed else text, held, CREATED_MS)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(payload, "_is_plainly_sent", lambda *_: False)
        thoroughly = judge(one, LEDGER)
    assert judge(one, LEDGER) == thoroughly


def test_a_sound_record_is_seen_at_a_glance(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_: object) -> None:
        raise AssertionError("the record was decoded")

    monkeypatch.setattr(payload, "decode", never)
    assert judge(found(record(VALUE)), LEDGER) == (VALUE, True)
