from __future__ import annotations

import contextlib
import zlib
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.wire import batches
from harness.wire.batches import (
    GZIP,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    NONE,
    BatchHeader,
    CorruptBatch,
    Record,
    build,
    complete_size,
    headers,
    patch,
    records,
    verify,
)

quick = settings(max_examples=60, deadline=None, derandomize=True)

blobs = st.none() | st.binary(max_size=200)
told = st.lists(
    st.builds(
        Record,
        offset=st.just(0),
        timestamp=st.integers(0, 2**41),
        key=blobs,
        value=blobs,
        headers=st.lists(st.tuples(st.text(max_size=5), blobs), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=5,
).map(lambda made: [record._replace(offset=40 + index) for index, record in enumerate(made)])


def three() -> bytearray:
    return build([b"a", b"b"]) + build([b"c"], base_offset=2, codec=GZIP) + build([None] * 3, base_offset=3)


@quick
@given(told, st.sampled_from([NONE, GZIP]))
def test_records_change_in_a_batch(made: list[Record], codec: int) -> None:
    batch = build(made, base_offset=40, codec=codec)
    (header,) = headers(batch)
    assert verify(batch, header)
    assert list(records(batch, header)) == made
    assert header.max_timestamp == max(record.timestamp for record in made)


def test_a_header_says_something_else_than_the_batch_was_built_with() -> None:
    batch = build(
        [b"x", b"y"], base_offset=7, leader_epoch=3, timestamp_ms=99, producer_id=5, producer_epoch=6, base_sequence=8
    )
    crc = int.from_bytes(batch[17:21], "big")
    assert headers(b"".join([build([b"z"]), batch]))[1] == BatchHeader(
        len(build([b"z"])), len(batch), 7, 9, 3, 2, crc, 0, 2, 99, 5, 6, 8
    )


def test_batches_in_one_buffer_are_missed() -> None:
    buffer = three()
    found = headers(memoryview(buffer))
    assert [(header.base_offset, header.end_offset, header.record_count) for header in found] == [
        (0, 2, 2),
        (2, 3, 1),
        (3, 6, 3),
    ]
    assert [header.position + header.size for header in found][-1] == len(buffer)
    assert headers(b"") == []


def test_a_torn_batch_is_taken_for_whole() -> None:
    buffer = bytes(three())
    ends = [0, *(header.position + header.size for header in headers(buffer))]
    for size in range(len(buffer)):
        assert complete_size(buffer[:size]) == max(end for end in ends if end <= size)
        if size not in ends:
            with pytest.raises(CorruptBatch):
                headers(buffer[:size])
    assert complete_size(buffer) == len(buffer)


@pytest.mark.parametrize("length", [-(2**31), -1, 0, HEADER_BYTES - 13])
def test_an_impossible_length_is_taken(length: int) -> None:
    batch = build([b"x"])
    batch[8:12] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptBatch, match="claims a length"):
        headers(batch)
    with pytest.raises(CorruptBatch, match="claims a length"):
        complete_size(batch)


@pytest.mark.parametrize("magic", [0, 1, 3, 255])
def test_another_magic_is_taken(magic: int) -> None:
    batch = build([b"x"])
    batch[16] = magic
    with pytest.raises(CorruptBatch, match="magic"):
        headers(batch)


@pytest.mark.parametrize("position", [0, 23, 57])
def test_a_negative_offset_or_count_is_taken(position: int) -> None:
    batch = build([b"x"])
    batch[position] = 0xFF
    with pytest.raises(CorruptBatch):
        headers(batch)


def test_a_changed_byte_has_the_right_checksum() -> None:
    batch = build([b"some value"])
    (header,) = headers(batch)
    for position in range(21, len(batch)):
        changed = bytearray(batch)
        changed[position] ^= 1
        assert not verify(changed, header), position
    changed = bytearray(batch)
    changed[17] ^= 1
    assert not verify(changed, headers(changed)[0])


def test_patching_breaks_the_checksum_or_another_batch() -> None:
    buffer = three()
    before = bytes(buffer)
    middle = headers(buffer)[1]
    patch(memoryview(buffer), middle.position, 1_000_000, 77)
    patched = headers(buffer)
    assert (patched[1].base_offset, patched[1].end_offset, patched[1].leader_epoch) == (1_000_000, 1_000_001, 77)
    assert all(verify(buffer, header) for header in patched)
    assert [record.offset for record in records(buffer, patched[1])] == [1_000_000]
    changed = {at - middle.position for at in range(len(buffer)) if buffer[at] != before[at]}
    assert changed <= {*range(8), *range(12, 16)}


def test_log_append_time_is_not_every_records_timestamp() -> None:
    batch = build([Record(0, 10, None, b"a"), Record(1, 30, None, b"b")], attributes=LOG_APPEND_TIME)
    assert [record.timestamp for record in records(batch, headers(batch)[0])] == [30, 30]


@pytest.mark.parametrize(("codec", "name"), [(2, "snappy"), (3, "lz4"), (4, "zstd"), (7, "codec 7")])
def test_a_codec_that_cannot_be_read_is_not_named(codec: int, name: str) -> None:
    batch = build([b"x"], attributes=codec)
    with pytest.raises(CorruptBatch, match=name):
        list(records(batch, headers(batch)[0]))


def test_a_gzip_bomb_is_inflated(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = build([bytes(5000)], codec=GZIP)
    (header,) = headers(batch)
    assert len(list(records(batch, header))) == 1
    monkeypatch.setattr("harness.wire.batches.record.MAX_INFLATED_BYTES", 1000)
    with pytest.raises(CorruptBatch, match="1000 bytes"):
        list(records(batch, header))


@pytest.mark.parametrize("codec", [NONE, GZIP])
@pytest.mark.parametrize("count", [0, 1, 3, 2**31 - 1])
def test_a_wrong_record_count_is_taken(codec: int, count: int) -> None:
    batch = build([b"a", b"b"], codec=codec)
    batch[57:61] = count.to_bytes(4, "big")
    with pytest.raises(CorruptBatch):
        list(records(batch, headers(batch)[0]))


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_changed_bytes_raise_something_else_than_a_corrupt_batch(codec: int) -> None:
    random = Random(codec)
    good = build([Record(0, 5, b"key", b"value" * 9, (("h", b"x"), ("n", None))), b"second"], codec=codec)
    for _ in range(1500):
        batch = bytearray(good)
        for _ in range(random.randint(1, 3)):
            at = random.randrange(len(batch))
            batch[at : at + random.randint(0, 2)] = random.randbytes(random.randint(0, 3))
        with contextlib.suppress(CorruptBatch):
            complete_size(batch)
            for header in headers(batch):
                verify(batch, header)
                list(records(batch, header))


def test_trailing_or_torn_gzip_is_taken() -> None:
    batch = build([b"a"], codec=GZIP)
    plain = zlib.decompress(batch[HEADER_BYTES:], 31)
    for body in (zlib.compress(plain), batch[HEADER_BYTES:-3], b"not gzip"):
        odd = batch[:HEADER_BYTES] + body
        odd[8:12] = (len(odd) - 12).to_bytes(4, "big")
        with pytest.raises(CorruptBatch):
            list(records(odd, headers(odd)[0]))


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")
@quick
@given(told, st.sampled_from([NONE, GZIP]))
def test_kafka_python_builds_or_reads_another_batch(made: list[Record], codec: int) -> None:
    from kafka.record.default_records import (
        DefaultRecordBatch,
        DefaultRecordBatchBuilder,
    )

    made = [record._replace(offset=index) for index, record in enumerate(made)]
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=False, producer_id=5, producer_epoch=6, base_sequence=7,
        batch_size=1 << 20,
    )  # fmt: skip
    for index, record in enumerate(made):
        builder.append(index, record.timestamp, record.key, record.value, list(record.headers))
    theirs = bytes(builder.build())
    (header,) = headers(theirs)
    assert verify(theirs, header)
    assert list(records(theirs, header)) == made
    ours = build(made, codec=codec, producer_id=5, producer_epoch=6, base_sequence=7, leader_epoch=header.leader_epoch)
    if codec == NONE:
        assert bytes(ours) == theirs
    batch = DefaultRecordBatch(bytes(ours))
    assert batch.validate_crc()
    assert [
        Record(record.offset, record.timestamp, record.key, record.value, tuple(map(tuple, record.headers)))
        for record in batch
    ] == made


def test_the_package_lacks_a_name_it_promises() -> None:
    assert all(hasattr(batches, name) for name in batches.__all__)
