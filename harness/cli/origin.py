"""Checks that the packages that Python would import are seawall's own.

seawall's packages have flat names (``harness``, ``faults``, ``reports`` ...), which another distribution or a
folder on ``PYTHONPATH`` can shadow, with an obscure error much later, or none.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from harness.errors import EnvironmentFault

PACKAGES = ("harness", "faults", "workloads", "checkers", "reports", "spark_analysis")


def require_one_origin() -> None:
    """Check that every package lies beside this one, without importing it.

    Raises:
        EnvironmentFault: one lies elsewhere or is missing.
    """
    root = Path(__file__).resolve().parents[2]
    for package in PACKAGES:
        expected, found = root / package, origin(package)
        if found != expected:
            raise EnvironmentFault(
                f"package {package!r} is imported from {found or 'nowhere'}, but seawall's own is {expected}.",
                "Another distribution or PYTHONPATH shadows it: remove that, or give seawall a venv of its own.",
            )


def origin(package: str) -> Path | None:
    """The folder that ``import package`` would load; None when there is none."""
    spec = find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]).resolve() if places else None
