"""A user's program is started again, killed and ended, and nothing of it is left behind, whichever process dies."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from harness.user_program import keeper
from harness.user_program.keeping import Keeping
from harness.user_program.program import Program, missing

_PATIENCE_S = 60.0

FORKS = """\
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0) if os.environ.get("LEAVES") else time.sleep(600)
print("up", flush=True)
time.sleep(600)
"""
"""A program that ignores SIGTERM, and has children and grandchildren in sessions of their own."""

PARENT = """\
import sys, threading
from harness.user_program.keeping import Keeping
from harness.user_program.program import Program
keeping = Keeping(Program.parse(sys.argv[1]), lambda failure: None)
keeping.start()
threading.Event().wait()
"""


def program(directory: Path, *argv: str, **more: object) -> Program:
    """A program whose processes bear a mark in their environment."""
    environment = {"MARK": f"{directory.name}-{uuid.uuid4()}"}
    return Program(argv, environment, str(directory), str(directory / "files"), {"input": "t"}, **more)  # type: ignore[arg-type]


def marked(one: Program) -> list[psutil.Process]:
    """The processes of the program that are alive."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("MARK") == one.environment["MARK"] and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)


class Kept:
    """Starts programs, and ends them with the test."""

    def __init__(self) -> None:
        self.failures: list[BaseException] = []
        self._all: list[Keeping] = []

    def __call__(self, one: Program) -> Keeping:
        keeping = Keeping(one, self.failures.append)
        self._all.append(keeping)
        keeping.start()
        return keeping

    def end(self) -> None:
        for keeping in self._all:
            keeping.kill()


@pytest.fixture
def kept() -> Iterator[Kept]:
    kept = Kept()
    yield kept
    kept.end()
    assert kept.failures == []


def shell(text: str) -> Sequence[str]:
    return "/bin/sh", "-c", text


def test_a_program_that_ends_is_started_again_and_quoted(tmp_path: Path, kept: Kept) -> None:
    keeping = kept(program(tmp_path, *shell("echo hello; echo no such topic >&2; exit 3"), restart_s=0.0))
    until(lambda: keeping.exits >= 3)
    keeping.end()
    document = keeping.document()
    assert document["started"] >= document["exited"] >= 3
    assert set(document["statuses"]) == {"3"}
    assert document["said"] == "no such topic"
    assert (tmp_path / "files" / "copy-0.out").read_text().startswith("hello\nhello\n")
    assert (tmp_path / "files" / "copy-0.err").read_text().startswith("no such topic\n")


def test_what_cannot_be_started_is_said(tmp_path: Path, kept: Kept) -> None:
    keeping = kept(program(tmp_path, str(tmp_path / "nowhere"), restart_s=0.0))
    until(lambda: keeping.exits >= 2)
    keeping.end()
    assert set(keeping.document()["statuses"]) == {"127"}
    assert keeping.document()["said"].endswith("nowhere: No such file or directory")


def test_a_program_is_killed_now_and_then_until_it_is_to_be_calm(tmp_path: Path, kept: Kept) -> None:
    keeping = kept(program(tmp_path, *shell("sleep 600"), copies=3, kill_every_s=0.05, restart_s=0.0))
    until(lambda: keeping.exits >= 4)
    keeping.calm()
    until(lambda: keeping.all_run)
    keeping.end()
    document = keeping.document()
    assert (document["exited"], document["statuses"], document["said"]) == (0, {}, "")
    assert sorted(keeping.lives()) == [0, 1, 2]
    assert sum(keeping.lives().values()) == document["started"] == document["killed"] + 3


def test_a_program_has_the_time_to_end_in_order(tmp_path: Path, kept: Kept) -> None:
    one = program(tmp_path, *shell("trap 'echo bye; exit 0' TERM; echo up; sleep 600 & wait"), stop_s=_PATIENCE_S)
    keeping = kept(one)
    until(lambda: "up" in _said(one))
    keeping.end()
    assert "bye" in _said(one)
    assert keeping.document()["exited"] == 0
    assert marked(one) == []


