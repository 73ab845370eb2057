"""A seawall that runs in a process of its own, and is ended by SIGKILL in the middle of what it does."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_MAIN = "import sys; from harness.entry import main; sys.exit(main())"


@contextmanager
def killed_seawall(words: tuple[str, ...], done: Callable[[], object]) -> Iterator[None]:
    """Run ``seawall WORDS`` until something is ``done``, and kill it behind the block: that looks while it runs."""
    with subprocess.Popen([sys.executable, "-c", _MAIN, *words], stderr=subprocess.PIPE) as seawall:
        try:
            deadline = time.monotonic() + 60
            while not (seen := done()) and time.monotonic() < deadline:
                time.sleep(0.05)
            yield
        finally:
            seawall.kill()
            _, complaint = seawall.communicate()
    assert seen, complaint.decode()
