"""The names of seawall's packages, and whether Python would import one of them from elsewhere.

It lies outside of them, and imports the standard library alone, because another distribution, or a folder on
``PYTHONPATH``, may have a package ``harness``, too.
"""

from __future__ import annotations

from collections.abc import Sequence

PACKAGES = ("harness", "faults", "workloads", "checkers", "reports", "spark_analysis")
"""The packages of seawall, whose names another distribution may have, too."""


def strangers(packages: Sequence[str] = PACKAGES) -> tuple[str, str] | None:
    """The first of ``packages`` that Python would import from elsewhere, in a sentence with a remedy; None: none.

    Nothing is imported.
    """
    from pathlib import Path  # noqa: PLC0415 - after the signal handler of seawall_entry

    root = Path(__file__).resolve().parents[1]
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
    from importlib.util import find_spec  # noqa: PLC0415 - after the signal handler of seawall_entry

    spec = find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return places[0] if places else spec.origin if spec else None
