from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.history.schema import TIMELINE
from harness.model import NodeId
from harness.targets.node_evidence import NODE_WIRE, storage_refusals, taps_left_behind, timeline_rows
from tests.harness.targets.logs_on_disk import batch, data_dir

NODE = NodeId(1)


def line(**fields: Any) -> str:
    return json.dumps({"sequence": 0, "incarnation": 0, "time_ns": 5, "wall_ms": 6, "kind": "state", **fields}) + "\n"


def test_a_timeline_row_torn_by_a_crash_is_dropped_and_leaves_its_gap(tmp_path: Path) -> None:
    timeline = tmp_path / "timeline.jsonl"
    timeline.write_text(line() + '{"sequence": 1, "ki\n' + line(sequence=2))
    rows = timeline_rows(NODE, timeline, tmp_path / "data", None)
    assert [row["sequence"] for row in rows if row["kind"] != "final"] == [0, 2]


def test_every_life_of_a_node_has_a_final_row_behind_its_last_one(tmp_path: Path) -> None:
    timeline = tmp_path / "timeline.jsonl"
    timeline.write_text(line() + line(sequence=1, time_ns=7) + line(incarnation=1, time_ns=9))
    ends = [row for row in timeline_rows(NODE, timeline, tmp_path / "data", None) if row["kind"] == "final"]
    told = [(row["incarnation"], row["sequence"], row["time_ns"], row["topic"], row["role"]) for row in ends]
    assert told == [(0, 2, 7, None, None), (1, 1, 9, None, None)]
    assert all({"run", *row} == {column.name for column in TIMELINE.columns} for row in ends)


def test_final_rows_of_a_live_node_are_what_it_said_last(tmp_path: Path) -> None:
    timeline = tmp_path / "timeline.jsonl"
    timeline.write_text(line(sequence=8, incarnation=2))
    replica = {"topic": "ledger", "partition": 0, "role": "leader", "leader": 1, "leader_epoch": 4, "isr": [1, 2]}
    status = {"monotonic_ns": 99, "wall_ms": 88, "replicas": [{**replica, "high_watermark": 3, "log_end_offset": 3}]}
    [_, _, final] = timeline_rows(NODE, timeline, tmp_path / "data", status)
    assert (final["kind"], final["sequence"], final["incarnation"], final["time_ns"]) == ("final", 10, 2, 99)
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


def test_storage_failure_is_that_of_the_incarnation_asked_for(tmp_path: Path) -> None:
    timeline = tmp_path / "timeline.jsonl"
    timeline.write_text(line(kind="storage_failed", incarnation=1, detail='{"errno": 28}'))
    assert storage_refusals(timeline, 1) == [{"errno": 28}]
    assert storage_refusals(timeline, 2) == []


def tapped(event: str, **said: Any) -> str:
    return json.dumps({"event": event, "connection": "0-1", "time_ns": 5, "correlation_id": 3, **said}) + "\n"


def test_what_a_wire_tap_recorded_is_lost_with_the_harness(tmp_path: Path) -> None:
    assert taps_left_behind(tmp_path) is None
    (tmp_path / "broker-1").mkdir()
    request = tapped("request", peer="clients", api="PRODUCE", version=9, parts=[{"topic": "ledger", "partition": 0}])
    response = tapped("response", time_ns=8, parts=[{"topic": "ledger", "partition": 0, "base_offset": 4}])
    (tmp_path / "broker-1" / NODE_WIRE).write_text(request + response + request + response[:30])
    left = taps_left_behind(tmp_path)
    assert left is not None
    rows = [(row["node"], row["request_ns"], row["response_ns"], row["base_offset"]) for row in left]
    assert rows == [(1, 5, 8, 4), (1, 5, None, None)]
