"""``seawall nightly`` as CI calls it: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.nightly import results_file
from harness.nightly.result import CellResult
from tests.harness.cli.calling import Seawall

PLAN = """
cells:
  - name: broken
    scenarios: [kip-101-double-failover]
    targets: [simulated]
    generations: ["4.1"]
    seeds: [7]
    settings: {replication.truncation: hw}
  - {kind: command, name: greeting, argv: [sh, -c, "echo hello"]}
  - {kind: command, name: absent, argv: [no-such-program]}
  - kind: simulate
    count: 3
    seeds: [694349274]
    settings: {replication.truncation: hw, min.insync.replicas: 2}
"""
COMMANDS = """
budget: 1h
cells:
  - {kind: command, name: quick, argv: ["true"], expected: 10s}
  - {kind: command, name: slow, argv: [sleep, "60"], expected: 2h}
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    return path


def by_kind(results: list[CellResult]) -> dict[str, CellResult]:
    return {one.scenario or one.kind: one for one in results}


def test_a_night_with_violations_says_what_was_lost_and_how_to_repeat_it(seawall: Seawall, plan: Path) -> None:
    said = seawall("nightly", plan.name, "--night", "n1", "--jobs", 2)
    assert said.code == 1
    assert "4 cells: 2 violation, 1 skipped, 1 pass" in said.out
    assert "3 of 3, 2 failed: " in said.err
    assert said.last_line.startswith("reproduce: seawall ")

    night = plan.parent / "nights" / "n1"
    found = by_kind(results_file.read(night / "results.jsonl"))
    run = found["kip-101-double-failover"]
    assert run.outcome == "violation"
    assert run.incidents[0].kind == "lost-write"
    assert run.signature
    assert run.story[0].startswith("ledger/0: Offset 4 ")
    assert run.measures.acknowledged_per_s
    assert run.measures.p99_ms
    assert run.versions["seawall"]
    assert run.reproduce == (
        "seawall run kip-101-double-failover --seed 7 --target simulated --generation 4.1 "
        "--set replication.truncation=hw"
    )
    assert run.run
    assert run.report == f"{run.run}/report.html"
    assert (night / run.report).exists()
    assert (night / run.run / "broker_logs").exists()
    assert json.loads((night / run.run / "verdict.json").read_text())["engine"] == "reference"
    assert not list(night.glob("**/latest"))
    assert "kip-101-double-failover" in (night / "summary.md").read_text()
    assert (night / "junit.xml").exists()

    assert found["absent"].reason == "no-such-program is not installed here."
    core = found["simulate"]
    assert core.outcome == "violation"
    assert "lost-write" in {one.kind for one in core.incidents}
    assert core.reproduce.startswith(f"seawall replay {core.seed} ")

    again = seawall("nightly", plan.name, "--night", "n1")
    assert again.code == 64
    assert "holds a night already. Go on with it by --resume nights/n1" in again.complaint
    assert seawall("nightly", "--resume", night).code == 1  # nothing is left to do

    merged = seawall("nightly", "merge", night, "--engine", "reference", "--history", "history.jsonl")
    assert merged.code == 1
    plan.write_text(COMMANDS)
    tomorrow = seawall("nightly", plan.name, "--night", "n2", "--history", "history.jsonl", "--dry-run").out
    assert "run simulated 4.1 kip-101-double-failover replication.truncation=hw seed 7" in tomorrow.splitlines()[0]
    assert "bank: 2 cells" in tomorrow


def test_a_dry_run_prints_what_would_run_and_for_how_long_and_writes_nothing(seawall: Seawall, plan: Path) -> None:
    plan.write_text(COMMANDS)
    said = seawall("nightly", plan.name, "--dry-run", "--night", "n1")
    assert said.code == 0
    assert "10 s  command quick" in said.out
    assert "no time  command slow" in said.out
    assert "2 cells, 0 of which cannot run here; 10 s" in said.out
    assert sorted(path.name for path in plan.parent.iterdir()) == ["plan.yaml"]


