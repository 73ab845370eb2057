"""The logs on a broker's disk become rows, in whatever format they are."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import compacted, payload
from harness.broker.checkpoints import LOG_STARTS
from harness.broker.codecs import inflate
from harness.history.schema import REPLICA_LOGS
from harness.model import NodeId, TopicPartition
from harness.payload import Carried, ProducerRecord
from harness.targets.replica_logs import final_rows, metadata_log_blocks
from harness.wire import batches
from harness.wire.batches import LOG_APPEND_TIME, CorruptBatch
from tests.harness.targets.logs_on_disk import (
    GZIP,
    LZ4,
    MESSAGE_MS,
    SNAPPY,
    ZSTD,
    batch,
    compressed_batch,
    data_dir,
    entry,
    message,
    wrapper,
)
from tests.records import CREATED_MS, record, stored
from tests.replica_rows import on_disk, rows_in

NODE = NodeId(1)
LEDGER = TopicPartition("ledger", 0)


def rows(parent: Path, log: bytes) -> list[dict[str, Any]]:
    return on_disk(NODE, data_dir(parent, log))


def test_every_record_on_disk_is_a_row_with_its_batch(tmp_path: Path) -> None:
    found = rows(tmp_path, batch(0, 70, 71) + batch(2, 72, leader_epoch=3))
    assert [(row["offset"], row["value"], row["leader_epoch"], row["batch_base_offset"]) for row in found] == [
        (0, 70, 0, 0),
        (1, 71, 0, 0),
        (2, 72, 3, 2),
    ]
    assert all(row["intact"] for row in found)
    assert found[0]["batch_crc"] == found[1]["batch_crc"] != found[2]["batch_crc"]
    assert {"run", *found[0]} == {column.name for column in REPLICA_LOGS.columns}


def test_what_lies_below_a_log_start_that_is_only_told_is_no_part_of_the_log(tmp_path: Path) -> None:
    directory = data_dir(tmp_path, batch(0, 70, 71) + batch(2, 72))
    assert [row["offset"] for row in on_disk(NODE, directory, {LEDGER: 1})] == [1, 2]
    (directory / LOG_STARTS).write_text("0\n1\nledger 0 2\n")
    assert [row["offset"] for row in on_disk(NODE, directory, {LEDGER: 1})] == [2]


def test_a_record_of_an_idempotent_producer_has_its_own_sequence_number_which_wraps(tmp_path: Path) -> None:
    values = stored(record(value) for value in (70, 71))
    built = batches.build(values, leader_epoch=0, producer_id=7, producer_epoch=2, base_sequence=2**31 - 1)
    found = rows(tmp_path, bytes(built))
    assert [(row["producer_id"], row["producer_epoch"], row["sequence"]) for row in found] == [
        (7, 2, 2**31 - 1),
        (7, 2, 0),
    ]
    assert not any(row["transactional"] for row in found)


@pytest.mark.parametrize(
    "garbled",
    [
        lambda one: one._replace(key=b"70"),
        lambda one: one._replace(headers=()),
        lambda one: one._replace(timestamp_ms=CREATED_MS + 1),
    ],
)
def test_a_sound_batch_of_a_garbled_record_is_not_intact(
    tmp_path: Path, garbled: Callable[[ProducerRecord], ProducerRecord]
) -> None:
    built = batches.build(stored([record(70), garbled(record(71))]), leader_epoch=0)
    assert [(row["value"], row["intact"]) for row in rows(tmp_path, bytes(built))] == [(70, True), (71, False)]


@pytest.mark.parametrize("kept", [True, False])
def test_the_timestamp_of_a_broker_is_intact_where_the_clients_is_not_kept(tmp_path: Path, kept: bool) -> None:
    one = record(70, carried=Carried(timestamp=kept))
    built = batches.build(stored([one]), leader_epoch=0, attributes=batches.LOG_APPEND_TIME)
    assert [(row["value"], row["intact"]) for row in rows(tmp_path, bytes(built))] == [(70, not kept)]


@pytest.mark.parametrize("attributes", [0, LOG_APPEND_TIME])
def test_a_message_of_format_1_keeps_its_timestamp(tmp_path: Path, attributes: int) -> None:
    sound = record(70, carried=Carried(headers=False), timestamp_ms=MESSAGE_MS)
    late = record(71, carried=Carried(headers=False), timestamp_ms=MESSAGE_MS + 1)
    log = b"".join(entry(at, one.value or b"", 1, attributes, one.key) for at, one in enumerate((sound, late)))
    assert [(row["value"], row["intact"]) for row in rows(tmp_path, log)] == [(70, not attributes), (71, False)]


def test_a_transactions_marker_says_how_it_ended(tmp_path: Path) -> None:
    marker = batches.Record(0, 0, b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x00")
    bits = batches.CONTROL | batches.TRANSACTIONAL
    [row] = rows(tmp_path, bytes(batches.build([marker], leader_epoch=0, attributes=bits, producer_id=7)))
    assert (row["control"], row["transactional"], row["value"], row["intact"]) == ("commit", True, None, True)


def test_a_torn_tail_is_a_row_that_is_not_intact(tmp_path: Path) -> None:
    found = rows(tmp_path, batch(0, 70) + batch(1, 71)[:-5])
    assert [(row["offset"], row["value"], row["intact"]) for row in found] == [(0, 70, True), (1, None, False)]


def test_a_flipped_bit_is_a_row_that_is_not_intact_and_hides_nothing_behind_it(tmp_path: Path) -> None:
    broken = bytearray(batch(1, 71))
    broken[-3] ^= 1
    found = rows(tmp_path, batch(0, 70) + bytes(broken) + batch(2, 72))
    assert [(row["offset"], row["value"], row["intact"]) for row in found] == [
        (0, 70, True),
        (1, None, False),
        (2, 72, True),
    ]


def test_each_offset_of_a_damaged_batch_is_a_row(tmp_path: Path) -> None:
    broken = bytearray(batch(1, 71, 72, 73))
    broken[-3] ^= 1
    found = rows(tmp_path, batch(0, 70) + bytes(broken) + batch(4, 74))
    damaged = [(row["offset"], row["batch_base_offset"], row["value"]) for row in found if not row["intact"]]
    assert damaged == [(1, 1, None), (2, 1, None), (3, 1, None)]
    assert [row["offset"] for row in found] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("delta", [0x7FFF_FFFF, 40])
def test_a_damaged_batch_takes_no_offset_of_the_next_one(tmp_path: Path, delta: int) -> None:
    broken = bytearray(batch(1, 71, 72))
    broken[23:27] = delta.to_bytes(4, "big")
    found = rows(tmp_path / "between", batch(0, 70) + bytes(broken) + batch(3, 73))
    assert [(row["offset"], row["intact"]) for row in found] == [(0, True), (1, False), (2, False), (3, True)]
    assert len(rows(tmp_path / "last", bytes(broken))) == min(delta + 1, len(broken))


def test_a_record_of_another_partition_is_not_intact(tmp_path: Path) -> None:
    assert [row["intact"] for row in rows(tmp_path, batch(0, 70, partition=5))] == [False]


@given(junk=st.binary(max_size=200), cut=st.integers(0, 80))
def test_garbage_is_never_trusted_and_never_fatal(tmp_path_factory: Any, junk: bytes, cut: int) -> None:
    log = batch(0, 70)
    found = rows(tmp_path_factory.mktemp("data"), log + log[: max(0, cut)] + junk)
    assert (found[0]["offset"], found[0]["value"]) == (0, 70)


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_the_old_formats_are_rows_with_the_checksum_of_each(tmp_path: Path, magic: int) -> None:
    found = rows(tmp_path, message(0, 70, magic) + message(1, 71, magic) + batch(2, 72, leader_epoch=3))
    assert [(row["offset"], row["value"], row["leader_epoch"], row["batch_base_offset"]) for row in found] == [
        (0, 70, -1, 0),
        (1, 71, -1, 1),
        (2, 72, 3, 2),
    ]
    assert found[0]["batch_crc"] == zlib.crc32(message(0, 70, magic)[16:])
    assert all(row["intact"] and not row["transactional"] for row in found)
    assert {"run", *found[0]} == {column.name for column in REPLICA_LOGS.columns}


@pytest.mark.parametrize(("magic", "codec"), [(0, GZIP), (0, SNAPPY), (0, LZ4), (1, GZIP), (1, SNAPPY), (1, LZ4)])
def test_what_a_wrapper_holds_are_rows_with_their_own_offsets_and_its_checksum(
    tmp_path: Path, magic: int, codec: int
) -> None:
    found = rows(tmp_path, message(0, 70, magic) + wrapper(codec, 1, 71, 72, 73, magic=magic) + message(4, 74, magic))
    assert [(row["offset"], row["value"], row["batch_base_offset"]) for row in found] == [
        (0, 70, 0),
        (1, 71, 1),
        (2, 72, 1),
        (3, 73, 1),
        (4, 74, 4),
    ]
    assert all(row["intact"] for row in found)
    assert len({row["batch_crc"] for row in found}) == 3


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_batch_is_read_whatever_it_is_compressed_with(tmp_path: Path, codec: int) -> None:
    found = rows(tmp_path, compressed_batch(codec, *range(70, 90)) + batch(20, 90))
    assert [(row["offset"], row["value"], row["intact"]) for row in found] == [(n, 70 + n, True) for n in range(21)]


def test_what_is_compressed_with_snappy_and_in_no_blocks_is_read(tmp_path: Path) -> None:
    raw = bytes(pa.Codec("snappy").compress(message(0, 70), asbytes=True))
    assert [(row["value"], row["intact"]) for row in rows(tmp_path, entry(0, raw, 1, SNAPPY))] == [(70, True)]


@pytest.mark.parametrize("codec", [5, 7])
def test_a_batch_with_a_codec_that_nobody_knows_is_a_row_that_is_not_intact(tmp_path: Path, codec: int) -> None:
    found = rows(tmp_path, entry(0, b"x", 1, codec) + message(1, 71))
    assert [(row["offset"], row["value"], row["intact"]) for row in found] == [(0, None, False), (1, 71, True)]


@pytest.mark.parametrize("codec", [0, GZIP, SNAPPY, LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_a_flipped_bit_of_an_old_message_is_a_row_that_is_not_intact_and_hides_nothing_behind_it(
    tmp_path: Path, magic: int, codec: int
) -> None:
    whole = wrapper(codec, 1, 71, 72, magic=magic) if codec else message(2, 72, magic)
    for position in range(18, len(whole)):
        broken = bytearray(whole)
        broken[position] ^= 1
        found = rows(tmp_path, message(0, 70, magic) + bytes(broken) + message(3, 73, magic))
        assert [row["value"] for row in found] == [70, None, 73]
        assert [row["intact"] for row in found] == [True, False, True]


@pytest.mark.parametrize("magic", [0, 1])
def test_a_torn_message_of_an_old_format_is_no_record(tmp_path: Path, magic: int) -> None:
    for size in range(1, len(message(1, 71, magic))):
        found = rows(tmp_path, message(0, 70, magic) + message(1, 71, magic)[:size])
        assert [(row["offset"], row["value"], row["intact"]) for row in found] == [(0, 70, True), (1, None, False)]
        assert found[1]["batch_crc"] == 0


def test_a_message_in_a_wrapper_whose_own_checksum_is_wrong_is_not_intact(tmp_path: Path) -> None:
    inside = bytearray(message(0, 70))
    inside[-1] ^= 1
    [row] = rows(tmp_path, entry(0, gzip.compress(bytes(inside)), 1, GZIP))
    assert (row["value"], row["intact"]) == (None, False)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_what_inflates_without_end_is_not_inflated(monkeypatch: pytest.MonkeyPatch, codec: int) -> None:
    for module in ("harness.broker.codecs", "harness.wire.batches.record"):
        monkeypatch.setattr(f"{module}.MAX_INFLATED_BYTES", 1000)
    with pytest.raises(CorruptBatch, match=r"1000 bytes|claims 5000 bytes"):
        inflate(memoryview(gzip.compress(bytes(5000)) if codec == GZIP else _at_once(codec, bytes(5000))), codec, 2)


def _at_once(codec: int, data: bytes) -> bytes:
    return bytes(pa.Codec({SNAPPY: "snappy", LZ4: "lz4", ZSTD: "zstd"}[codec]).compress(data, asbytes=True))


@given(junk=st.binary(max_size=200), magic=st.sampled_from([0, 1]), codec=st.integers(0, 7))
def test_garbage_among_old_messages_is_never_trusted_and_never_fatal(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, magic: int, codec: int
) -> None:
    log = message(0, 70, magic)
    found = rows(tmp_path_factory.mktemp("data"), log + entry(1, junk, magic, codec) + junk)
    assert (found[0]["offset"], found[0]["value"]) == (0, 70)
    assert not any(row["intact"] for row in found[1:])


def test_the_metadata_log_of_kraft_is_no_replica_of_a_topic(tmp_path: Path) -> None:
    (tmp_path / "__cluster_metadata-0").mkdir()
    (tmp_path / "__cluster_metadata-0" / f"{0:020d}.log").write_bytes(batch(0, 70))
    assert [row["topic"] for row in rows(tmp_path, batch(0, 70))] == ["ledger"]


def test_the_records_of_the_metadata_log_are_intact_though_no_workload_s_unless_they_are_torn(tmp_path: Path) -> None:
    (tmp_path / f"{0:020d}.log").write_bytes(batch(0, 70) + batch(1, 71)[:-1])
    found = rows_in(metadata_log_blocks(NODE, tmp_path))
    about = {(row["node"], row["topic"], row["partition"], row["value"]) for row in found}
    assert about == {(NODE, "__cluster_metadata", 0, None)}
    assert [(row["offset"], row["intact"]) for row in found] == [(0, True), (1, False)]
    assert not list(metadata_log_blocks(NODE, tmp_path / "nowhere"))


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")
def test_messages_that_kafka_python_has_made_are_read(tmp_path: Path) -> None:
    from kafka.record.legacy_records import LegacyRecordBatchBuilder

    for magic, codec in product((0, 1), (0, GZIP)):
        builder = LegacyRecordBatchBuilder(magic, codec, 1 << 20)
        for number in range(3):
            created = None if magic == 0 else 5
            kept = Carried(headers=False, timestamp=magic == 1)
            one = payload.encode(70 + number, "ledger", 0, timestamp_ms=5, carried=kept)
            builder.append(number, created, one.key, one.value)
        built = bytearray(builder.build())
        if codec:
            built[:8] = (2).to_bytes(8, "big")  # what a leader does with a wrapper
        found = rows(tmp_path, bytes(built))
        assert [(row["value"], row["intact"]) for row in found] == [(70, True), (71, True), (72, True)]


def test_final_rows_of_a_dead_node_come_from_its_disk(tmp_path: Path) -> None:
    data = data_dir(tmp_path / "data", batch(0, 70, 71) + batch(2, 72, leader_epoch=3))
    (data / "ledger-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n3 2\n")
    (data / "replication-offset-checkpoint").write_text("0\n1\nledger 0 2\n")
    [final] = final_rows(data)
    assert (final["role"], final["leader_epoch"]) == ("offline", 3)
    assert (final["log_start_offset"], final["high_watermark"], final["log_end_offset"]) == (0, 2, 3)
    assert json.loads(final["detail"]) == {
        "source": "disk",
        "recovery_point": None,
        "clean_shutdown": False,
        "epochs": [[0, 0], [3, 2]],
    }


def test_a_replica_with_an_empty_segment_alone_begins_and_ends_where_that_does(tmp_path: Path) -> None:
    (tmp_path / "ledger-0").mkdir()
    for base_offset in (5, 9):
        (tmp_path / "ledger-0" / f"{base_offset:020d}.log").touch()
    [final] = final_rows(tmp_path)
    assert (final["log_start_offset"], final["log_end_offset"]) == (5, 9)


def test_a_segment_that_is_preallocated_ends_with_its_last_record(tmp_path: Path) -> None:
    data = data_dir(tmp_path, batch(0, 70) + bytes(4096))
    assert [(row["offset"], row["intact"]) for row in on_disk(NODE, data)] == [(0, True)]
    assert [final["log_end_offset"] for final in final_rows(data)] == [1]
    assert not rows(tmp_path, bytes(4096))


def test_zeros_before_a_record_or_before_a_segment_are_damage(tmp_path: Path) -> None:
    found = rows(tmp_path, batch(0, 70) + bytes(4096) + batch(1, 71))
    assert [(row["offset"], row["intact"]) for row in found] == [(0, True), (1, False)]
    data = data_dir(tmp_path, batch(0, 70) + bytes(4096))
    (data / "ledger-0" / f"{2:020d}.log").write_bytes(batch(2, 72))
    found = on_disk(NODE, data)
    assert [(row["offset"], row["intact"]) for row in found] == [(0, True), (1, False), (2, True)]


def test_a_garbled_checkpoint_is_an_unknown_and_not_a_zero(tmp_path: Path) -> None:
    data = data_dir(tmp_path / "data", batch(0, 70))
    (data / "replication-offset-checkpoint").write_text("7\nwhat")
    [final] = final_rows(data)
    assert final["high_watermark"] is None


def test_what_the_broker_had_flushed_and_closed_is_told(tmp_path: Path) -> None:
    data = data_dir(tmp_path / "data", batch(0, 70))
    (data / "recovery-point-offset-checkpoint").write_text("0\n1\nledger 0 1\n")
    (data / ".kafka_cleanshutdown").touch()
    [final] = final_rows(data)
    detail = json.loads(final["detail"])
    assert (detail["recovery_point"], detail["clean_shutdown"]) == (1, True)


def test_what_compaction_has_written_and_not_renamed_is_part_of_a_compacted_log_alone(tmp_path: Path) -> None:
    for topic in (compacted.TOPIC, "ledger"):
        directory = tmp_path / f"{topic}-0"
        directory.mkdir()
        value = compacted.SLOTS + 2
        kept = compacted.record(value, TopicPartition(topic, 0), 8, CREATED_MS)
        swapped = batches.build(stored([kept]))
        batches.patch(swapped, 0, 7, 2)
        (directory / f"{7:020}.log.swap").write_bytes(swapped)
        (directory / f"{9:020}.log").write_bytes(b"")
    found = on_disk(NODE, tmp_path)
    assert [(row["topic"], row["offset"], row["value"], row["intact"]) for row in found] == [
        (compacted.TOPIC, 7, value, True)
    ]
