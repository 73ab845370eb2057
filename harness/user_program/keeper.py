"""The process that keeps the copies of a user's program running, and leaves none behind when it ends.

The first line of its standard input is a :class:`~harness.user_program.program.Program`; further lines are orders:
``calm``, kill no more, and ``end``, ask every copy to end, and exit when all have. When the input ends, as it does when
seawall is killed by ``kill -9``, it kills everything.

It has whatever its copies start, and leave behind, made its own children (``PR_SET_CHILD_SUBREAPER``), so that it finds
processes that have detached themselves. A copy dies with it (``PR_SET_PDEATHSIG``). It prints a line of JSON for each
start, exit and kill of a copy.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import IO

import psutil

from harness.user_program.program import Program

LOG_BYTES = 5_000_000
"""How much of what a copy says on each stream is kept, unless it is its output."""

_SAID_BYTES = 2000
_LOOK_S = 0.02
_KILL_TIMEOUT_S = 10.0
_CHUNK = 1 << 16
_NOT_STARTED = 127
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36

_libc = ctypes.CDLL(None)


@dataclass(slots=True)
class _Stream:
    """One of a life's streams, and the file that takes it."""

    pipe: IO[bytes]
    file: IO[bytes]
    most: float
    tail: bytes = b""

    def pump(self) -> bool:
        """Take what is there; returns whether there may be more later."""
        try:
            chunk = os.read(self.pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return True
        if not chunk:
            return False
        self.tail = (self.tail + chunk)[-_SAID_BYTES:]
        if (left := self.most - self.file.tell()) > 0:
            self.file.write(chunk[: int(min(left, len(chunk)))])
            self.file.flush()
        return True

    def close(self) -> None:
        self.pipe.close()
        self.file.close()


@dataclass(slots=True)
class _Copy:
    """A copy of the program, over all its lives; it is started when ``due_s`` has come."""

    number: int
    life: int = -1
    due_s: float = 0.0
    process: subprocess.Popen[bytes] | None = None
    streams: list[_Stream] = field(default_factory=list)
    struck: bool = False


class Keeper:
    """Starts copies, and starts them again, until it is ordered to end them."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._copies = [_Copy(number) for number in range(program.copies)]
        self._selector = selectors.DefaultSelector()
        self._drawn = random.Random(f"{program.seed}:kills")
        self._kills_s = self._next_kill_s()
        self._ends_s: float | None = None
        self._heard = b""
        self.is_killing = False

    def run(self) -> None:
        """Keep the program until an order, or the end of the input, ends it."""
        os.set_blocking(sys.stdin.fileno(), False)
        self._selector.register(sys.stdin.fileno(), selectors.EVENT_READ, None)
        try:
            while not self.is_killing and not self._has_ended():
                self._look()
        finally:
            self._kill_all()

    def _look(self) -> None:
        for key, _ in self._selector.select(_LOOK_S):
            if key.data is None:
                self._listen()
            elif not key.data.pump():
                self._selector.unregister(key.data.pipe)
        now_s = time.monotonic()
        for copy in self._copies:
            if copy.process is not None and copy.process.poll() is not None:
                self._bury(copy)
            elif copy.process is None and self._ends_s is None and now_s >= copy.due_s:
                self._start(copy)
        if self._ends_s is None and now_s >= self._kills_s:
            self._kills_s = self._next_kill_s()
            self._kill_one()

    def _listen(self) -> None:
        """Take orders; the input may end in the middle of one."""
        chunk = os.read(sys.stdin.fileno(), _CHUNK)
        if not chunk:
            self.is_killing = True
            return
        *orders, self._heard = (self._heard + chunk).split(b"\n")
        for order in orders:
            if order == b"calm":
                self._kills_s = float("inf")
            elif order == b"end" and self._ends_s is None:
                self._ends_s = time.monotonic() + self._program.stop_s
                for copy in self._alive():
                    _signal_session(copy, signal.SIGTERM)

    def _has_ended(self) -> bool:
        """Whether all copies have ended that were asked to, or the time for that is over."""
        return self._ends_s is not None and (not any(self._alive()) or time.monotonic() >= self._ends_s)

    def _alive(self) -> Iterator[_Copy]:
        return (copy for copy in self._copies if copy.process is not None)

    def _next_kill_s(self) -> float:
        every_s = self._program.kill_every_s
        return time.monotonic() + self._drawn.expovariate(1 / every_s) if every_s else float("inf")

    def _kill_one(self) -> None:
        alive = list(self._alive())
        if alive:
            struck = self._drawn.choice(alive)
            struck.struck = True
            _signal_session(struck, signal.SIGKILL)

    def _start(self, copy: _Copy) -> None:
        program = self._program
        copy.life += 1
        copy.struck = False
        try:
            copy.process = subprocess.Popen(
                program.command(copy.number, copy.life),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=program.directory,
                env={**os.environ, **program.variables(copy.number, copy.life)},
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - this process has one thread
            )
        except OSError as error:
            copy.due_s = time.monotonic() + program.restart_s
            _say("started", copy)
            _say("exited", copy, status=_NOT_STARTED, said=f"{program.argv[0]}: {error.strerror}")
            return
        assert copy.process.stdout is not None
        assert copy.process.stderr is not None
        kept = program.sink(copy.number, copy.life) if program.prints else program.log(copy.number, "out")
        copy.streams = [
            _Stream(copy.process.stdout, kept.open("ab"), float("inf") if program.prints else LOG_BYTES),
            _Stream(copy.process.stderr, program.log(copy.number, "err").open("ab"), LOG_BYTES),
        ]
        for stream in copy.streams:
            os.set_blocking(stream.pipe.fileno(), False)
            self._selector.register(stream.pipe, selectors.EVENT_READ, stream)
        _say("started", copy)

    def _bury(self, copy: _Copy) -> None:
        """A copy has ended: end what it has left behind, take the rest of what it said, and say so."""
        process = copy.process
        assert process is not None
        copy.process = None
        _kill([one for one in psutil.Process().children(recursive=True) if self._is_left(one)])
        for stream in copy.streams:
            if stream.pipe.fileno() in self._selector.get_map():
                self._selector.unregister(stream.pipe)
                _empty(stream)
            stream.close()
        said = copy.streams[1].tail.decode(errors="replace").strip()
        what = "killed" if copy.struck else "ended" if self._ends_s is not None or self.is_killing else "exited"
        copy.due_s = time.monotonic() + self._program.restart_s
        _say(what, copy, status=process.returncode, said=said)

    def _is_left(self, one: psutil.Process) -> bool:
        """Whether a descendant belongs to no copy that is alive."""
        living = {copy.process.pid for copy in self._alive() if copy.process is not None}
        with suppress(OSError, psutil.Error):
            above = {one.pid, *(parent.pid for parent in one.parents())}
            return os.getsid(one.pid) not in living and not above & living
        return False

    def _kill_all(self) -> None:
        """Kill every descendant, whatever it has done to get away, and wait for their ends."""
        deadline_s = time.monotonic() + _KILL_TIMEOUT_S
        while (left := psutil.Process().children(recursive=True)) and time.monotonic() < deadline_s:
            _kill(left)
            for copy in list(self._alive()):
                if copy.process is not None and copy.process.poll() is not None:
                    self._bury(copy)


def _kill(processes: list[psutil.Process]) -> None:
    """Kill processes, and reap those that are this one's children and no copies."""
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(processes, _LOOK_S)


def _empty(stream: _Stream) -> None:
    """Take what is left in a pipe whose writers are gone."""
    with suppress(OSError):
        before = -1
        while stream.file.tell() != before and stream.pump():
            before = stream.file.tell()


def _signal_session(copy: _Copy, number: signal.Signals) -> None:
    """Signal a copy and those of its children that have stayed in its process group."""
    if copy.process is not None:
        with suppress(ProcessLookupError):
            os.killpg(copy.process.pid, number)


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _say(what: str, copy: _Copy, **more: object) -> None:
    line = {"what": what, "copy": copy.number, "life": copy.life, "time_ns": time.monotonic_ns(), **more}
    with suppress(OSError):
        sys.stdout.write(f"{json.dumps(line)}\n")
        sys.stdout.flush()


def main() -> int:
    """Keep the program that the input describes."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    keeper = Keeper(Program.parse(_first_line()))

    def kill(_: int, __: FrameType | None) -> None:
        keeper.is_killing = True

    signal.signal(signal.SIGTERM, kill)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keeper.run()
    return 0


def _first_line() -> str:
    """The first line of the input, and nothing behind it."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(sys.stdin.fileno(), 1)
        if not byte:
            sys.exit(0)
        line += byte
    return line.decode()
