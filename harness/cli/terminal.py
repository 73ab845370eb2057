"""Prints for the user: results to standard output, progress to standard error."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from rich.console import Console

_WIDTH_OF_A_FILE = 120

Say = Callable[[str], None]
"""Called with one line per phase."""


def stdout() -> Console:
    """A console for results, wide enough for tables when it is a file or a pipe."""
    return Console(width=None if sys.stdout.isatty() else _WIDTH_OF_A_FILE, soft_wrap=False)


def progress() -> Say:
    """A function to call at the start of each phase; it prints a line with the seconds since now."""
    started = time.monotonic()

    def say(phase: str) -> None:
        tell(f"{time.monotonic() - started:6.1f} s  {phase}")

    return say


def tell(line: str) -> None:
    """Write a line to standard error; a closed terminal or pipe does not end the command."""
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except RuntimeError:
        pass  # a signal handler in the midst of another line, which Python refuses
    except OSError:
        _stop_telling()


def _stop_telling() -> None:
    """Discard standard error, including what Python flushes at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stderr.fileno())
    os.close(nowhere)
