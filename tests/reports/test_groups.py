"""Consumer groups: where they stand beside what is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import reports
from harness.checker import Outcome, RunVerdict
from harness.history.run_directory import RunDirectory
from reports.groups import standings
from reports.run import read


@pytest.fixture
def run_directory(double_failover_recording: Any, tmp_path: Path) -> Path:
    """In the end the log of ledger-0 goes from 0 to 30."""
    written: Path = double_failover_recording.write(tmp_path / "run", RunVerdict("", Outcome.PASS, "python"))
    return written


@pytest.mark.parametrize(
    ("position", "remark", "alarming"),
    [(30, "at the end", False), (23, "7 to read", False), (33, "3 beyond the end", True)],
)
def test_a_group_stands_somewhere_in_the_log_or_beyond_it(
    run_directory: Path, position: int, remark: str, alarming: bool
) -> None:
    groups = {"readers": {"given": {}, "position": {"ledger-0": position}}}
    RunDirectory.open(run_directory).write_schedule_log({"values": {}, "orders": [], "groups": groups})
    [standing] = standings(read(run_directory))
    assert (standing.group, str(standing.partition), standing.position) == ("readers", "ledger-0", position)
    assert (standing.start_offset, standing.end_offset) == (0, 30)
    assert standing.remark.startswith(remark)
    assert standing.alarming is alarming
    assert remark in reports.write(run_directory).read_text()


def test_a_group_on_a_partition_that_nobody_led_in_the_end_is_told_so(run_directory: Path) -> None:
    groups = {"readers": {"given": {}, "position": {"ghost-0": 3}}}
    RunDirectory.open(run_directory).write_schedule_log({"values": {}, "orders": [], "groups": groups})
    [standing] = standings(read(run_directory))
    assert standing.end_offset is None
    assert "no broker led" in standing.remark


def test_without_a_schedule_log_the_report_is_silent_about_groups(run_directory: Path) -> None:
    assert standings(read(run_directory)) == []
    assert 'id="groups"' not in reports.write(run_directory).read_text()


def test_a_schedule_log_that_is_none_is_an_error(run_directory: Path) -> None:
    RunDirectory.open(run_directory).write_schedule_log(
        {"values": {}, "orders": [], "groups": {"readers": {"position": 3}}}
    )
    run = read(run_directory)
    assert standings(run) == []
    assert (
        f"Not looked at: {run_directory}/schedule_log.json: groups.readers" in reports.write(run_directory).read_text()
    )
