"""Settings that every test shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# No deadline: two busy cores decide how long an example takes. In CI the examples are the same every time, so
# that a red build means a changed project; at a desk they are new each time, which is how bugs are found.
settings.register_profile("seawall", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("seawall")

_SPARK = Path(__file__).parent / "spark_analysis"


def pytest_addoption(parser: pytest.Parser) -> None:
    """``pytest --rewrite`` accepts what stories and generated documents say now; review the diff."""
    parser.addoption("--rewrite", action="store_true", help="write the present output into stories and documents")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Split the suite by file between workers, and give what needs Spark to one of them, first: it takes longest."""
    for item in items:
        group = "spark" if item.path.is_relative_to(_SPARK) else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: not item.path.is_relative_to(_SPARK))
