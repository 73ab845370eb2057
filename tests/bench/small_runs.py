"""How soon the checker is done with small runs: one after the other in a warmed-up session, and hundreds in one job.

Run it with ``make bench``, on a machine that does nothing else, or ``python tests/bench/small_runs.py [RUNS]``. The
runs are scenarios played by whole brokers in virtual time.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import psutil
import typer

from checkers import check
from checkers.registry import RULES
from harness import runner
from harness.runner.expectation import expectations
from harness.scenario import shipped
from spark_analysis.session import session
from spark_analysis.warmup import warm_up

RUNS = 500
REPEATED = 3
"""How often one small run is checked."""


class Measured(NamedTuple):
    """What something took this process and its children; ``cpu_s`` is user and system time."""

    wall_s: float
    cpu_s: float


def measure(action: Callable[[], object]) -> Measured:
    """Do ``action``."""
    wall, cpu = time.monotonic(), _cpu_s()
    action()
    return Measured(time.monotonic() - wall, _cpu_s() - cpu)


def _cpu_s() -> float:
    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def recorded(number: int, directory: Path) -> list[Path]:
    """So many run directories: every scenario on every generation that it is about, with one seed after the other."""
    cells = [(scenario, generation) for scenario in shipped() for generation in expectations(scenario)]
    plans = (
        runner.plan(scenario, "simulated", generation, seed)
        for seed in range(1 + number // len(cells))
        for scenario, generation in cells
    )
    return [runner.run(plan, directory, lambda _: None).path for plan in islice(plans, number)]


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    typer.echo(f"{'seconds':44}{'wall':>10}{'processor':>11}")
    with tempfile.TemporaryDirectory(prefix="seawall-") as directory:
        runs = recorded(number, Path(directory))
        actions: list[tuple[str, Callable[[], object]]] = [
            ("starting the JVM", session),
            ("warming it up", lambda: warm_up(RULES).join()),
            *[(f"one small run, check {i + 1}", lambda: check(runs[:1])) for i in range(REPEATED)],
            (f"{number} small runs in one job", lambda: check(runs)),
        ]
        for name, action in actions:
            took = measure(action)
            typer.echo(f"{name:44}{took.wall_s:10.1f}{took.cpu_s:11.1f}")


if __name__ == "__main__":
    main()
