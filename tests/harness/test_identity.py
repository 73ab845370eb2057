"""A record of the output shows which record of the input it holds, whatever a program has made of the rest."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.identity import KEYS, held, identities, identity_of, input_record, key_of, pointed_at
from harness.model import TopicPartition
from harness.payload import ProducerRecord, StoredRecord, judge

INPUT, OUTPUT = TopicPartition("orders", 1), TopicPartition("done", 1)
VALUE = (42 << 32) + 5 * KEYS + 7


def found(one: ProducerRecord) -> StoredRecord:
    return StoredRecord(one.key, one.value, tuple(one.headers), one.timestamp_ms)


@given(st.integers(0, 10**18 - 1), st.sampled_from([0, 90, 500]))
def test_a_record_of_the_input_shows_its_value_to_brokers_and_programs(value: int, size: int) -> None:
    one = input_record(value, INPUT, size, 1)
    assert judge(found(one), INPUT) == (value, True)
    assert held(one.value) == identities(b"seen: " + identity_of(value).encode() + b".") == [value]
    assert json.loads(one.value or b"")["key"].encode() == one.key == key_of(value)
    assert len(one.value or b"") >= size


def test_another_partition_or_another_content_is_damage() -> None:
    one = found(input_record(VALUE, INPUT, 0, 1))
    assert judge(one, INPUT._replace(partition=0)) == (VALUE, False)
    assert judge(one._replace(value=b"{}"), INPUT) == (VALUE, False)
    assert judge(one._replace(key=b"key-8"), INPUT) == (VALUE, False)
    assert judge(one._replace(headers=(*one.headers, ("more", b""))), INPUT) == (VALUE, False)


def test_a_program_that_copies_headers_and_content_damages_nothing() -> None:
    assert judge(found(input_record(VALUE, INPUT, 0, 1)), OUTPUT) == (None, False)
    assert judge(StoredRecord(b"k", b"x", (("seawall-input", b"no mark"),), 1), INPUT) == (None, False)


@pytest.mark.parametrize(
    ("at", "content", "values"),
    [
        ("", b"nothing", []),
        ("", b"sw-7-00000000", []),
        ("", f"{identity_of(3)} {identity_of(4)} {identity_of(3)}".encode(), [3, 4]),
        ("/order/id", json.dumps({"order": {"id": identity_of(3)}, "other": identity_of(4)}).encode(), [3]),
        ("/1", json.dumps([identity_of(3), {"id": identity_of(4)}]).encode(), [4]),
        ("/a~1b", json.dumps({"a/b": identity_of(3)}).encode(), [3]),
        ("/id", b"no JSON " + identity_of(3).encode(), []),
        ("/id", b"{}", []),
        ("header:trace", b"", [9]),
    ],
)
def test_an_identity_is_looked_for_where_it_is_said_to_be(at: str, content: bytes, values: list[int]) -> None:
    assert held(content, None, (("trace", identity_of(9).encode()),) if at.startswith("header:") else (), at) == values


def test_where_nothing_is_said_the_key_and_other_headers_are_looked_at_last() -> None:
    copied = input_record(5, INPUT, 0, 1).headers
    assert held(b"", identity_of(3).encode(), copied) == [3]
    assert held(b"", None, (*copied, ("trace", identity_of(4).encode()))) == [4]
    assert held(None, None, copied) == []


def test_a_pointer_leads_to_json_too() -> None:
    assert pointed_at(b'{"a": {"b": 1}}', "/a") == b'{"b": 1}'
    assert pointed_at(None, "/a") is None
