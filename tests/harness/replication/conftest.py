"""``pytest tests/harness/replication --rewrite`` accepts what the stories print now; review the diff."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the stories' present output into their files")
