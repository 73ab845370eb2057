"""A script that executes another program, which the kernel kills when the harness dies (``PR_SET_PDEATHSIG``).

Arguments: the process id of the harness, then the command. The setting survives ``exec``.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Execute the command; exit at once when the harness is already gone, for no signal would come."""
    parent, *command = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the harness, which ends its nodes
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        os._exit(0)
    os.execv(command[0], command)  # noqa: S606 (there is no shell to begin with)


if __name__ == "__main__":
    main()
