"""``seawall simulate``: explores many seeds in virtual time and prints what they found."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from harness.cli.run import overrides
from harness.cli.terminal import progress, stdout, tell
from harness.errors import ExitCode, Interrupted, UsageError
from harness.replication.knobs import CURRENT_GENERATION, GENERATIONS
from harness.scenario import checked_seed

if TYPE_CHECKING:
    from harness.cli.reproduction import Reproduction
    from harness.exploration.explore import Explored, Tally
    from harness.simulation.core.configuration import Setup

Generation = Annotated[str, typer.Option(metavar="G", help=f"Replication protocol: {', '.join(GENERATIONS)}.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Pin a setting; may be given several times.")
]
Depth = Annotated[
    str, typer.Option(metavar="core|stack", help="What is driven: the replication core alone, or the whole broker.")
]
DEFAULT_DEPTH = "core"
_SEEDS = 1_000
_NEWS_S = 10.0


def simulate(
    context: typer.Context,
    seeds: Annotated[int | None, typer.Option(metavar="N", help=f"How many (default {_SEEDS}).", min=1)] = None,
    minutes: Annotated[float | None, typer.Option(metavar="M", help="How long, instead of how many.", min=0.01)] = None,
    generation: Generation = CURRENT_GENERATION,
    depth: Depth = DEFAULT_DEPTH,
    jobs: Annotated[int | None, typer.Option(metavar="J", help="Processes (default: one per core).", min=1)] = None,
    set_: Settings = None,
    first_seed: Annotated[int, typer.Option(metavar="S", help="The first seed.", min=0)] = 0,
) -> int:
    """Explore random schedules of faults in virtual time: each seed draws its own cluster, load and faults.

    Exit code 1 when a seed breaks a promise that its configuration makes. Keys of --set: replication.truncation=hw,
    min.insync.replicas=2, replication.factor=3, unclean.leader.election.enable=false,
    faults=kill,partition:3,pause/controller, disturbances=elect, ...
    """
    from harness.exploration.explore import Tally, explore, numbers
    from harness.simulation.core.configuration import setup

    if seeds is not None and minutes is not None:
        raise UsageError("--seeds and --minutes exclude each other.")
    checked_seed(first_seed)
    chosen = setup(generation, overrides(set_ or ()), depth)
    tally = Tally()
    wanted = None if minutes is not None else seeds or _SEEDS
    until_s = None if minutes is None else minutes * 60
    try:
        listener = _Listener(tally)
        source = numbers(first_seed, wanted)
        tally.seconds = explore(chosen, source, jobs or os.cpu_count() or 1, listener.seen, until_s=until_s)
    except KeyboardInterrupt:
        _show(tally, chosen)
        raise Interrupted(f"interrupted after {tally.seeds} seeds, {tally.flawed} of them with a violation.") from None
    _show(tally, chosen)
    if tally.first_flawed is None:
        return ExitCode.PASS
    _lead_to(context.obj, tally.first_flawed, chosen, set_ or [])
    return ExitCode.VIOLATION


class _Listener:
    """Counts seeds and prints the progress."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._say = progress()
        self._due = 0.0

    def seen(self, one: Explored) -> None:
        from time import monotonic

        self._tally.add(one)
        if not self._due:
            self._due = monotonic() + _NEWS_S
        elif monotonic() >= self._due:
            self._due += _NEWS_S
            self._say(f"{self._tally.seeds} seeds, {self._tally.flawed} with a violation")


def _show(tally: Tally, chosen: Setup) -> None:
    """Print the violations by kind with their first seeds, and how much was run."""
    console = stdout()
    if tally.found:
        table = Table("invariant", "violation", "seeds", "first seed")
        for (invariant, kind), (number, first, _) in sorted(tally.found.items(), key=lambda item: -item[1][0]):
            table.add_row(invariant, kind, str(number), str(first))
        console.print(table)
        for _, first, violation in sorted(tally.found.values(), key=lambda found: found[1]):
            _explain(first, str(violation), _remedies(first, chosen, tally, violation.kind))
    for kind, number in sorted((tally.excused or {}).items()):
        tell(f"{number} seeds with {kind}, which proves nothing or is permitted by the configuration")
    speed = f", {tally.seeds / tally.seconds:.0f} seeds/s, {tally.events / tally.seconds:.0f} events/s" if (
        tally.seconds) else ""  # fmt: skip
    console.print(
        f"{tally.seeds} seeds, {tally.events} events, {tally.virtual_ns / 1e9:.0f} virtual seconds{speed}: "
        f"{tally.flawed} with a violation",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


def _explain(seed: int, violation: str, remedies: list[str]) -> None:
    console = stdout()
    console.print(escape(f"seed {seed}: {violation}"), highlight=False, soft_wrap=True)
    if remedies:
        console.print(escape(f"  does not happen with {' or '.join(remedies)}"), highlight=False, soft_wrap=True)


def _remedies(seed: int, chosen: Setup, tally: Tally, kind: str) -> list[str]:
    from harness.exploration.explore import remedies

    violation = next(v for _, first, v in (tally.found or {}).values() if first == seed and v.kind == kind)
    return remedies(seed, chosen, violation)


def _lead_to(reproduction: Reproduction, seed: int, chosen: Setup, settings: list[str]) -> None:
    """Reproduce an exploration by its first flawed seed."""
    pinned = [word for setting in settings for word in ("--set", setting)]
    depth = [] if chosen.depth == DEFAULT_DEPTH else ["--depth", chosen.depth]
    reproduction.replace("replay", str(seed), "--generation", chosen.generation, *depth, *pinned)
