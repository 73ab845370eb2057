from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psutil
import pytest

from harness import births, documents
from harness.errors import EnvironmentFault
from harness.history.run_directory import Manifest, RunDirectory
from harness.runner import journal as journals
from harness.runner.journal import (
    Entries,
    FaultMark,
    Journal,
    Leftover,
    ProcessMark,
    heal_leftovers,
    journal_directory,
)
from harness.scratch import outside
from harness.targets import left_outside, log_dirs
from harness.targets.compose.ownership import owner
from tests.harness.cli.calling import Seawall
from tests.harness.cli.conftest import seawall as seawall  # noqa: PLC0414 - a fixture
from tests.harness.targets.compose.scripted_engine import ScriptedEngine, scripted_engine

PROJECT = {"project": "seawall-00000001", "containers": ["seawall-00000001-kafka"]}
SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def dead_harness(
    run: Path,
    nodes: dict[str, ProcessMark],
    *,
    is_temporary: bool = False,
    leftovers: Sequence[Leftover] = (),
    commands: Mapping[str, ProcessMark] | None = None,
) -> Path:
    """A journal as a harness that was killed in the middle of a run leaves it."""
    gone = subprocess.Popen(SLEEP)
    owner = ProcessMark.of(gone.pid)
    gone.kill()
    gone.wait()
    path = journal_directory() / "dead.json"
    entries = Entries(owner, str(run), is_temporary, nodes, {"frozen": FaultMark("pause")}, leftovers, commands or {})
    path.write_text(json.dumps(asdict(entries)))
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


