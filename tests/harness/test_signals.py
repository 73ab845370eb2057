"""Who has the signals, from the first instruction of a command to its last."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from harness import signals
from harness.runner.interruption import Interruption
from tests.harness.sweep import COMMAND, interrupted

pytestmark = pytest.mark.usefixtures("without_nohup")
INT, TERM, KILL = signal.SIGINT, signal.SIGTERM, signal.SIGKILL
BEFORE_THE_COMMAND = """\
import os, signal, sys
from importlib.abc import MetaPathFinder
module, sys.argv[1:] = sys.argv[1], ["--version"]
class Interrupting(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from harness.entry import main
sys.exit(main())
"""


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def test_the_first_signal_is_raised_and_the_others_are_answered() -> None:
    said: list[str] = []
    with signals.raised_once(said.append, to_the_end=False):
        assert signals.caught() == ""
        with pytest.raises(KeyboardInterrupt):
            send(TERM)
        send(INT)
        send(TERM)
        assert signals.caught() == "SIGTERM"
    assert [line.partition(":")[0] for line in said] == ["SIGINT", "SIGTERM"]


def test_what_a_run_was_sent_is_not_raised_once_more_after_it() -> None:
    said: list[str] = []
    with signals.raised_once(said.append, to_the_end=False):
        with pytest.raises(KeyboardInterrupt), Interruption(said.append):
            send(INT)
        send(INT)
    assert len(said) == 1


@pytest.mark.parametrize("in_a_run", [False, True])
def test_a_signal_whose_exception_a_destructor_swallows_comes_once_more(*, in_a_run: bool) -> None:
    class Swallowing:
        def __del__(self) -> None:
            send(INT)

    run = Interruption(lambda _: None) if in_a_run else nullcontext()
    with signals.raised_once(lambda _: None, to_the_end=False), pytest.raises(KeyboardInterrupt), run:
        _outlive(Swallowing())


def _outlive(one: object) -> None:
    del one
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        time.sleep(0.01)


def test_signals_that_are_ignored_stay_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals.raised_once(lambda _: None, to_the_end=False):
            send(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_processes_that_are_started_while_signals_are_withheld_do_not_get_them() -> None:
    with signals.withheld():
        child = subprocess.Popen((sys.executable, "-c", "import sys; sys.stdin.read()"), stdin=subprocess.PIPE)
    child.send_signal(INT)
    child.communicate(timeout=60)
    assert child.returncode == 0


@pytest.mark.parametrize("module", ["typer", "harness.cli.application"])
def test_ctrl_c_while_a_command_is_imported_is_one_sentence(module: str) -> None:
    done = subprocess.run(
        (sys.executable, "-c", BEFORE_THE_COMMAND, module), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "seawall: interrupted.\n")


def test_a_crash_in_a_library_in_c_shows_what_every_thread_did() -> None:
    crashing = """import ctypes, sys
sys.argv[1:] = ["--version"]
from harness.entry import main
main()
ctypes.string_at(0)
"""
    ended = subprocess.run([sys.executable, "-c", crashing], capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGSEGV
    assert "in string_at" in ended.stderr


def test_a_worker_ends_with_the_process_that_has_started_it() -> None:
    script = (
        "import multiprocessing, os, time\n"
        "from harness.signals import die_with_parent\n"
        "def work(pipe):\n"
        "    die_with_parent(); pipe.send(os.getpid()); time.sleep(600)\n"
        "near, far = multiprocessing.Pipe()\n"
        "multiprocessing.get_context('fork').Process(target=work, args=(far,)).start()\n"
        "print(near.recv(), flush=True); os.kill(os.getpid(), 9)\n"
    )
    worker = int(subprocess.run((sys.executable, "-c", script), capture_output=True, check=False).stdout)
    deadline = time.monotonic() + 60
    while Path(f"/proc/{worker}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}").exists()


RUN = ["run", "random-chaos", "--duration-s", "5"]
SIMULATE = ["simulate", "--seeds", "100000", "--jobs", "2"]
SOME = [
    (RUN, 1.0, "once"),
    (RUN, 1.7, "fast"),
    (SIMULATE, 1.7, "terminated"),
    (["cluster", "up"], 3.0, "killed"),
]
ALL = [
    (words, moment)
    for words in (RUN, SIMULATE, ["demo"], ["cluster", "up"], ["doctor"])
    for moment in (0.15, 0.5, 1.0, 1.7, 2.5, 3.0, 5.0, 9.0, 16.0)
]
SENT = {"once": [INT], "fast": [INT] * 4, "terminated": [TERM, TERM, INT], "killed": [KILL]}


def sweep(words: list[str], moment: float, sent: list[signal.Signals], directory: Path) -> None:
    """Check that a command ends as it is documented whenever a signal comes, and leaves nothing."""
    ended = interrupted(words, moment, sent, directory)
    assert "Traceback" not in ended.said
    assert "Exception" not in ended.said
    assert not ended.processes
    if KILL in sent:
        healed = interrupted(["heal"], 0, [], directory)
        assert (healed.status, healed.files) == (0, [])
    else:
        assert ended.status in (130, 0)  # 0: it was done, or is a cluster that served
        assert not ended.files


@pytest.mark.parametrize(
    ("words", "moment", "sent"), SOME, ids=lambda one: one[0] if isinstance(one, list) else str(one)
)
def test_whenever_a_signal_comes_a_command_leaves_nothing(
    words: list[str], moment: float, sent: str, tmp_path: Path
) -> None:
    sweep(words, moment, SENT[sent], tmp_path)


@pytest.mark.nightly("sweeps the moments of commands with all signals; by day each signal comes once")
@pytest.mark.parametrize("sent", SENT.values(), ids=SENT)
@pytest.mark.parametrize(("words", "moment"), ALL, ids=lambda one: one[0] if isinstance(one, list) else str(one))
def test_at_all_moments_a_signal_leaves_nothing_of_a_command(
    words: list[str], moment: float, sent: list[signal.Signals], tmp_path: Path
) -> None:
    sweep(words, moment, sent, tmp_path)


@pytest.mark.nightly("sweeps the moments of long commands; by day of short ones")
@pytest.mark.parametrize("sent", SENT.values(), ids=SENT)
@pytest.mark.parametrize("command", ["check", "report"])
def test_a_check_that_a_signal_ends_leaves_nothing(command: str, sent: list[signal.Signals], tmp_path: Path) -> None:
    recording = ("run", "random-chaos", "--duration-s", "3", "--out", str(tmp_path / "runs"))
    subprocess.run((*COMMAND, *recording), check=True, capture_output=True)
    run = os.fspath(tmp_path / "runs" / "latest")
    for moment in (0.3, 0.8, 1.5, 3.0, 5.0, 8.0, 12.0):
        sweep([command, run], moment, sent, tmp_path)
