"""Becomes the process of a cell: the kernel interrupts it when the nightly process dies, even by ``kill -9``.

``python -P -m harness.nightly.launch PARENT WORD...``: the first word ``seawall`` is this seawall, and ``python`` its
interpreter. This module imports nothing slow.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1
_NOT_FOUND = 127
_ENTRY = "import sys; from harness.entry import main; sys.exit(main())"


def command(words: Sequence[str]) -> list[str]:
    """The command line that launches ``words`` as a child of this process."""
    return [sys.executable, "-P", "-m", "harness.nightly.launch", str(os.getpid()), *words]


def program(words: Sequence[str]) -> list[str]:
    """``words`` with this seawall, or its interpreter, in place of their names."""
    match list(words):
        case ["seawall", *others]:
            return [sys.executable, "-P", "-c", _ENTRY, *others]
        case ["python", *others]:
            return [sys.executable, *others]
        case given:
            return given


def main() -> int:
    """Ask the kernel for a signal at the parent's death, and become the program."""
    parent, *words = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):
        return int(signal.SIGTERM)
    run = program(words)
    try:
        os.execvp(run[0], run)  # noqa: S606 - this process is to become it
    except OSError as error:
        sys.stderr.write(f"seawall: {run[0]} cannot be run: {error.strerror}.\n")
        return _NOT_FOUND


if __name__ == "__main__":
    sys.exit(main())
