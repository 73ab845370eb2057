"""Whose the anomalies of a user's program are: a program, and brokers, that break a promise as real processes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from checkers import check
from harness import runner, scenario
from harness.checker import Side
from tests.attribution.trial import sides

SINK = Path(__file__).parents[1] / "workloads/programs/sink.py"
QUIET: dict[str, Any] = {
    "id": "my-sink",
    "title": "Nothing goes wrong while a program works",
    "source": "a test",
    "topics": [{"name": "orders", "partitions": 2, "replication_factor": 3}],
    "schedule": [{"wait_s": 8}],
}
RATE = 900
"""Records a second, so that an answer to the program has several batches."""


@pytest.mark.nightly("a whole run on real brokers; by day stories of programs")
@pytest.mark.parametrize(
    ("does", "bug", "kind", "side"),
    [
        ("prints", "fetch_skips_a_batch", "unprocessed", Side.BROKER),
        ("leaves_out", "", "unprocessed", Side.CLIENT),
        ("prints_twice", "", "processed-twice", Side.CLIENT),
    ],
)
def test_what_a_program_or_a_broker_breaks_is_put_down_to_the_other(
    tmp_path: Path, does: str, bug: str, kind: str, side: Side
) -> None:
    argv = [sys.executable, str(SINK), does]
    of_program = {"argv": argv, "output": "stdout", "promise": "exactly-once", "quiet_s": 0.5}
    text = yaml.safe_dump({**QUIET, "workload": {"name": "command", "rate": RATE, "producers": 2, **of_program}})
    overrides = {"replication.bugs": bug} if bug else {}
    plan = runner.plan(scenario.parse(text), "builtin", seed=1, tap=True, overrides=overrides)
    [found] = check([runner.run(plan, tmp_path).path], engine="reference")
    assert side in sides(found)[kind] <= {side, Side.UNDECIDED}
