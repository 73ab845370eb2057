"""How many seeds, and how many seconds of one processor core, random exploration takes to find each known flaw.

Nobody tells it the schedule. What is given is the protocol generation, what its users would configure, and which kinds
of faults may come up; a seed counts when it breaks a promise, and does not once the one rule that mends the flaw is
turned on. Run it with ``make bench``, or ``python tests/bench/flaws.py [seeds] [core|stack]``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import typer

from harness.exploration.explore import run_seed
from harness.model import CORE
from harness.replication.knobs import Knobs
from harness.simulation.core.configuration import Setup, setup

LIMIT = 20_000
SAFE = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
PROCESSES_ONLY = {
    "faults": "kill:2,stop,pause:2,partition:2,partition/between,clock,kill/controller,pause/controller",
    "disturbances": "slow_links,elect",
}
NO_RESTARTS = {
    "faults": "pause:3,partition:3,partition/between,clock,pause/controller", "disturbances": "slow_links,elect"
}  # fmt: skip


class Flaw(NamedTuple):
    """A known flaw, where to look for it, and the rule that mends it."""

    name: str
    generation: str
    settings: Mapping[str, str]
    mended_by: str
    kinds: tuple[str, ...]


FLAWS = (
    Flaw("A01 loss, with restarts", "0.10", SAFE | PROCESSES_ONLY | {"checkpoint.ms": "5000"}, "truncation",
         ("lost-write",)),
    Flaw("A02 loss, no node restarts", "0.10", SAFE | NO_RESTARTS, "truncation", ("lost-write",)),
    Flaw("A06 divergence, unclean elections", "0.11",
         {"min.insync.replicas": "1", "unclean.leader.election.enable": "true",
          "faults": "kill:3,stop:2,partition"}, "lookup_below_first", ("replica-divergence", "stuck")),
    Flaw("A08 fast fail-over and back", "0.11",
         SAFE | {"faults": "partition,pause", "disturbances": "elect:6,slow_links", "acks": "all,1"},
         "truncation", ("replica-divergence", "stuck")),
    Flaw("A11 zombie follower", "2.0.1",
         SAFE | {"faults": "partition:3,pause", "disturbances": "elect:3,slow_links", "acks": "all,1"},
         "fetch_fencing", ("replica-divergence",)),
    Flaw("A13 diverging fetch is progress", "2.8",
         SAFE | PROCESSES_ONLY | {"replication.diverging_fetch_is_progress": "true"},
         "diverging_fetch_is_progress", ("lost-write", "hw-regression")),
    Flaw("A14 stale truncation", "2.8",
         SAFE | PROCESSES_ONLY | {"replication.stale_truncation_applied": "true"},
         "stale_truncation_applied", ("lost-write", "hw-regression")),
    Flaw("B05 last replica standing", "3.7",
         SAFE | {"faults": "power_loss:3,kill,partition,pause", "flush.messages": "0", "flush.ms": "0"},
         "elections", ("lost-write",)),
    Flaw("B08 join at a stale watermark", "2.0.0",
         SAFE | {"faults": "kill:3,stop,pause:2,partition:2", "replication.factor": "4"}, "isr_join", ("lost-write",)),
)  # fmt: skip


def mended(flaw: Flaw, setup_: Setup) -> Setup:
    """The same with the one rule as the newest protocol has it."""
    return replace(setup_, knobs=replace(setup_.knobs, **{flaw.mended_by: getattr(Knobs(), flaw.mended_by)}))


def search(flaw: Flaw, limit: int, depth: str) -> tuple[int | None, int, float, str]:
    """The first seed that shows the flaw, how many were tried, the seconds, and what it showed."""
    chosen = setup(flaw.generation, flaw.settings, depth)
    healthy = mended(flaw, chosen)
    begun = time.process_time()
    for seed in range(limit):
        found = run_seed(seed, chosen).violation
        if found is None or found.kind not in flaw.kinds:
            continue
        again = run_seed(seed, healthy).violation
        if again is None:
            return seed, seed + 1, time.process_time() - begun, f"{found.invariant} {found.kind}"
    return None, limit, time.process_time() - begun, "nothing"


def main() -> None:
    limit = int(sys.argv[1]) if len(sys.argv) > 1 else LIMIT
    depth = sys.argv[2] if len(sys.argv) > 2 else CORE
    typer.echo(f"{'flaw':36}{'generation':12}{'first seed':>11}{'seconds':>9}  shown as")
    for flaw in FLAWS:
        seed, _, seconds, shown = search(flaw, limit, depth)
        typer.echo(f"{flaw.name:36}{flaw.generation:12}{seed if seed is not None else '-':>11}{seconds:9.1f}  {shown}")


if __name__ == "__main__":
    main()