@pytest.mark.parametrize("ends", [True, False])
def test_a_journal_that_was_being_written_when_its_harness_ended_is_gone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ends: bool
) -> None:
    with Journal(tmp_path / "run") as journal:
        with monkeypatch.context() as interrupted:
            interrupted.setattr(Path, "replace", Mock(side_effect=KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                journal.fault_coming("f001", "kill", {"node": 1})
        (partial,) = journal_directory().glob("*.partial")
        if not ends:
            gone = subprocess.Popen([sys.executable, "-c", ""])
            gone.wait()
            partial.rename(partial.with_name(f"{gone.pid}-run.partial"))
            assert heal_leftovers() == []
    assert not list(journal_directory().iterdir())


def test_a_harness_that_lives_is_left_alone(tmp_path: Path) -> None:
    with Journal(tmp_path / "run"):
        assert heal_leftovers() == []
        assert len(list(journal_directory().iterdir())) == 1


def test_a_harness_lives_on_when_the_wall_clock_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    created = psutil.Process.create_time
    with Journal(tmp_path / "run"):
        monkeypatch.setattr(psutil.Process, "create_time", lambda process: created(process) + 3600)
        assert heal_leftovers() == []


def test_a_journal_that_is_gone_before_it_is_read_is_nothing_to_tell_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(path: Path) -> str:
        path.unlink()
        raise FileNotFoundError(path)

    dead_harness(tmp_path, {})
    monkeypatch.setattr(documents, "json_file", gone)
    assert heal_leftovers() == []


def test_the_nodes_of_a_dead_harness_are_killed_and_its_all_is_undone_and_it_is_said_once(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", Manifest("r", "small", 1, "2020-01-01T00:00:00+00:00"))
    node = subprocess.Popen(SLEEP)
    dead_harness(run.path, {"broker": ProcessMark.of(node.pid)})
    [line] = heal_leftovers()
    assert node.wait(60) == -9
    assert str(run.path) in line
    assert "killed its nodes (broker)" in line
    assert "frozen (pause)" in line
    assert run.manifest().state == "abandoned"
    assert heal_leftovers() == []


def test_what_a_dead_harness_was_writing_is_removed(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", Manifest("r", "small", 1, "2020-01-01T00:00:00+00:00"))
    (run.path / ".schedule_log.json.partial").write_text("{")
    (run.path / ".replica_logs.partial").mkdir()
    (run.path / ".replica_logs.partial" / "part-00000.parquet").write_bytes(b"PAR1")
    dead_harness(run.path, {})
    assert len(heal_leftovers()) == 1
    assert not list(run.path.glob(".*"))


@pytest.mark.parametrize(
    ("printed", "copies"),
    [
        (["broker-0", "controller"], {"broker-0.log": "broker-0", "controller.log": "controller"}),
        (["controller", "controller/broker"], {"zookeeper.log": "controller", "controller.log": "controller/broker"}),
        ([], {}),
    ],
)
def test_what_the_nodes_of_a_dead_harness_printed_is_where_that_of_other_runs_is(
    tmp_path: Path, printed: list[str], copies: dict[str, str]
) -> None:
    run = RunDirectory.create(tmp_path / "run", Manifest("r", "small", 1, "2020-01-01T00:00:00+00:00"))
    for node in printed:
        (run.cluster / node).mkdir(parents=True)
        (run.cluster / node / "node.log").write_text(node)
    dead_harness(run.path, {})
    [line] = heal_leftovers()
    assert {path.name: path.read_text() for path in run.broker_logs.iterdir()} == copies
    assert line.endswith("; what its nodes left is in broker_logs/.") is bool(copies)


def test_a_table_that_the_dead_harness_had_made_stays_as_it_is(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", Manifest("r", "small", 1, "2020-01-01T00:00:00+00:00"))
    (run.cluster / "broker-0").mkdir(parents=True)
    (run.cluster / "broker-0" / "timeline.jsonl").touch()
    run.write_table("timeline", [])
    made = (run.path / "timeline" / "part-00000.parquet").stat().st_mtime_ns
    dead_harness(run.path, {})
    [line] = heal_leftovers()
    assert line.endswith("; what its nodes left is in replica_logs/.")
    assert (run.path / "timeline" / "part-00000.parquet").stat().st_mtime_ns == made
    assert run.read_table("replica_logs") == []


def test_a_run_of_a_dead_harness_is_marked_although_its_logs_cannot_be_written(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", Manifest("r", "small", 1, "2020-01-01T00:00:00+00:00"))
    (run.cluster / "broker-0").mkdir(parents=True)
    (run.cluster / "broker-0" / "node.log").touch()
    run.broker_logs.rmdir()
    dead_harness(run.path, {})
    [line] = heal_leftovers()
    assert "broker_logs" not in line
    assert (run.manifest().state, run.manifest().why[:25]) == ("abandoned", "seawall itself was killed")


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


@pytest.mark.parametrize("other", [{"start_time": "1"}, {"boot": "an earlier one"}], ids=str)
def test_a_process_that_has_the_number_of_a_dead_node_is_left_alone(tmp_path: Path, other: dict[str, Any]) -> None:
    bystander = subprocess.Popen(SLEEP)
    try:
        dead_harness(tmp_path, {"0": replace(ProcessMark.of(bystander.pid), **other)})
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


@pytest.mark.parametrize(
    ("name", "is_temporary", "is_removed"),
    [("seawall-cluster-1", False, False), ("seawall-cluster-1", True, True), ("home", True, False)],
)
def test_only_a_directory_that_the_dead_harness_made_for_itself_is_removed(
    tmp_path: Path, name: str, is_temporary: bool, is_removed: bool
) -> None:
    kept = tmp_path / name / "broker-0"
    kept.mkdir(parents=True)
    dead_harness(kept.parent, {}, is_temporary=is_temporary)
    [line] = heal_leftovers()
    assert str(kept.parent) in line
    assert kept.parent.exists() is not is_removed


def test_what_a_target_has_removed_itself_is_not_left(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        for pod in ("p1", "p2"):
            journal.leftover_coming("compose", {"project": pod})
        journal.leftover_gone("compose", {"project": "p1"})
        (written,) = (json.loads(path.read_text()) for path in journal_directory().glob("*.json"))
    assert written["leftovers"] == [{"kind": "compose", "what": {"project": "p2"}}]


def test_journals_outlast_a_login_and_are_in_the_temporary_directory_without_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert journal_directory().is_relative_to(tmp_path / ".local" / "state" / "seawall")
    (tmp_path / "no directory").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "no directory"))
    assert journal_directory() == outside() / f"seawall-{os.getuid()}"


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedEngine]:
    """The engine that this process's environment names."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'docker.sock'}")
    with scripted_engine(tmp_path / "docker.sock") as engine:
        yield engine


@pytest.mark.parametrize("is_removed", [False, True])
def test_the_containers_of_a_dead_harness_are_removed_also_when_its_directory_is_gone(
    engine: ScriptedEngine, tmp_path: Path, *, is_removed: bool
) -> None:
    run = RunDirectory.create(tmp_path / "run", Manifest("r", "small", 1, "2020-01-01T00:00:00+00:00"))
    with Journal(run.path) as journal:
        journal.leftover_coming("compose", PROJECT)
        (written,) = (json.loads(path.read_text()) for path in journal_directory().glob("*.json"))
    dead_harness(run.path, {}, leftovers=[Leftover(**one) for one in written["leftovers"]])
    engine.add("seawall-00000001", "somebody")
    engine.add("seawall-00000002", "somebody")
    if is_removed:
        shutil.rmtree(run.path)
    [line] = heal_leftovers()
    assert ("whose directory is gone" in line) is is_removed
    assert "; removed seawall-00000001_kafka_1, seawall-00000001_disk, seawall-00000001_default." in line
    assert all(name.startswith("seawall-00000002") for name in engine.left)
    assert heal_leftovers() == []


def test_while_the_engine_does_not_answer_it_is_not_forgotten_what_is_left_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "docker.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    dead_harness(tmp_path / "gone", {}, leftovers=[Leftover("compose", PROJECT)])
    for _ in range(2):
        [line] = heal_leftovers()
        assert "its containers are still there: no Docker engine answers" in line
    with scripted_engine(path) as engine:
        engine.add("seawall-00000001", "somebody")
        [line] = heal_leftovers()
        assert "removed seawall-00000001_kafka_1" in line
        assert not engine.left


def test_what_cannot_be_removed_is_given_up_when_that_is_wanted(tmp_path: Path, seawall: Seawall) -> None:
    path = dead_harness(
        tmp_path / "gone", {}, leftovers=[Leftover("bootstrap", {"bootstrap": "127.0.0.1:1", "topic": "t"})]
    )
    assert "topic 't' may still be at 127.0.0.1:1" in seawall("heal").out
    assert path.exists()
    said = seawall("heal", "--forget").out
    assert "; given up: " in said
    assert "topic 't' may still be at 127.0.0.1:1" in said
    assert not path.exists()
    assert "Nothing to heal." in seawall("heal", "--forget").out


def test_what_a_lost_journal_told_of_is_found_on_the_engine_by_who_asks_for_containers(engine: ScriptedEngine) -> None:
    *somebody, _ = owner().split()
    engine.add("seawall-00000001", " ".join([*somebody, "1"]))
    assert heal_leftovers() == []
    [line] = heal_leftovers(["compose"])
    assert "seawall-00000001" in line
    assert not engine.left


def test_an_entry_that_is_no_projects_is_still_there_and_says_so(tmp_path: Path) -> None:
    path = dead_harness(tmp_path, {}, leftovers=[Leftover("compose", {"project": 3, "containers": []})])
    [line] = heal_leftovers()
    assert "its containers are still there: project: 3 is refused" in line
    assert path.exists()


@pytest.mark.parametrize("ends", [True, False])
def test_nothing_is_undone_while_a_command_of_a_dead_harness_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, ends: bool
) -> None:
    monkeypatch.setattr(journals, "_COMMANDS_TIMEOUT_S", 60.0 if ends else 0.1)
    undone: list[bool] = []
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1)"] if ends else SLEEP) as command:
        mark = ProcessMark.of(command.pid)

        def remove(*_: object) -> list[str]:
            undone.append(mark.process() is None)
            return []

        monkeypatch.setattr(left_outside, "remove", remove)
        dead_harness(tmp_path, {}, leftovers=[Leftover("nothing", {})], commands={"cut 0->1": mark})
        assert heal_leftovers()
    assert undone == [True]


def test_the_journal_of_another_version_is_left_to_it_once_its_harness_is_dead(tmp_path: Path) -> None:
    with Journal(tmp_path / "run"):
        (path,) = journal_directory().glob("*.json")
        path.write_text(json.dumps({**json.loads(path.read_text()), "project": "seawall-00000001"}))
        assert heal_leftovers() == []
    path = dead_harness(tmp_path, {})
    path.write_text(json.dumps({**json.loads(path.read_text()), "project": "seawall-00000001"}))
    [line] = heal_leftovers()
    assert line.startswith(f"Left {path}, the journal of another version of seawall")
    assert path.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"owner": 3}', '{"nodes": {"a": 1}}'])
def test_a_garbled_journal_is_removed_and_said(text: str) -> None:
    path = journal_directory() / "x.json"
    path.write_text(text)
    assert heal_leftovers() == [f"Removed the unreadable journal {path}."]
    assert not path.exists()


BOOT = births.boot()


@pytest.mark.parametrize(
    "changed",
    [
        {"owner": {"pid": 10**30, "start_time": "1", "boot": BOOT}},
        {"owner": {"pid": -1, "start_time": "1", "boot": BOOT}},
        {"nodes": {"0": {"pid": 1 << 31, "start_time": "", "boot": BOOT}}},
        {"run_directory": "/a\0b"},
        {"run_directory": "somewhere"},
        {"faults": {"frozen": {}}},
        {"faults": {"frozen": {"kind": 3}}},
    ],
    ids=str,
)
def test_a_journal_that_no_harness_writes_is_removed_and_said(tmp_path: Path, changed: dict[str, Any]) -> None:
    path = dead_harness(tmp_path, {})
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    assert heal_leftovers() == [f"Removed the unreadable journal {path}."]


def test_what_is_no_file_among_the_journals_keeps_no_journal_from_being_healed(tmp_path: Path) -> None:
    dead_harness(tmp_path, {})
    (journal_directory() / "a.json").mkdir()
    os.mkfifo(journal_directory() / "b.json")
    (journal_directory() / "c.json").symlink_to("/dev/zero")
    (journal_directory() / "d.json").symlink_to("d.json")
    for name in ("x.partial", "-.partial", f"{10**30}-x.partial"):
        (journal_directory() / name).touch()
    left, *removed, healed = heal_leftovers()
    where = journal_directory() / "a.json"
    assert left == f"Left {where}, which is no journal and cannot be removed: Is a directory."
    assert len(removed) == 3
    assert str(tmp_path) in healed
    assert [path.name for path in journal_directory().iterdir()] == ["a.json"]


def test_a_directory_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    journal_directory().chmod(0o755)
    with pytest.raises(EnvironmentFault, match="is not this user's alone"):
        journal_directory()


def test_a_node_that_does_not_die_is_named_and_stays_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.runner.journal._KILL_TIMEOUT_S", 0.0)
    monkeypatch.setattr(psutil.Process, "kill", lambda _: None)
    node = subprocess.Popen(SLEEP)
    try:
        journal = dead_harness(tmp_path, {"broker": ProcessMark.of(node.pid)})
        [line] = heal_leftovers()
        assert f"its nodes still run: broker (process {node.pid})" in line
        assert journal.exists()
    finally:
        node.kill()
        node.wait()
    monkeypatch.undo()
    journal.unlink()
