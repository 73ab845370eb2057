"""The records of ``__consumer_offsets``, which Kafka's own tools and brokers read."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from harness.coordination.ports import LogRecord
from harness.coordination.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    decoded,
    group_record,
    offset_record,
)
from harness.wire import batches as wire
from harness.wire.batches import Record
from harness.wire.errors import WireError
from tests.harness.coordination.groups_alone import GroupsAlone
from tests.harness.short_java import short_java
from tests.harness.targets.contract import fetched_or_skip

OFFSET = (OffsetCommitKey("g", "t", 7), OffsetCommitValue(5, 3, "mine", 1_000))
GROUP = (
    GroupMetadataKey("g"),
    GroupMetadataValue(
        "consumer",
        2,
        "range",
        "a-1",
        1_000,
        [MemberMetadata("a-1", "i", "a", "10.0.0.1", 10_000, 6_000, b"sub", b"as")],
    ),
)


def test_an_offset_is_written_as_kafka_writes_it() -> None:
    key, value = offset_record(*OFFSET)
    assert key == b"\0\1\0\1g\0\1t\0\0\0\7"
    assert value == b"\0\3" + (5).to_bytes(8, "big") + b"\0\0\0\3\0\4mine" + (1_000).to_bytes(8, "big")


@pytest.mark.parametrize("record", [offset_record(*OFFSET), group_record(*GROUP)])
def test_a_record_says_what_was_written_and_its_tombstone_what_it_deletes(record: LogRecord) -> None:
    said = decoded(*record)
    assert said in (OFFSET, GROUP)
    assert decoded(record.key, None) == (said[0], None)


def test_an_offset_of_an_old_broker_is_read() -> None:
    value = b"\0\1" + (5).to_bytes(8, "big") + b"\0\4mine" + (1_000).to_bytes(8, "big") + (2_000).to_bytes(8, "big")
    assert decoded(b"\0\0\0\1g\0\1t\0\0\0\7", value) == (
        OFFSET[0],
        OffsetCommitValue(5, -1, "mine", 1_000, 2_000),
    )


def test_a_key_of_another_kind_is_skipped() -> None:
    assert decoded(b"\0\4rest", b"\0\0rest") is None


@pytest.mark.parametrize(
    "value",
    [
        b"\0\3",
        b"\0\4" + bytes(30),
        (offset_record(*OFFSET).value or b"") + b"\0",
        b"\0\3" + bytes(12) + b"\x7f\xff" + bytes(8),
    ],
)
def test_a_malformed_value_is_one_error(value: bytes) -> None:
    with pytest.raises(WireError, match="OffsetCommitValue"):
        decoded(offset_record(*OFFSET).key, value)


@pytest.mark.parametrize(("key", "value"), [(b"", b""), (b"\0", None), (offset_record(*OFFSET).key, b"\0")])
def test_a_key_or_value_without_a_version_is_one_error(key: bytes, value: bytes | None) -> None:
    with pytest.raises(WireError, match=r"a key or value of \d bytes"):
        decoded(key, value)


def test_kafka_reads_what_is_written(tmp_path: Path) -> None:
    kafka = fetched_or_skip("3.9.1")
    alone = GroupsAlone()
    first, _ = alone.stable("a", "b")
    alone.commit(5, first, 1)
    alone.commit(7, group="h")
    alone.sleep()
    alone.groups.delete("h", lambda _: None)
    alone.sleep()
    log = tmp_path / "__consumer_offsets-0" / "00000000000000000000.log"
    log.parent.mkdir()
    records = [Record(offset, 1_000, *record) for offset, record in enumerate(alone.log)]
    log.write_bytes(bytes(wire.build(records)))
    words = [*short_java(kafka), "kafka.tools.DumpLogSegments", "--offsets-decoder"]
    dumped = subprocess.run(
        [*words, "--files", str(log)], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    lines = [line.split(" key: ")[1].split(" payload: ") for line in dumped.splitlines() if " payload: " in line]
    keys = [json.loads(key)["data"] for key, _ in lines]
    assert keys == [{"group": "g"}, *[{"group": one, "topic": "t", "partition": 0} for one in "ghh"], {"group": "h"}]
    assert [payload for _, payload in lines[3:]] == ["<DELETE>", "<DELETE>"]
    generation, offset = (json.loads(payload)["data"] for _, payload in lines[:2])
    assert [one["memberId"] for one in generation["members"]] == ["a-1", "b-2"]
    assert offset == {"offset": 5, "leaderEpoch": 3, "metadata": "mine", "commitTimestamp": alone.wall_ms()}


def test_kafka_reads_what_is_written_of_a_group_of_the_consumer_protocol(tmp_path: Path) -> None:
    kafka = fetched_or_skip("4.1.0")
    alone = GroupsAlone()
    for name, instance in (("a", "i"), ("b", None)):
        alone.member_heartbeat(name, 0, instance_id=instance)
        alone.sleep()
    alone.member_heartbeat("a", -1, None, instance_id="i")
    alone.sleep()
    log = tmp_path / "__consumer_offsets-0" / "00000000000000000000.log"
    log.parent.mkdir()
    log.write_bytes(bytes(wire.build([Record(offset, 1_000, *one) for offset, one in enumerate(alone.log)])))
    words = [*short_java(kafka), "kafka.tools.DumpLogSegments", "--offsets-decoder"]
    ran = subprocess.run([*words, "--files", str(log)], capture_output=True, text=True, timeout=60, check=True)
    lines = [line.split(" key: ")[1].split(" payload: ") for line in ran.stdout.splitlines() if " payload: " in line]
    assert [json.loads(key)["type"] for key, _ in lines] == [*"53768", *"537768", *"8753"]
    assert [payload for _, payload in lines[11:14]] == ["<DELETE>"] * 3
    has = json.loads(lines[4][1])["data"]
    assert (has["memberEpoch"], has["state"], has["assignedPartitions"][0]["partitions"]) == (1, 0, [0, 1, 2, 3])
