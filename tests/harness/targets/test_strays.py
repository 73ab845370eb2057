from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from harness.targets import strays
from harness.targets.strays import kill_strays

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def born_late(after: int, *words: str) -> subprocess.Popen[bytes]:
    """A process that becomes a program of its own when there is a byte to be read from ``after``."""
    return subprocess.Popen([*SLEEP, *words], preexec_fn=lambda: os.read(after, 1))  # noqa: PLW1509


def test_a_child_that_is_not_yet_a_program_of_its_own_is_waited_for_and_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = set(psutil.Process().children())
    after, until = os.pipe()

    def sleep(seconds: float) -> None:
        """The child has been seen, and is waited for."""
        os.write(until, b"x")
        time.sleep(seconds)

    monkeypatch.setattr(strays, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    monkeypatch.setattr(strays, "_PATIENCE_S", 60.0)
    with ThreadPoolExecutor() as pool, os.fdopen(after), os.fdopen(until, "w"):
        born = pool.submit(born_late, after, str(tmp_path / "data"))
        while set(psutil.Process().children()) == others:
            assert not born.done()
        try:
            kill_strays(tmp_path)
        finally:
            os.write(until, b"x")
        assert born.result().wait(30) == -9


def test_children_that_name_nothing_in_the_directory_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    other = subprocess.Popen([*SLEEP, str(tmp_path / "mine-too"), str(tmp_path)])
    try:
        kill_strays(tmp_path / "mine")
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
