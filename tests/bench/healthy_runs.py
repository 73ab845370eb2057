"""Random chaos on healthy clusters in virtual time, judged by the reference engine: what it finds is to be explained.

Run it with ``make healthy-runs``, or ``python tests/bench/healthy_runs.py --runs 500 --jobs 2``. Seeds are dealt out
over the generations, both minima of the ISR, and what producers ask for. Every run that does not pass is listed, with
the command that shows it again, and with the knobs under which the same seed passes.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import fields
from itertools import islice, product
from multiprocessing import get_context
from typing import Annotated, NamedTuple

import typer

from checkers.memory import decided
from harness.checker import Outcome, Verdict
from harness.replication.knobs import REMEDIES, Knobs, written
from harness.runner import plan
from harness.runner.rehearsal import rehearse
from harness.scenario import load

GENERATIONS = ("2.1", "2.8", "3.7", "4.1")
MINIMA = (1, 2)
ACKS = ("[all]", "[all, all, 1, 0]")

QUICK = {
    "settings.broker.session.timeout.ms": "300",
    "settings.broker.heartbeat.interval.ms": "50",
    "settings.replica.lag.time.max.ms": "400",
    "settings.replica.fetch.wait.max.ms": "50",
    "settings.replica.socket.timeout.ms": "300",
    "settings.replica.high.watermark.checkpoint.interval.ms": "200",
    "settings.log.segment.bytes": "20000",
    "topic.partitions": "2",
    "workload.producers": "4",
    "workload.consumers": "1",
    "workload.rate": "100",
    "workload.delivery_timeout_s": "0.6",
    "chaos.interval_s": "[0.02, 0.3]",
    "chaos.for_s": "[0.1, 0.6]",
    "chaos.faults": "["
    "{fault: kill, node: leader}, {fault: kill, node: any}, {fault: stop, node: any}, "
    "{fault: kill, node: controller}, {fault: pause, node: leader}, {fault: pause, node: follower}, "
    "{fault: power_loss, node: leader}, {fault: power_loss, node: any}, {fault: partition, isolate: leader}, "
    "{fault: partition, between: [leader, follower], direction: in}, "
    "{fault: disk_full, node: leader, free_bytes: 2000, must_refuse: true}, "
    "{fault: clock, node: any, offset_ms: 3600000}]",
}
"""The shipped scenario with every time about a fifth of what it is, so that a run shows more."""


class Cell(NamedTuple):
    """Which run."""

    seed: int
    generation: str
    overrides: tuple[tuple[str, str], ...]

    def command(self) -> str:
        """How to show it again."""
        sets = " ".join(f"--set '{key}={text}'" for key, text in self.overrides)
        return f"seawall run random-chaos --target simulated --generation {self.generation} --seed {self.seed} {sets}"


class Judged(NamedTuple):
    """What came of a run: its outcome, the anomalies by verdict and kind, and why it broke off, if it did."""

    cell: Cell
    outcome: str
    anomalies: tuple[tuple[str, str], ...]
    why: str
    faults: int
    sends: int
    cpu_s: float


def cells(first: int, budget: str, *, quick: bool) -> Iterator[Cell]:
    """Without end: a seed for each combination in turn."""
    kinds = list(product(GENERATIONS, MINIMA, ACKS))
    seed = first
    while True:
        for generation, minimum, acks in kinds:
            ours = {"settings.min.insync.replicas": str(minimum), "workload.acks": acks, "chaos.budget": budget}
            yield Cell(seed, generation, (*((QUICK | ours) if quick else ours).items(),))
            seed += 1


def judge(cell: Cell, duration_s: float) -> Judged:
    """Run it, and judge it."""
    begun = time.process_time()
    made = plan(
        load("random-chaos"), "simulated", cell.generation, cell.seed,
        duration_s=duration_s, overrides=dict(cell.overrides),
    )  # fmt: skip
    rehearsal = rehearse(made)
    archive = rehearsal.archive
    tables = (archive.history, archive.tables.get("timeline", ()), archive.tables.get("replica_logs", ()))
    faults = archive.tables.get("faults", ())
    verdict = decided(rehearsal.manifest, tables, faults)
    found = Counter((one.verdict.value, one.kind) for one in verdict.anomalies)
    return Judged(
        cell, verdict.outcome.value, tuple(sorted(found)), "; ".join((*verdict.reasons, rehearsal.manifest.why)),
        len(faults), verdict.counts["sends"], time.process_time() - begun,
    )  # fmt: skip


def attempt(cell: Cell, duration_s: float) -> Judged:
    """Judge it; a run that the harness cannot end is a failure of its own."""
    try:
        return judge(cell, duration_s)
    except Exception as crash:  # noqa: BLE001 - listed like every run that does not pass
        return Judged(cell, "crash", (), f"{type(crash).__name__}: {crash}", 0, 0, 0.0)


def remedies(cell: Cell, duration_s: float) -> list[str]:
    """Under which single knobs, of the newest generation or a remedy, the same seed passes."""
    newest, ours = Knobs(), dict(cell.overrides)
    better = {**{one.name: getattr(newest, one.name) for one in fields(Knobs)}, **REMEDIES}
    tried = {f"replication.{name}": written(value) for name, value in better.items() if name != "bugs"}
    again = [cell._replace(overrides=(*(ours | {name: value}).items(),)) for name, value in tried.items()]
    return [f"{name}={tried[name]}" for name, one in zip(tried, again, strict=True) if _passes(one, duration_s)]


def _passes(cell: Cell, duration_s: float) -> bool:
    return attempt(cell, duration_s).outcome == Outcome.PASS


def main(
    *,
    runs: Annotated[int, typer.Option(help="How many.")] = 500,
    first: Annotated[int, typer.Option(help="The first seed.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 2,
    budget: Annotated[str, typer.Option(help="Of faults: promised or any.")] = "promised",
    duration_s: Annotated[float, typer.Option(help="How long chaos lasts, in virtual seconds.")] = 6.0,
    quick: Annotated[bool, typer.Option(help="A fifth of every time of the shipped scenario.")] = True,
    explain: Annotated[bool, typer.Option(help="Look for the knobs that prevent each violation.")] = False,
) -> None:
    """Run random chaos in virtual time, and list what does not pass."""
    begun = time.monotonic()
    done: list[Judged] = []
    with ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_prepare) as pool:
        chosen = islice(cells(first, budget, quick=quick), runs)
        for future in as_completed([pool.submit(attempt, cell, duration_s) for cell in chosen]):
            one = future.result()
            done.append(one)
            if one.outcome != Outcome.PASS:
                _tell(one, remedies(one.cell, duration_s) if explain else [])
    _summary(done, time.monotonic() - begun)
    raise typer.Exit(int(any(one.outcome != Outcome.PASS for one in done)))


def _prepare() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _tell(one: Judged, better: list[str]) -> None:
    grave = [kind for verdict, kind in one.anomalies if verdict == Verdict.VIOLATION]
    typer.echo(f"{one.outcome}: {', '.join(grave) or one.why}\n  {one.cell.command()}")
    if better:
        typer.echo(f"  passes with {' or '.join(better)}")


def _summary(done: list[Judged], wall_s: float) -> None:
    outcomes = Counter(one.outcome for one in done)
    excused = Counter(f"{verdict} {kind}" for one in done for verdict, kind in one.anomalies if verdict != "VIOLATION")
    by_generation = Counter((one.cell.generation, one.outcome) for one in done)
    typer.echo(f"{len(done)} runs in {wall_s:.0f} s: {dict(sorted(outcomes.items()))}")
    typer.echo(f"by generation: { {' '.join(key): number for key, number in sorted(by_generation.items())} }")
    typer.echo(f"excused, in how many runs: {dict(sorted(excused.items()))}")
    totals = f"{sum(one.faults for one in done)} faults, {sum(one.sends for one in done)} sends"
    typer.echo(f"{totals}, {sum(one.cpu_s for one in done):.0f} s of processor")


if __name__ == "__main__":
    typer.run(main)
