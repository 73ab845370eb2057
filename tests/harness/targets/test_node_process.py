"""A process of a node that ends while others look at it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.errors import EnvironmentFault
from harness.targets.node_process import ChildProcess


@pytest.fixture
def child(tmp_path: Path) -> Iterator[ChildProcess]:
    child = ChildProcess("1", tmp_path, lambda _name, _pid: None)
    child.start(("sleep", "60"), {})
    yield child
    child.kill()


@pytest.fixture
def reaped(child: ChildProcess) -> Iterator[ChildProcess]:
    """The process has ended; but who learned it, in another thread, is not yet done, so that it seems to exist."""
    assert child._process is not None
    with child._process._waitpid_lock:  # type: ignore[attr-defined]
        os.kill(child._process.pid, signal.SIGKILL)
        os.waitpid(child._process.pid, 0)
        assert child.exists
        yield child


def test_what_another_thread_finds_to_have_ended_cannot_be_sent_a_signal(reaped: ChildProcess) -> None:
    with pytest.raises(EnvironmentFault, match="node 1 cannot be sent SIGTERM: its process is gone"):
        reaped.signal(signal.SIGTERM)


def test_what_another_thread_finds_to_have_ended_is_struck_without_harm(reaped: ChildProcess) -> None:
    reaped.strike()


def test_what_is_killed_is_gone_however_often(child: ChildProcess) -> None:
    for _ in range(2):
        child.kill()
        assert (child.exists, child.exit_status, child.fell_to) == (False, -signal.SIGKILL, None)
    child.start(("sleep", "60"), {})
    os.kill(child.pid or 0, signal.SIGKILL)
    assert child.wait(10)
    assert child.fell_to == signal.SIGKILL


def sent(child: ChildProcess, number: signal.Signals) -> None:
    os.kill(child.pid or 0, number)


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (lambda child: sent(child, signal.SIGKILL), -signal.SIGKILL),
        (lambda child: sent(child, signal.SIGSEGV), -signal.SIGSEGV),
        (lambda child: child.kill(), None),
        (lambda child: child.signal(signal.SIGTERM), None),
    ],
)
def test_an_end_that_was_not_ordered_is_told_with_when_it_was(
    child: ChildProcess, end: Callable[[ChildProcess], None], status: int | None
) -> None:
    begun_ns = time.monotonic_ns()
    assert child.unordered() is None
    end(child)
    assert child.wait(10)
    told = child.unordered()
    assert (None if told is None else told[1]) == status
    assert told is None or begun_ns < told[0] < time.monotonic_ns()


def test_a_status_of_its_own_was_not_ordered_whatever_signal_was_sent_as_it_ended(child: ChildProcess) -> None:
    child.kill()
    child.start(("sh", "-c", "trap 'exit 7' TERM; echo; while :; do sleep 0.01; done"), {})
    while not child.log.read_bytes():
        time.sleep(0.01)
    child.signal(signal.SIGTERM)
    assert child.wait(10)
    assert (child.unordered() or (0, 0))[1] == 7


def test_a_program_that_is_there_to_end_was_ordered_to(child: ChildProcess) -> None:
    child.kill()
    child.start(("false",), {})
    child.let_end()
    assert child.wait(10)
    assert child.unordered() is None
