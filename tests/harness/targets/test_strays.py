from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from harness.targets.strays import kill_strays

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def born_late(*words: str) -> subprocess.Popen[bytes]:
    """A process that takes its time to become a program of its own."""
    return subprocess.Popen([*SLEEP, *words], preexec_fn=lambda: time.sleep(0.3))  # noqa: PLW1509


def test_a_child_that_is_not_yet_a_program_of_its_own_is_waited_for_and_killed(tmp_path: Path) -> None:
    others = set(psutil.Process().children())
    with ThreadPoolExecutor() as pool:
        born = pool.submit(born_late, str(tmp_path / "data"))
        while set(psutil.Process().children()) == others:
            assert not born.done()
        kill_strays(tmp_path)
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
