"""What the runner writes into ``run.json`` agrees with itself, whatever is run."""

from __future__ import annotations

from pathlib import Path

import pytest

import harness
from checkers.completeness.guarantees_are_configured import misstated
from harness.errors import UsageError
from harness.replication.knobs import GENERATIONS
from harness.runner.manifest import manifest, now
from harness.runner.plan import plan
from harness.scenario import load

SCENARIOS = sorted(path.stem for path in (Path(harness.__file__).parent / "scenarios").glob("*.yaml"))
OVERRIDES: tuple[dict[str, str], ...] = (
    {},
    {"settings.min.insync.replicas": "1", "workload.acks": "[1, all]", "replication.elections": "isr"},
)


@pytest.mark.parametrize("overrides", OVERRIDES, ids=["as it is", "overridden"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_written_about_a_scenario_agrees_with_itself(name: str, overrides: dict[str, str]) -> None:
    scenario = load(name)
    for generation in GENERATIONS:
        try:
            planned = plan(scenario, "builtin", generation, 1, overrides=overrides)
        except UsageError:
            continue
        assert misstated(manifest(planned, "r", now())) == [], generation
