"""The records of the compacted topic."""

from __future__ import annotations

import pytest

from harness import compacted
from harness.model import TopicPartition
from harness.payload import StoredRecord, judge

PLACE = TopicPartition(compacted.TOPIC, 0)


def stored(value: int) -> StoredRecord:
    one = compacted.record(value, PLACE, 40, 1_000)
    return StoredRecord(one.key, one.value, one.headers, one.timestamp_ms)


@pytest.mark.parametrize("value", [0, 1, 6, 7, (5 << 32) + 3 * compacted.SLOTS + 9])
def test_a_record_does_not_show_which_write_it_is(value: int) -> None:
    found = stored(value)
    assert judge(found, PLACE) == (value, True)
    assert found.key == b"key-%d" % compacted.key_number(value)
    assert (found.value is None) == compacted.is_tombstone(value) == bool(value % 2)


def test_a_record_that_was_altered_is_taken_for_whole() -> None:
    assert judge(stored(6)._replace(key=b"key-4"), PLACE) == (6, False)
    assert judge(stored(6)._replace(value=None), PLACE) == (6, False)
    assert judge(stored(7)._replace(value=b"7"), PLACE) == (7, False)
    assert judge(stored(7), TopicPartition("other", 0)) == (7, False)
