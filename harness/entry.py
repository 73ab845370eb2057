"""The entry point of the command ``seawall``: it sets the signal handlers, and then imports the rest."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` is made of: there at once, while that itself takes time, in which a signal may come
import faulthandler
import sys

if _signal.getsignal(_signal.SIGINT) is not _signal.SIG_IGN:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def main() -> int:
    """Run this process's command line, or complete one for a shell, and return the exit code."""
    from harness import completion  # noqa: PLC0415

    if completion.answers_shell():
        return completion.main()
    from harness.signals import leave_at_once  # noqa: PLC0415

    leave_at_once()
    if sys.stderr is not None:
        faulthandler.enable()  # what every thread did when a library in C, such as librdkafka, has crashed
    from harness.cli import main as command  # noqa: PLC0415 - takes a second

    return command()