def test_a_dry_run_of_a_night_that_goes_on_prints_what_is_left_and_runs_nothing(seawall: Seawall, plan: Path) -> None:
    plan.write_text(COMMANDS)
    assert "1 not-run, 1 pass" in seawall("nightly", plan.name, "--night", "n1", "--out", "night").out
    before = Path("night/results.jsonl").read_bytes()
    said = seawall("nightly", "--resume", "night", "--dry-run", "--budget", "3h")
    assert said.code == 0
    assert "2 h 0 min  command slow" in said.out
    assert "command quick" not in said.out
    assert "night, night n1: 1 cell, 0 of which cannot run here" in said.out
    assert Path("night/results.jsonl").read_bytes() == before


def test_shards_divide_a_night(seawall: Seawall, plan: Path) -> None:
    plan.write_text(PLAN)
    lines = [
        line.split("  ", 1)[1]
        for number in (1, 2, 3)
        for line in seawall("nightly", plan, "--dry-run", "--shard", f"{number}/3").out.splitlines()
        if line.lstrip().split("  ")[-1].startswith(("run ", "command ", "simulate "))
    ]
    assert len(lines) == len(set(lines)) == 4


def test_a_shard_in_which_no_cell_ran_leaves_the_judgement_to_the_merge(seawall: Seawall, plan: Path) -> None:
    plan.write_text("cells: [{kind: command, name: absent, argv: [no-such-program]}]")
    shards = ["shards/1", "shards/2"]
    codes = [seawall("nightly", plan, "--night", "n1", "--shard", f"{one[-1]}/2", "--out", one).code for one in shards]
    assert codes == [0, 0]
    assert seawall("nightly", "merge", *shards, "--out", "night").code == 2
    assert seawall("nightly", plan, "--night", "n1").code == 2


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], "PLAN.yaml is missing"),
        (["nowhere.yaml"], "plan nowhere.yaml cannot be read: No such file"),
        (["plan.yaml", "--shard", "4/3"], "'4/3'"),
        (["plan.yaml", "--night", "a/b"], "--night 'a/b'"),
        (["plan.yaml", "--budget", "soon"], "--budget: 'soon'"),
        (["plan.yaml", "--jobs", "0"], "--jobs"),
        (["plan.yaml", "--history", "."], "--history: . cannot be read: it is a directory"),
        (["--resume", "."], "night.json cannot be read"),
        (["--resume", ".", "--night", "x"], "--night and --resume . exclude each other"),
        (["--resume", ".", "--keep", "all"], "--keep and --resume . exclude each other"),
        (["--resume", ".", "--bank", "x"], "--bank and --resume . exclude each other"),
    ],
)
def test_a_wrong_command_line_is_named(seawall: Seawall, plan: Path, words: list[str], named: str) -> None:
    said = seawall("nightly", "run", *words)
    assert said.code == 64
    assert named in said.complaint


def test_ctrl_c_in_a_terminal_leaves_true_results_and_the_way_to_go_on(plan: Path) -> None:
    plan.write_text(COMMANDS.replace("2h", "2s"))
    controller, terminal = pty.openpty()
    words = (sys.executable, "-c", "import sys; from harness.entry import main; sys.exit(main())", "nightly", plan.name)
    with subprocess.Popen(
        words, cwd=plan.parent, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    ) as night:  # fmt: skip
        os.close(terminal)
        shown = b""
        deadline = time.monotonic() + 60
        while b"1 of 2 done, 1 running" not in shown and time.monotonic() < deadline:
            shown += os.read(controller, 4096)
        night.send_signal(signal.SIGINT)
        while True:
            try:
                shown += os.read(controller, 4096)
            except OSError:
                break
        assert night.wait() == 130
    os.close(controller)
    assert b"reproduce: seawall nightly --resume nights/" in shown
    [results] = plan.parent.glob("nights/*/results.jsonl")
    assert [one.outcome.value for one in results_file.read(results)] == ["not-run", "pass"]  # gravest first
