from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import payload
from harness.history.schema import REPLICA_LOGS, TIMELINE
from harness.model import NodeId
from harness.targets.node_evidence import replica_log_rows, storage_refusals, timeline_rows
from harness.wire import batches

NODE = NodeId(1)


def batch(base_offset: int, *values: int, leader_epoch: int = 0, partition: int = 0) -> bytes:
    built = batches.build([payload.encode(value, "ledger", partition) for value in values])
    batches.patch(built, 0, base_offset, leader_epoch)
    return bytes(built)


def data_dir(parent: Path, log: bytes) -> Path:
    (parent / "ledger-0").mkdir(parents=True, exist_ok=True)
    (parent / "ledger-0" / f"{0:020d}.log").write_bytes(log)
    return parent


def rows(parent: Path, log: bytes) -> list[dict[str, Any]]:
    return list(replica_log_rows(NODE, data_dir(parent, log)))


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


def test_a_record_of_an_idempotent_producer_has_its_own_sequence_number_which_wraps(tmp_path: Path) -> None:
    values = [payload.encode(value, "ledger", 0) for value in (70, 71)]
    built = batches.build(values, leader_epoch=0, producer_id=7, producer_epoch=2, base_sequence=2**31 - 1)
    found = rows(tmp_path, bytes(built))
    assert [(row["producer_id"], row["producer_epoch"], row["sequence"]) for row in found] == [
        (7, 2, 2**31 - 1),
        (7, 2, 0),
    ]
    assert not any(row["transactional"] for row in found)


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


def test_a_record_of_another_partition_is_not_intact(tmp_path: Path) -> None:
    assert [row["intact"] for row in rows(tmp_path, batch(0, 70, partition=5))] == [False]


@given(junk=st.binary(max_size=200), cut=st.integers(0, 80))
def test_garbage_is_never_trusted_and_never_fatal(tmp_path_factory: Any, junk: bytes, cut: int) -> None:
    log = batch(0, 70)
    found = rows(tmp_path_factory.mktemp("data"), log + log[: max(0, cut)] + junk)
    assert (found[0]["offset"], found[0]["value"]) == (0, 70)


def line(**fields: Any) -> str:
    return json.dumps({"sequence": 0, "incarnation": 0, "time_ns": 5, "wall_ms": 6, "kind": "state", **fields}) + "\n"


def test_a_timeline_row_torn_by_a_crash_is_dropped_and_leaves_its_gap(tmp_path: Path) -> None:
    timeline = tmp_path / "timeline.jsonl"
    timeline.write_text(line() + '{"sequence": 1, "ki\n' + line(sequence=2))
    assert [row["sequence"] for row in timeline_rows(NODE, timeline, tmp_path / "data", None)] == [0, 2]


def test_final_rows_of_a_live_node_are_what_it_said_last(tmp_path: Path) -> None:
    timeline = tmp_path / "timeline.jsonl"
    timeline.write_text(line(sequence=8, incarnation=2))
    replica = {"topic": "ledger", "partition": 0, "role": "leader", "leader": 1, "leader_epoch": 4, "isr": [1, 2]}
    status = {"monotonic_ns": 99, "wall_ms": 88, "replicas": [{**replica, "high_watermark": 3, "log_end_offset": 3}]}
    [_, final] = timeline_rows(NODE, timeline, tmp_path / "data", status)
    assert (final["kind"], final["sequence"], final["incarnation"], final["time_ns"]) == ("final", 9, 2, 99)
    assert (final["role"], final["leader_epoch"], final["high_watermark"]) == ("leader", 4, 3)
    assert json.loads(final["detail"]) == {"source": "live", "epochs_unread": "the replica lies in no log directory"}
    assert {"run", *final} == {column.name for column in TIMELINE.columns}


def live_final(tmp_path: Path, **status: Any) -> dict[str, Any]:
    place = {"topic": "ledger", "partition": 0}
    rows = {kind: [place | row for row in found] for kind, found in status.items()}
    [final] = timeline_rows(NODE, tmp_path / "none", tmp_path / "data", {"monotonic_ns": 9, "wall_ms": 8, **rows})
    return dict(json.loads(final["detail"]))


@pytest.mark.parametrize("log_dir", ["", "log-0", "log-1"])
def test_a_live_replica_s_epochs_are_found_in_whichever_log_directory_it_lies(tmp_path: Path, log_dir: str) -> None:
    (tmp_path / "data" / log_dir.replace("1", "0")).mkdir(parents=True)
    data_dir(tmp_path / "data" / log_dir, batch(0, 70))
    assert live_final(tmp_path, replicas=[{}]) == {"source": "live", "epochs": []}
    checkpoint = tmp_path / "data" / log_dir / "ledger-0" / "leader-epoch-checkpoint"
    checkpoint.write_text("0\n1\n3 0\n")
    assert live_final(tmp_path, replicas=[{}]) == {"source": "live", "epochs": [[3, 0]]}
    checkpoint.write_text("what")
    unread = {"source": "live", "epochs_unread": "leader-epoch-checkpoint is garbled"}
    assert live_final(tmp_path, replicas=[{}]) == unread


def test_the_controller_s_final_rows_need_no_epochs(tmp_path: Path) -> None:
    assert live_final(tmp_path, partitions=[{}]) == {"source": "live"}


def test_final_rows_of_a_dead_node_come_from_its_disk(tmp_path: Path) -> None:
    data = data_dir(tmp_path / "data", batch(0, 70, 71) + batch(2, 72, leader_epoch=3))
    (data / "ledger-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n3 2\n")
    (data / "replication-offset-checkpoint").write_text("0\n1\nledger 0 2\n")
    [final] = timeline_rows(NODE, tmp_path / "timeline.jsonl", data, None)
    assert (final["role"], final["leader_epoch"]) == ("offline", 3)
    assert (final["log_start_offset"], final["high_watermark"], final["log_end_offset"]) == (0, 2, 3)
    assert json.loads(final["detail"]) == {"source": "disk", "epochs": [[0, 0], [3, 2]]}
    assert {"run", *final} == {column.name for column in TIMELINE.columns}


def test_a_garbled_checkpoint_is_an_unknown_and_not_a_zero(tmp_path: Path) -> None:
    data = data_dir(tmp_path / "data", batch(0, 70))
    (data / "replication-offset-checkpoint").write_text("7\nwhat")
    [final] = timeline_rows(NODE, tmp_path / "timeline.jsonl", data, None)
    assert final["high_watermark"] is None


def test_storage_failure_is_that_of_the_incarnation_asked_for(tmp_path: Path) -> None:
    timeline = tmp_path / "timeline.jsonl"
    timeline.write_text(line(kind="storage_failed", incarnation=1, detail='{"errno": 28}'))
    assert storage_refusals(timeline, 1) == [{"errno": 28}]
    assert storage_refusals(timeline, 2) == []
