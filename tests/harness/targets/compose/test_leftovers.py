"""What is left on an engine, and whose it is; the engine is scripted."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from harness.errors import EnvironmentFault
from harness.targets.compose.leftovers import remove_lost, remove_project
from harness.targets.compose.ownership import is_gone, owner
from tests.harness.targets.compose.scripted_engine import ScriptedEngine, scripted_engine

SAYS_WHO_IT_IS = "from harness.targets.compose.ownership import owner; print(owner(), flush=True); input()"
MINE, DEAD, FROM_BEFORE = "seawall-00000001", "seawall-00000002", "seawall-00000003"


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedEngine]:
    """The engine that this process's environment names."""
    with scripted_engine(tmp_path / "docker.sock") as engine:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'docker.sock'}")
        yield engine


@pytest.fixture(scope="module")
def dead() -> str:
    """Whoever this was, it is gone."""
    words = (sys.executable, "-c", SAYS_WHO_IT_IS)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        written = process.stdout.readline().strip()
        assert not is_gone(written, runs=True)
        process.kill()
    return written


def another(written: str, **parts: str) -> str:
    """The same owner but for these parts."""
    names = ("user", "host", "boot", "namespace", "pid", "start_time")
    return " ".join({**dict(zip(names, written.split(), strict=True)), **parts}.values())


def test_who_lives_is_not_gone_and_who_was_killed_is(dead: str) -> None:
    assert not is_gone(owner(), runs=True)
    assert not is_gone(owner(), runs=False)
    assert is_gone(dead, runs=True)


def test_a_process_that_was_killed_and_not_waited_for_is_gone() -> None:
    words = (sys.executable, "-c", SAYS_WHO_IT_IS)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        written = process.stdout.readline().strip()
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(written, runs=True)


def test_a_process_that_has_the_number_of_another_is_not_that_one() -> None:
    assert is_gone(another(owner(), start_time="1"), runs=True)


def test_who_cannot_be_seen_from_here_is_not_taken_for_gone(dead: str) -> None:
    assert not is_gone(another(dead, user="4242"), runs=False)
    assert not is_gone(another(dead, namespace="pid:[1]"), runs=False)
    assert not is_gone(another(dead, host="elsewhere", boot="another"), runs=False)
    assert not is_gone("somebody", runs=False)
    assert not is_gone("", runs=False)


def test_what_was_made_before_the_last_boot_and_does_not_run_is_nobodys() -> None:
    assert is_gone(another(owner(), boot="earlier"), runs=False)
    assert not is_gone(another(owner(), boot="elsewhere"), runs=True)


def test_a_project_that_no_journal_tells_of_is_removed_with_its_networks_once_its_owner_is_gone(
    engine: ScriptedEngine, dead: str
) -> None:
    engine.add(MINE, owner())
    engine.add(DEAD, dead)
    (line,) = remove_lost()
    assert line.startswith(f"Project {DEAD} was abandoned, and no journal names it: removed {DEAD}_kafka_1, ")
    assert engine.left == [f"{MINE}_kafka_1", f"{MINE}_disk", f"{MINE}_default"]
    assert remove_lost() == []


@pytest.mark.parametrize("runs", [False, True])
def test_a_project_of_another_boot_is_removed_when_nothing_of_it_runs(engine: ScriptedEngine, *, runs: bool) -> None:
    engine.add(FROM_BEFORE, another(owner(), boot="earlier"))
    engine.runs = runs
    assert len(remove_lost()) == (0 if runs else 1)
    assert bool(engine.left) is runs


def test_a_volume_whose_container_was_never_made_is_removed_too(engine: ScriptedEngine, dead: str) -> None:
    engine.add(DEAD, dead)
    engine.things["containers"].clear()
    (line,) = remove_lost()
    assert f"removed {DEAD}_disk, {DEAD}_default." in line
    assert not engine.left


def test_what_the_engine_does_not_remove_is_said_and_tried_again(engine: ScriptedEngine, dead: str) -> None:
    engine.add("stuck-1", dead)
    for _ in range(2):
        (line,) = remove_lost()
        assert "Project stuck-1 was abandoned, and its containers are still there: " in line
        assert "stuck-1_kafka_1 cannot be removed" in line


def test_where_no_engine_answers_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'none.sock'}")
    assert remove_lost() == []
    with pytest.raises(EnvironmentFault, match="no Docker engine answers"):
        remove_project(DEAD)


def test_a_compose_tool_that_would_go_on_is_ended(engine: ScriptedEngine) -> None:
    engine.add(DEAD, "somebody")
    with subprocess.Popen((sys.executable, "-c", "input()", "-p", DEAD), stdin=subprocess.PIPE) as tool:
        assert remove_project(DEAD) == [f"{DEAD}_kafka_1", f"{DEAD}_disk", f"{DEAD}_default"]
        assert not psutil.pid_exists(tool.pid)
