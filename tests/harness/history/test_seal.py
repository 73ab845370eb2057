"""A verdict that is not the checker's verdict on what is in its directory is found out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.history.run_directory import Manifest, RunDirectory
from harness.history.seal import doubts, inputs, sealed

EDITED = "verdict.json was changed after the checker had written it."


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    made = RunDirectory.create(tmp_path / "run", Manifest("r", "small", 1, "2020-01-01T00:00:00+00:00"))
    for name in ("history", "timeline", "replica_logs", "faults"):
        made.write_table(name, [])
    made.write_schedule_log({"values": {}, "orders": [], "groups": {}})
    made.write_verdict(sealed({"run": "r", "numbers": {1: 0.1}, "list": (1, 2)}, inputs(made)))
    return made


def asked(directory: RunDirectory) -> list[str]:
    return list(doubts(directory, directory.read_verdict() or {}))


def test_a_verdict_on_what_is_there_is_not_doubted(directory: RunDirectory, tmp_path: Path) -> None:
    assert asked(directory) == []
    moved = shutil.copytree(directory.path, tmp_path / "moved")
    assert asked(RunDirectory(moved)) == []


def test_what_is_no_evidence_may_change(directory: RunDirectory) -> None:
    (directory.broker_logs / "broker-0.log").write_text("started\n")
    (directory.path / "notes.txt").write_text("mine")
    assert asked(directory) == []


@pytest.mark.parametrize("change", [{"run": "s"}, {"outcome": "pass"}, {"inputs": {}}, {"digest": "0" * 64}])
def test_a_verdict_that_was_edited_is_doubted(change: dict[str, Any], directory: RunDirectory) -> None:
    document = json.loads(directory.verdict_path.read_text())
    directory.verdict_path.write_text(json.dumps(document | change))
    assert asked(directory) == [EDITED]


def test_a_verdict_without_digests_is_doubted(directory: RunDirectory) -> None:
    directory.write_verdict({"run": "r"})
    [doubt] = asked(directory)
    assert doubt.startswith("verdict.json does not say what it was made of")


def test_a_verdict_on_a_run_behind_a_uri_is_doubted(directory: RunDirectory) -> None:
    directory.write_verdict(sealed({"run": "r"}, {}))
    [doubt] = asked(directory)
    assert doubt.startswith("verdict.json was made of a run behind a URI")


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b" ")


def copy_beside(path: Path) -> None:
    shutil.copy(path, path.with_name("part-00001.parquet"))


@pytest.mark.parametrize(
    ("file", "change", "name"),
    [
        ("run.json", append, "run.json"),
        ("schedule_log.json", append, "schedule_log.json"),
        ("schedule_log.json", Path.unlink, "schedule_log.json"),
        ("history/part-00000.parquet", append, "history"),
        ("timeline/part-00000.parquet", Path.unlink, "timeline"),
        ("replica_logs/part-00000.parquet", copy_beside, "replica_logs"),
        ("faults.parquet", append, "faults"),
    ],
)
def test_a_run_that_changed_is_told_with_what_changed(
    file: str, change: Callable[[Path], object], name: str, directory: RunDirectory
) -> None:
    change(directory.path / file)
    assert asked(directory) == [f"What was checked is not what is in this directory now: {name} changed since."]


def test_a_verdict_of_another_run_is_doubted(directory: RunDirectory, tmp_path: Path) -> None:
    other = RunDirectory.create(tmp_path / "other", Manifest("s", "small", 2, "2020-01-01T00:00:00+00:00"))
    shutil.copy(directory.verdict_path, other.verdict_path)
    [doubt] = asked(other)
    assert doubt.startswith(
        "What was checked is not what is in this directory now: run.json, schedule_log.json, history"
    )
