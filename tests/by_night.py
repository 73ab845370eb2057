"""How many seeds a test plays: some whenever tests run, and the others of them in ``make nightly``."""

from __future__ import annotations

import pytest


def seeds(day: int, night: int, first: int = 0) -> pytest.MarkDecorator:
    """Parametrize a test's ``seeds``: ``day`` of them, from ``first`` on, and up to ``night`` of them by night."""
    late = pytest.mark.nightly(f"plays {night - day} more seeds")
    return pytest.mark.parametrize(
        "seeds",
        [
            pytest.param(range(first, first + day), id=f"{day}-seeds"),
            pytest.param(range(first + day, first + night), id=f"{night - day}-more", marks=late),
        ],
    )