@pytest.mark.parametrize("leaves", [False, True])
def test_a_program_that_ignores_the_end_is_killed_with_all_that_it_has_started(
    tmp_path: Path, kept: Kept, leaves: bool
) -> None:
    one = program(tmp_path, sys.executable, "-c", FORKS, stop_s=0.2)
    if leaves:
        one = Program.parse(one.text().replace('"MARK"', '"LEAVES": "yes", "MARK"'))
    keeping = kept(one)
    until(lambda: "up" in _said(one) and len(marked(one)) >= 3)
    keeping.end()
    assert marked(one) == []


def test_what_a_life_leaves_behind_dies_with_it(tmp_path: Path, kept: Kept) -> None:
    one = program(tmp_path, *shell("setsid sleep 600 & sleep 0.1; exit 0"), restart_s=_PATIENCE_S * 10)
    keeping = kept(one)
    until(lambda: keeping.exits == 1)
    until(lambda: not marked(one))


def _started_by_another(one: Program) -> subprocess.Popen[bytes]:
    """A process that keeps the program."""
    return subprocess.Popen([sys.executable, "-c", PARENT, one.text()], cwd=Path(keeper.__file__).parents[2])


def test_nothing_is_left_when_the_harness_is_killed(tmp_path: Path) -> None:
    one = program(tmp_path, sys.executable, "-c", FORKS)
    with _started_by_another(one) as parent:
        try:
            until(lambda: "up" in _said(one))
        finally:
            parent.kill()
    until(lambda: not marked(one))


def test_a_copy_dies_with_its_keeper_and_the_run_learns_of_it(tmp_path: Path) -> None:
    kept = Kept()
    one = program(tmp_path, *shell("echo up; exec sleep 600"))
    keeping = kept(one)
    until(lambda: "up" in _said(one))
    [copy] = marked(one)
    os.kill(copy.ppid(), 9)
    until(lambda: kept.failures)
    until(lambda: not marked(one))
    keeping.end()
    kept.end()
    assert "keeps the program" in str(kept.failures[0])


def test_logs_are_bounded_and_output_is_not(tmp_path: Path, kept: Kept) -> None:
    lines = 1_000_000
    loud = f"yes abcdefgh | head -n {lines}; yes abcdefgh | head -n {lines} >&2; sleep 600"
    prints = program(tmp_path, *shell(loud), prints=True)
    keeping = kept(prints)
    until(lambda: prints.sink(0, 0).exists() and prints.sink(0, 0).stat().st_size == 9 * lines)
    until(lambda: prints.log(0, "err").stat().st_size == keeper.LOG_BYTES)
    keeping.end()
    assert not prints.log(0, "out").exists()


def test_placeholders_stand_for_what_a_copy_is_given(tmp_path: Path) -> None:
    one = Program(
        ["run", "--in={input}", '{"sink": "{sink}"}', "{copy}", "{unknown}"], {"GROUP": "{group}"}, "/", str(tmp_path),
        {"input": "a,b", "group": "g"}, writes=True,
    )  # fmt: skip
    sink = f"{tmp_path}/output-1-2.jsonl"
    assert one.command(1, 2) == ["run", "--in=a,b", f'{{"sink": "{sink}"}}', "1", "{unknown}"]
    assert one.variables(1, 2) == {
        "SEAWALL_INPUT": "a,b", "SEAWALL_GROUP": "g", "SEAWALL_SINK": sink, "SEAWALL_COPY": "1", "GROUP": "g",
    }  # fmt: skip
    assert Program.parse(one.text()).command(1, 2) == one.command(1, 2)


def test_what_cannot_be_run_is_known_before(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    assert missing(["sh"], tmp_path) == ""
    assert "no program 'plain'" in missing(["plain"], tmp_path)
    assert "no program './plain'" in missing(["./plain"], tmp_path)
    assert "no directory" in missing(["sh"], tmp_path / "nowhere")
    (tmp_path / "plain").chmod(0o755)
    assert missing(["./plain"], tmp_path) == ""


def _said(one: Program) -> str:
    log = one.log(0, "out")
    return log.read_text() if log.exists() else ""
