"""Which process of a container has to have the clock shim; the scripts run in namespaces without a container."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from harness.targets.compose.shimmed import CONTROL, MOUNTED, Seen, broker_at, seen_in, user_to_look

PORT = 19092
NAMESPACES = ("unshare", "--pid", "--fork", "--kill-child", "--net", "--mount-proc")
BESIDE = ("--pid", "--mount", "--net")
PROGRAM = f"""\
import mmap, os, socket, subprocess, sys, time
is_bent, listens, mib, *children = sys.argv[1:]
if is_bent == "bent":
    shim = mmap.mmap(os.open(os.environ["SHIM"], os.O_RDWR), 0)
if listens == "listens":
    listener = socket.create_server(("127.0.0.1", {PORT}))
memory = bytearray(b"x" * (int(mib) << 20))
started = [subprocess.Popen([sys.executable, os.environ["PROGRAM"], *child.split()]) for child in children]
print("up", flush=True)
time.sleep(60)
"""
"""A process with the shim or without, that listens or does not, of so many MiB, and those that it starts."""


class Container:
    """Processes in namespaces of their own, as a container has them; they are those that ``words`` start."""

    def __init__(self, directory: Path, *words: str) -> None:
        self._directory = directory
        self._program = directory / "program.py"
        self._program.write_text(PROGRAM)
        (directory / CONTROL).write_bytes(bytes(8))
        self._begun = subprocess.Popen((*NAMESPACES, *words), stdout=subprocess.PIPE, text=True, env=self._variables())

    def await_up(self, processes: int) -> None:
        assert self._begun.stdout is not None
        for _ in range(processes):
            assert self._begun.stdout.readline() == "up\n"

    def _variables(self) -> dict[str, str]:
        return {**os.environ, "SHIM": str(self._directory / CONTROL), "PROGRAM": str(self._program)}

    def _entering(self) -> Sequence[str]:
        [first] = Path(f"/proc/{self._begun.pid}/task/{self._begun.pid}/children").read_text().split()
        return ("nsenter", "--target", first, *BESIDE)

    @contextmanager
    def beside(self, *words: str) -> Iterator[None]:
        """A program that the engine starts in the container, such as a health check."""
        words = (*self._entering(), sys.executable, str(self._program), *words)
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=self._variables()) as check:
            assert check.stdout is not None
            assert check.stdout.readline() == "up\n"
            yield
            check.kill()

    def seen(self) -> list[Seen]:
        return seen_in(self.said())

    def said(self, *as_user: str) -> str:
        """What the look says, of another user than this process's, too."""
        script = broker_at(PORT).script.replace(MOUNTED, str(self._directory))
        words = (*self._entering(), *as_user, "sh", "-c", script)
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    def end(self) -> None:
        self._begun.kill()
        self._begun.communicate()


@contextmanager
def container(directory: Path, *words: str, processes: int = 1) -> Iterator[Container]:
    with suppress(FileNotFoundError):
        if subprocess.run((*NAMESPACES, "true"), capture_output=True, check=False).returncode == 0:
            begun = Container(directory, *words)
            try:
                begun.await_up(processes)
                yield begun
            finally:
                begun.end()
            return
    pytest.skip("no namespace of processes can be made here")


def python(directory: Path, *words: str) -> Sequence[str]:
    return (sys.executable, str(directory / "program.py"), *words)


def test_a_broker_is_the_process_that_listens_however_large_those_are_that_it_starts(tmp_path: Path) -> None:
    with container(tmp_path, *python(tmp_path, "bent", "listens", "1", "true silent 64"), processes=2) as one:
        [seen] = one.seen()
        assert (seen.is_bent, seen.pid) == (True, 1)


def test_a_script_that_waits_for_the_broker_is_not_judged(tmp_path: Path) -> None:
    waits = ("sh", "-c", f"{' '.join(python(tmp_path, 'bent', 'silent', '32'))} & wait")
    with container(tmp_path, *waits) as one:
        [seen] = one.seen()
        assert seen.is_bent
        assert seen.pid != 1


def test_a_broker_without_the_shim_is_found_behind_a_script_and_a_health_check_that_have_it(tmp_path: Path) -> None:
    starts = python(tmp_path, "bent", "silent", "1", "true listens 1")
    with container(tmp_path, *starts, processes=2) as one, one.beside("bent", "silent", "64"):
        [seen] = one.seen()
        assert not seen.is_bent
        assert seen.pid != 1


def test_a_health_check_and_what_has_ended_are_not_the_broker(tmp_path: Path) -> None:
    starts = ("sh", "-c", f"true & exec {' '.join(python(tmp_path, 'bent', 'silent', '1'))}")
    with container(tmp_path, *starts) as one, one.beside("true", "silent", "64"):
        [seen] = one.seen()
        assert (seen.is_bent, seen.pid) == (True, 1)


def test_a_look_says_which_user_may_look_at_the_broker_if_it_is_another(tmp_path: Path) -> None:
    with container(tmp_path, *python(tmp_path, "bent", "listens", "1")) as one:
        said = one.said("--setuid", "65534", "--setgid", "65534")
        assert user_to_look(said) == str(os.getuid())
        assert not seen_in(said)
        assert not user_to_look(one.said())


def test_what_a_container_prints_beside_is_not_taken_for_a_process() -> None:
    said = "bent 7 redpanda\ntrue 12 rpk start\ncat: not found\n1764000000000000000\n"
    assert seen_in(said) == [Seen(True, 7, "redpanda"), Seen(False, 12, "rpk start")]
    assert str(Seen(True, 7, "redpanda")) == "process 7 (redpanda)"
