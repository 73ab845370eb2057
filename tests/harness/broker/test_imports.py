"""What nodes and runs import: hundreds of them start in a night, and each pays for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"confluent_kafka", "numpy", "pandas", "pyarrow", "pydantic", "pyspark", "rich", "typer"}


@pytest.mark.parametrize("module", ["harness.broker.__main__", "harness.targets.kafka.proxies"])
def test_a_node_imports_what_it_does_not_need(module: str) -> None:
    assert imported(module, HEAVY) == []


def test_a_run_imports_no_http_client_before_it_fetches_kafka() -> None:
    assert imported("harness.runner", {"docker", "requests"}) == []


def imported(module: str, names: set[str]) -> list[str]:
    """Those of ``names`` that the import of ``module`` imports, too."""
    code = f"import sys, {module}; print(*sorted({names!r} & set(sys.modules)))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
