"""Other programs that seawall waits for, and ends when it no longer waits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.program import run

TWO_PROCESSES = """\
import os, signal, sys, time
if os.fork() == 0:  # as `docker` starts its plugins: in a process group of their own
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "a").write(f"{os.getpid()}\\n")
time.sleep(600)
"""


def pids(told: Path) -> list[int]:
    return list(map(int, told.read_text().split())) if told.exists() else []


def interrupt_when_both_run(told: Path) -> threading.Thread:
    def interrupt() -> None:
        while len(pids(told)) < 2:
            pass
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    return thread


def test_what_a_program_prints_and_its_exit_status_are_returned(tmp_path: Path) -> None:
    script = "import os, sys; print(input(), os.getcwd(), os.environ['A']); sys.exit(3)"
    done = run((sys.executable, "-c", script), given="read\n", directory=tmp_path, environment={**os.environ, "A": "b"})
    assert (done.returncode, done.stdout, done.stderr) == (3, f"read {tmp_path} b\n", "")


def test_ctrl_c_ends_every_process_of_a_program_before_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.program._TERM_TIMEOUT_S", 0.2)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    told = tmp_path / "pids"
    thread = interrupt_when_both_run(told)
    try:
        with pytest.raises(KeyboardInterrupt):
            run((sys.executable, "-c", TWO_PROCESSES, str(told)))
    finally:
        signal.signal(signal.SIGINT, before)
        thread.join()
    assert len(pids(told)) == 2
    assert not any(map(psutil.pid_exists, pids(told)))


def test_ctrl_c_while_a_program_starts_ends_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.program._TERM_TIMEOUT_S", 0.2)
    told, start = tmp_path / "pids", subprocess.Popen

    def interrupted(*words: Any, **options: Any) -> subprocess.Popen[str]:
        process = start(*words, **options)
        while len(pids(told)) < 2:
            pass
        signal.raise_signal(signal.SIGINT)
        return process

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run((sys.executable, "-c", TWO_PROCESSES, str(told)))
    finally:
        signal.signal(signal.SIGINT, before)
    assert not any(map(psutil.pid_exists, pids(told)))


def test_a_program_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.program._TERM_TIMEOUT_S", 0.2)
    with pytest.raises(subprocess.TimeoutExpired):
        run((sys.executable, "-c", TWO_PROCESSES, str(tmp_path / "pids")), 2.0)
    assert not any(map(psutil.pid_exists, pids(tmp_path / "pids")))
