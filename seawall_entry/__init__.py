"""The entry point of the command ``seawall``: it refuses a foreign package ``harness``, and then imports the rest.

It lies outside of the packages, and imports the standard library alone, because another distribution, or a folder on
``PYTHONPATH``, may have a package ``harness``, too.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` is made of: there at once, while that itself takes time, in which a signal may come
import sys

from seawall_origin import strangers

_ENVIRONMENT = 4
"""The exit code of :class:`harness.errors.EnvironmentFault`, which may not be there."""


def main() -> int:
    """Run this process's command line and return its exit code; until the rest is imported, Ctrl-C ends it at once."""
    # Not at import: Ctrl-C belongs to the process that imports this module.
    if _signal.getsignal(_signal.SIGINT) is not _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    if found := strangers(("harness",)):
        sys.stderr.write(f"seawall: {' '.join(found)}\n")
        return _ENVIRONMENT
    from harness.entry import main as command  # noqa: PLC0415 - it may be a foreign one

    return command()
