"""Leaders and ISRs by a controller's timeline, while it is being written."""

from __future__ import annotations

import json
from pathlib import Path

from harness.model import NodeId, TopicPartition
from harness.target import Leadership
from harness.targets.controller_tail import ControllerTail, GrowingFile, GrowingList

LEDGER = TopicPartition("ledger", 0)


def row(kind: str, leader: int, *isr: int) -> bytes:
    place = {"topic": "ledger", "partition": 0, "leader": leader, "isr": isr}
    return json.dumps({"kind": kind, **place}, separators=(",", ":")).encode() + b"\n"


def led(leader: int, *isr: int) -> dict[TopicPartition, Leadership]:
    return {LEDGER: Leadership(NodeId(leader), tuple(map(NodeId, isr)))}


def test_the_last_decision_counts_and_a_line_that_is_not_whole_is_awaited(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    tail = ControllerTail(GrowingFile(path))
    assert tail.leaders() == {}
    path.write_bytes(row("election", 0, 0, 1, 2) + row("isr", 0, 0, 1)[:-9])
    assert tail.leaders() == led(0, 0, 1, 2)
    path.write_bytes(row("election", 0, 0, 1, 2) + row("isr", 0, 0, 1))
    assert tail.leaders() == led(0, 0, 1)


def test_a_line_that_a_crash_has_torn_and_rows_of_other_kinds_are_passed_over() -> None:
    rows = [row("election", 1, 1, 2)]
    tail = ControllerTail(GrowingList(rows))
    assert tail.leaders() == led(1, 1, 2)
    rows += [row("isr", 2, 2)[:-9], b'{"kind":"session"}\n', row("state", 0, 0)]
    assert tail.leaders() == led(1, 1, 2)
