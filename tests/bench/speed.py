"""How fast the simulator is, per processor core: events and schedules per second, at both depths.

Run it with ``make bench``, on a machine that does nothing else, or ``python tests/bench/speed.py [seconds]``.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

import typer

from harness.exploration.depth import run_of
from harness.runner import plan
from harness.runner.rehearsal import rehearse
from harness.scenario import load
from harness.simulation.core.configuration import DEPTHS, Configuration, Setup, setup
from harness.simulation.core.planned import Planned

MS = 1_000_000

KIP_101 = Configuration(horizon_ms=300, send_every_ms=10, records_per_send=1, fault_count=0)
"""Three replicas, 0.3 s of virtual time: about as much as the schedules of KIP-101 take."""

KIP_101_FAULTS = (
    Planned(30 * MS, 60 * MS, "kill", 1),
    Planned(120 * MS, 60 * MS, "kill", 0),
    Planned(200 * MS, 50 * MS, "pause", 2),
)


class Measured(NamedTuple):
    """How much was done in how many seconds of processor time."""

    schedules: int
    events: int
    virtual_ns: int
    seconds: float


def measure(run: Callable[[int], tuple[int, int]], seconds: float) -> Measured:
    """Call ``run`` with one seed after the other; it returns events and virtual nanoseconds."""
    run(0)
    gc.collect()
    gc.freeze()
    schedules = events = virtual_ns = 0
    begun = time.process_time()
    for seed in count():
        happened, took_ns = run(seed)
        schedules, events, virtual_ns = schedules + 1, events + happened, virtual_ns + took_ns
        elapsed = time.process_time() - begun
        if elapsed >= seconds:
            return Measured(schedules, events, virtual_ns, elapsed)
    raise AssertionError("count() ends")


def swarm(chosen: Setup) -> Callable[[int], tuple[int, int]]:
    """Seeds as ``seawall simulate`` runs them."""

    def run(seed: int) -> tuple[int, int]:
        finished = run_of(seed, chosen).run()
        return finished.events, finished.virtual_ns

    return run


def kip_101(chosen: Setup) -> Callable[[int], tuple[int, int]]:
    """The same small schedule with another network every time."""

    def run(seed: int) -> tuple[int, int]:
        finished = run_of(seed, chosen, configuration=KIP_101, faults=KIP_101_FAULTS).run()
        return finished.events, finished.virtual_ns

    return run


def stack(name: str, generation: str) -> Callable[[int], tuple[int, int]]:
    """A scenario on the whole broker in virtual time, evidence and all."""
    scenario = load(name)

    def run(seed: int) -> tuple[int, int]:
        rehearsal = rehearse(plan(scenario, "simulated", generation, seed))
        times = [row["time_ns"] for row in rehearsal.archive.history]
        return 0, max(times) - min(times)

    return run


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    chosen, deep = (setup("4.1", {"min.insync.replicas": "2"}, depth) for depth in DEPTHS)
    typer.echo(f"{'per second of one core':44}{'schedules':>10}{'events':>10}{'virtual s':>11}")
    for name, run in (
        ("core, random schedules of all sizes", swarm(chosen)),
        ("core, KIP-101-sized schedules", kip_101(chosen)),
        ("whole broker, random schedules of all sizes", swarm(deep)),
        ("whole broker, KIP-101-sized schedules", kip_101(deep)),
    ):
        found = measure(run, seconds)
        rates = (found.schedules / found.seconds, found.events / found.seconds, found.virtual_ns / 1e9 / found.seconds)
        typer.echo(f"{name:44}{rates[0]:10.0f}{rates[1]:10.0f}{rates[2]:11.1f}")
    found = measure(stack("hw-truncation-then-leader-dies", "0.10"), seconds)
    schedules, virtual_s = found.schedules / found.seconds, found.virtual_ns / 1e9 / found.seconds
    typer.echo(f"{'whole broker, A01 with its evidence':44}{schedules:10.1f}{'':10}{virtual_s:11.1f}")


if __name__ == "__main__":
    main()
