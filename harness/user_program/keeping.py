"""The keeper of a user's program, as the run sees it: it is given orders, and says what becomes of the copies."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import harness
from harness.errors import EnvironmentFault
from harness.user_program.program import Program

_END_TIMEOUT_S = 30.0
_POLL_S = 0.02
_SAID = 300


class Keeping:
    """One program during one run.

    Args:
        program: what to keep.
        failed: called, in another thread, with why the keeper has ended by itself.

    Attributes:
        exits: how often copies have ended by themselves, or been killed.
    """

    def __init__(self, program: Program, failed: Callable[[BaseException], None]) -> None:
        self._program = program
        self._failed = failed
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._counts: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()
        self._lives: dict[int, int] = {}
        self._alive: set[int] = set()
        self._said = ""
        self._is_ending = False

    @property
    def exits(self) -> int:
        """See the class."""
        return self._counts["exited"] + self._counts["killed"]

    @property
    def all_run(self) -> bool:
        """Whether every copy runs at this moment."""
        return len(self._alive) == self._program.copies

    def start(self) -> None:
        """Start the keeper, and with it the copies.

        It asks the kernel to end with the thread that starts it, which must therefore be the main thread.
        """
        assert threading.current_thread() is threading.main_thread(), "a keeper is started from the main thread"
        Path(self._program.files).mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            (sys.executable, "-P", "-c", _ENTRY, str(Path(harness.__file__).parents[1])),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()
        self._order(self._program.text())

    def calm(self) -> None:
        """From now on kill no copy."""
        self._order("calm")

    def end(self) -> None:
        """Ask every copy to end, kill those that do not, and wait until nothing is left; idempotent."""
        self._is_ending = True
        self._order("end")
        self._wait(self._program.stop_s + _END_TIMEOUT_S)

    def kill(self) -> None:
        """Kill everything at once, and wait until nothing is left; idempotent."""
        self._is_ending = True
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        self._wait(_END_TIMEOUT_S)

    def lives(self) -> dict[int, int]:
        """By copy, how many lives it has had."""
        return dict(self._lives)

    def document(self) -> dict[str, Any]:
        """As :class:`harness.history.run_json.ProgramDocument` has it."""
        return {
            "started": self._counts["started"],
            "exited": self._counts["exited"],
            "killed": self._counts["killed"],
            "statuses": dict(sorted(self._statuses.items())),
            "said": self._said,
        }

    def _order(self, line: str) -> None:
        if self._process is not None and self._process.stdin is not None and not self._process.stdin.closed:
            with suppress(OSError):
                self._process.stdin.write(f"{line}\n")
                self._process.stdin.flush()

    def _wait(self, timeout_s: float) -> None:
        """Wait for the keeper's end; one that hangs is killed, and its copies die with it."""
        if self._process is None:
            return
        deadline_s = time.monotonic() + timeout_s
        while self._process.poll() is None and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._reader is not None:
            self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._take(json.loads(line))
        if not self._is_ending:
            self._failed(EnvironmentFault("the process that keeps the program of workload command has ended.", _REMEDY))

    def _take(self, event: dict[str, Any]) -> None:
        what, copy = str(event["what"]), int(event["copy"])
        self._counts[what] += 1
        if what == "started":
            self._lives[copy] = int(event["life"]) + 1
            self._alive.add(copy)
            return
        self._alive.discard(copy)
        if what == "exited":
            self._statuses[str(event["status"])] += 1
            self._said = " ".join(str(event["said"]).split())[-_SAID:] or self._said


_ENTRY = "import sys; sys.path.insert(0, sys.argv[1]); from harness.user_program.keeper import main; sys.exit(main())"
_REMEDY = "Look at the machine's free memory, and at its limits of processes."
