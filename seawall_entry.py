"""The entry point of the command ``seawall``: it refuses a foreign package ``harness``, and then imports the rest.

It lies outside of the packages, and imports the standard library alone, because another distribution, or a folder on
``PYTHONPATH``, may have a package ``harness``, too.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` is made of: there at once, while that itself takes time, in which a signal may come
import sys
from collections.abc import Sequence

PACKAGES = ("harness", "faults", "workloads", "checkers", "reports", "spark_analysis")
"""The packages of seawall."""

_ENVIRONMENT = 4
"""The exit code of :class:`harness.errors.EnvironmentFault`, which may not be there."""


def main() -> int:
    """Run this process's command line and return its exit code; until the rest is imported, Ctrl-C ends it at once."""
    # Not at import: the pytest plugin imports this module into processes whose Ctrl-C is their own.
    if _signal.getsignal(_signal.SIGINT) is not _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    if found := strangers(("harness",)):
        sys.stderr.write(f"seawall: {' '.join(found)}\n")
        return _ENVIRONMENT
    from harness.entry import main as command  # noqa: PLC0415 - it may be a foreign one

    return command()


def strangers(packages: Sequence[str] = PACKAGES) -> tuple[str, str] | None:
    """The first of ``packages`` that Python would import from elsewhere, in a sentence with a remedy; None: none.

    Nothing is imported.
    """
    from pathlib import Path  # noqa: PLC0415 - after the signal handler

    root = Path(__file__).resolve().parent
    for package in packages:
        found, expected = origin(package), root / package
        if found is None or Path(found).resolve() != expected:
            return (
                f"package {package!r} is imported from {found or 'nowhere'}, but seawall's own is {expected}.",
                "Another distribution or PYTHONPATH shadows it: remove that, or give seawall a venv of its own.",
            )
    return None


def origin(package: str) -> str | None:
    """The folder, or the file, that ``import package`` would load; None when there is none."""
    from importlib.util import find_spec  # noqa: PLC0415 - after the signal handler

    spec = find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return places[0] if places else spec.origin if spec else None
