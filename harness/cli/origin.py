"""Checks that the packages that Python would import are seawall's own.

seawall's packages have flat names (``harness``, ``faults``, ``reports`` ...), which another distribution or a
folder on ``PYTHONPATH`` can shadow, with an obscure error much later, or none.
"""

from __future__ import annotations

from harness.errors import EnvironmentFault
from seawall_origin import PACKAGES, strangers

__all__ = ["PACKAGES", "require_one_origin"]


def require_one_origin() -> None:
    """Check that every package lies beside this one, without importing it.

    Raises:
        EnvironmentFault: one lies elsewhere or is missing.
    """
    if found := strangers():
        raise EnvironmentFault(*found)
