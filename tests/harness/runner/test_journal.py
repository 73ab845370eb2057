from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from harness.errors import EnvironmentFault
from harness.history.run_directory import Manifest, RunDirectory
from harness.runner.journal import Entries, Journal, ProcessMark, heal_leftovers, journal_directory
from harness.targets import log_dirs

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def dead_harness(run: Path, nodes: dict[str, ProcessMark], *, is_temporary: bool = False) -> Path:
    """A journal as a harness that was killed in the middle of a run leaves it."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    owner = ProcessMark.of(gone.pid)
    gone.wait()
    path = journal_directory() / "dead.json"
    path.write_text(json.dumps(asdict(Entries(owner, str(run), is_temporary, nodes, {"frozen": {"kind": "pause"}}))))
    return path


def test_the_journal_of_a_run_that_ended_is_gone(tmp_path: Path) -> None:
    with Journal(tmp_path / "run") as journal:
        journal.fault_coming("f001", "kill", {"node": 1})
        assert len(list(journal_directory().iterdir())) == 1
    assert not list(journal_directory().iterdir())


@pytest.mark.parametrize("is_marked", [False, True])
def test_the_journal_of_a_run_that_fails_stays_until_its_directory_says_how_it_ended(
    tmp_path: Path, is_marked: bool
) -> None:
    with pytest.raises(OSError), Journal(tmp_path / "run") as journal:  # noqa: PT011, PT012
        if is_marked:
            journal.all_is_undone()
        raise OSError
    assert bool(list(journal_directory().iterdir())) is not is_marked


def test_a_harness_that_lives_is_left_alone(tmp_path: Path) -> None:
    with Journal(tmp_path / "run"):
        assert heal_leftovers() == []
        assert len(list(journal_directory().iterdir())) == 1


def test_the_nodes_of_a_dead_harness_are_killed_and_its_all_is_undone_and_it_is_said_once(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", Manifest("r", "small", 1, "2020-01-01T00:00:00+00:00"))
    node = subprocess.Popen(SLEEP)
    dead_harness(run.path, {"broker": ProcessMark.of(node.pid)})
    [line] = heal_leftovers()
    assert node.wait(5) == -9
    assert str(run.path) in line
    assert "killed its nodes (broker)" in line
    assert "frozen (pause)" in line
    assert run.manifest().state == "abandoned"
    assert heal_leftovers() == []


def test_a_log_directory_that_a_dead_harness_had_put_aside_is_put_back(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", Manifest("r", "small", 1, "2020-01-01T00:00:00+00:00"))
    directory = run.path / "cluster" / "broker-0" / "data" / "log-1"
    directory.mkdir(parents=True)
    (directory / "kept").touch()
    log_dirs.fail(directory)
    dead_harness(run.path, {})
    [line] = heal_leftovers()
    assert line.endswith(f"; put back {directory.resolve()}.")
    assert (directory / "kept").exists()


def test_a_process_that_has_the_number_of_a_dead_node_is_left_alone(tmp_path: Path) -> None:
    bystander = subprocess.Popen(SLEEP)
    try:
        mark = ProcessMark.of(bystander.pid)
        dead_harness(tmp_path, {"0": ProcessMark(mark.pid, mark.create_time - 100)})
        [line] = heal_leftovers()
        assert "none was left" in line
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_a_run_that_ended_before_its_harness_died_keeps_its_state(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", Manifest("r", "small", 1, "2020-01-01T00:00:00+00:00"))
    run.finish("complete", 3.0)
    dead_harness(run.path, {})
    heal_leftovers()
    assert run.manifest().state == "complete"


@pytest.mark.parametrize("is_temporary", [False, True])
def test_only_a_directory_that_the_dead_harness_made_for_itself_is_removed(tmp_path: Path, is_temporary: bool) -> None:
    kept = tmp_path / "cluster" / "broker-0"
    kept.mkdir(parents=True)
    dead_harness(kept.parent, {}, is_temporary=is_temporary)
    [line] = heal_leftovers()
    assert str(kept.parent) in line
    assert kept.parent.exists() is not is_temporary


@pytest.mark.parametrize("text", ["", "{", "[]", '{"owner": 3}', '{"nodes": {"a": 1}}'])
def test_a_garbled_journal_is_removed_and_said(text: str) -> None:
    path = journal_directory() / "x.json"
    path.write_text(text)
    assert heal_leftovers() == [f"Removed the unreadable journal {path}."]
    assert not path.exists()


def test_a_directory_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    journal_directory().chmod(0o755)
    with pytest.raises(EnvironmentFault, match="is not this user's alone"):
        journal_directory()
