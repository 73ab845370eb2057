"""What people see: results on standard output, what happens meanwhile on standard error."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from rich.console import Console

_WIDTH_OF_A_FILE = 120

Say = Callable[[str], None]
"""Told one line per phase."""


def stdout() -> Console:
    """A console for results, wide enough for tables when it is a file or a pipe."""
    return Console(width=None if sys.stdout.isatty() else _WIDTH_OF_A_FILE, soft_wrap=False)


def progress() -> Say:
    """Something to call at the start of each phase; prints a line with the seconds since now."""
    started = time.monotonic()

    def say(phase: str) -> None:
        tell(f"{time.monotonic() - started:6.1f} s  {phase}")

    return say


def tell(line: str) -> None:
    """Write a line to standard error, if anybody reads it: a closed terminal or pipe must not end what is going on."""
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except RuntimeError:
        pass  # said by a signal handler in the midst of another line, which Python refuses
    except OSError:
        _stop_telling()


def _stop_telling() -> None:
    """Let standard error lead nowhere, also for what it still holds when Python flushes it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stderr.fileno())
    os.close(nowhere)
