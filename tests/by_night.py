"""How many seeds a test plays: some whenever tests run, and the others of them in ``make nightly``."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet


def seeds(day: int, night: int, first: int = 0) -> pytest.MarkDecorator:
    """Parametrize a test's ``seeds``: ``day`` of them, from ``first`` on, and up to ``night`` of them by night."""
    return pytest.mark.parametrize("seeds", ranges(day, night, first))


def some(names: Iterable[str], by_day: Container[str], late: pytest.MarkDecorator) -> list[ParameterSet]:
    """A parameter for each of ``names``; those that are not played ``by_day`` are marked ``late``."""
    return [pytest.param(name, marks=[] if name in by_day else late) for name in names]


def ranges(day: int, night: int, first: int = 0) -> list[ParameterSet]:
    """The ``params`` of a fixture that plays seeds, as :func:`seeds` has them."""
    late = pytest.mark.nightly(f"plays {night - day} more seeds")
    return [
        pytest.param(range(first, first + day), id=f"{day}-seeds"),
        pytest.param(range(first + day, first + night), id=f"{night - day}-more", marks=late),
    ]
