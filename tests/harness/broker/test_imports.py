"""What a node imports: hundreds of nodes start in a night, and each pays for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"confluent_kafka", "numpy", "pandas", "pyarrow", "pydantic", "pyspark", "rich", "typer"}


@pytest.mark.parametrize("module", ["harness.broker.__main__", "harness.targets.kafka.proxies"])
def test_a_node_imports_what_it_does_not_need(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
