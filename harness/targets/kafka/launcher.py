"""Becomes another program, which the kernel will kill when the harness dies (``PR_SET_PDEATHSIG``): run as a script.

Arguments: the process id of the harness, then the command. What is asked of the kernel holds across ``exec``.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Become the command; leave at once when the harness is gone already, for nobody would deliver the signal."""
    parent, *command = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the harness, which ends its nodes
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        os._exit(0)
    os.execv(command[0], command)  # noqa: S606 (there is no shell to begin with)


if __name__ == "__main__":
    main()
