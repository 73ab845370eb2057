"""Nobody reads any more: that must not end what is going on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.cli.terminal import tell
from harness.runner.journal import journal_directory

SEAWALL = (sys.executable, "-c", "import sys; from harness.cli import main; sys.exit(main())")

SCENARIO = """
id: mine
title: Mine
source: a test
topics: [{name: ledger}]
workload: {name: unique_sends}
schedule: [{send: {per_partition: 1}}, {wait_s: SECONDS}]
"""


@pytest.fixture(autouse=True)
def _own_journals(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def run(tmp_path: Path, seconds: float) -> subprocess.Popen[str]:
    """``seawall run`` with one pipe for both outputs."""
    (tmp_path / "mine.yaml").write_text(SCENARIO.replace("SECONDS", str(seconds)))
    command = (*SEAWALL, "run", str(tmp_path / "mine.yaml"), "--engine", "reference", "--out", str(tmp_path / "runs"))
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def read_until(process: subprocess.Popen[str], words: str) -> None:
    """Read like ``head``: up to the line with ``words``, and then no more."""
    assert process.stdout is not None
    next(line for line in process.stdout if words in line)
    process.stdout.close()


def state(tmp_path: Path) -> str:
    return str(json.loads((tmp_path / "runs" / "latest" / "run.json").read_text())["state"])


def test_a_run_whose_reader_goes_away_comes_to_its_end(tmp_path: Path) -> None:
    running = run(tmp_path, 0.1)
    read_until(running, "starting 3 brokers")
    assert running.wait(600) == 4
    assert state(tmp_path) == "complete"
    assert (tmp_path / "runs" / "latest" / "verdict.json").exists()
    assert not list(journal_directory().iterdir())


def test_a_run_whose_terminal_closes_is_healed_and_marked(tmp_path: Path) -> None:
    running = run(tmp_path, 60)
    read_until(running, "sending 1 to")
    running.send_signal(signal.SIGHUP)
    running.send_signal(signal.SIGINT)
    assert running.wait(300) == 130
    assert state(tmp_path) == "interrupted"
    assert not list(journal_directory().iterdir())


def test_a_matrix_that_is_ended_begins_no_other_run(tmp_path: Path) -> None:
    asked = ("scenario", "matrix", "--only", "A02", "--jobs", "2", "--out", str(tmp_path / "runs"))
    with subprocess.Popen((*SEAWALL, *asked), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
        until = time.monotonic() + 120
        while len(begun := {path.parents[1] for path in tmp_path.glob("runs/*/2*/cluster/*")}) < 2:
            assert time.monotonic() < until, "no two runs have begun"
            time.sleep(0.05)
        running.send_signal(signal.SIGTERM)
        assert "interrupted." in running.communicate(timeout=300)[1]
    assert running.returncode == 130
    assert {path.parent for path in tmp_path.glob("runs/*/2*/run.json")} == begun
    assert {json.loads((one / "run.json").read_text())["state"] for one in begun} == {"interrupted"}
    assert not list(journal_directory().iterdir())


def test_a_line_in_the_midst_of_another_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy:
        def write(self, _: str) -> None:
            raise RuntimeError("reentrant call")

    monkeypatch.setattr(sys, "stderr", Busy())
    tell("said by a signal handler")


def test_a_closed_pipe_is_told_nothing_more_and_costs_no_exit_code() -> None:
    code = "from harness.cli.terminal import tell; tell('one'); input(); tell('two'); tell('three')"
    child = subprocess.Popen((sys.executable, "-c", code), stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    assert child.stderr.readline() == "one\n"
    child.stderr.close()
    child.stderr = None
    child.communicate("\n")
    assert child.returncode == 0
