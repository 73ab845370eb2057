"""What the runner writes into ``run.json`` agrees with itself, whatever is run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import harness
from checkers.completeness.guarantees_are_configured import misstated
from harness.errors import UsageError
from harness.replication.knobs import CURRENT_GENERATION, GENERATIONS
from harness.runner.manifest import manifest, now
from harness.runner.plan import plan
from harness.scenario import load

SCENARIOS = sorted(path.stem for path in (Path(harness.__file__).parent / "scenarios").glob("*.yaml"))
OVERRIDES: tuple[dict[str, str], ...] = (
    {},
    {"settings.min.insync.replicas": "1", "workload.acks": "[1, all]", "replication.elections": "isr"},
)

BY_DAY = ("0.10", "2.1", CURRENT_GENERATION)
"""Those that differ most; by night every scenario is planned for each."""
LATE = pytest.mark.nightly("plans for the generations between")


@pytest.mark.parametrize(
    "generations",
    [
        pytest.param(BY_DAY, id="by day"),
        pytest.param([one for one in GENERATIONS if one not in BY_DAY], id="the others", marks=LATE),
    ],
)
@pytest.mark.parametrize("overrides", OVERRIDES, ids=["as it is", "overridden"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_written_about_a_scenario_agrees_with_itself(
    name: str, overrides: dict[str, str], generations: Sequence[str]
) -> None:
    scenario = load(name)
    for generation in generations:
        try:
            planned = plan(scenario, "builtin", generation, 1, overrides=overrides)
        except UsageError:
            continue
        assert misstated(manifest(planned, "r", now())) == [], generation
