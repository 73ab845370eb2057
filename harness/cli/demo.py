"""``seawall demo``: loses acknowledged writes on Kafka 0.10, keeps them on a current generation, and proves both."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.run import RUNS, record
from harness.cli.spark import warm_up
from harness.cli.terminal import progress
from harness.cli.verdicts import exit_code, judge_recorded
from harness.replication.knobs import CURRENT_GENERATION

SEED = 101

ACTS = (
    ("kip-101-double-failover", "0.10", "two clean leader changes, as Kafka 0.10 replicates"),
    ("kip-101-double-failover", CURRENT_GENERATION, "the same again, with leader epochs"),
    ("random-chaos", CURRENT_GENERATION, "kill -9, pauses, partitions, full disks and wrong clocks under load"),
)


def demo(
    context: typer.Context,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where run directories go.")] = RUNS,
) -> int:
    """Lose acknowledged writes on Kafka 0.10, keep them on a current generation, and prove both.

    Ends with 0 exactly when every run was observed to go as predicted.
    """
    from harness.runner import plan
    from harness.scenario import load

    say = progress()
    directories = []
    for number, (scenario, generation, what) in enumerate(ACTS, 1):
        say(f"run {number} of {len(ACTS)}: {scenario} on generation {generation}: {what}")
        if number == len(ACTS):
            warm_up()
        directories.append(record(plan(load(scenario), generation=generation, seed=SEED), out, say))
    say(f"checking {len(directories)} runs in one Spark job")
    judged = judge_recorded(directories, context.obj, say)
    failed = [act for act, one in zip(ACTS, judged, strict=True) if one.verdict.exit_code]
    for scenario, generation, _ in failed[:1]:
        context.obj.replace(*_again(scenario, generation))
    return exit_code(judged)


def _again(scenario: str, generation: str) -> tuple[str, ...]:
    return ("run", scenario, "--generation", generation, "--seed", str(SEED))
