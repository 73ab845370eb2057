"""Random chaos on healthy clusters, judged by the reference engine: whatever it finds is to be explained.

Run it with ``make healthy-runs``, or ``python -m tests.bench.healthy_runs --runs 500 --jobs 2``. Seeds are dealt out
over the generations, both minima of the ISR, and what producers ask for. In virtual time every time of the shipped
scenario is a fifth of what it is; on real processes (``--target builtin``) it is the shipped scenario, beside as many
busy loops as ``--busy`` says. Every run that does not pass is listed, with the command that shows it again.
"""

from __future__ import annotations

import shlex
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from itertools import count, islice, product
from multiprocessing import get_context
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated, NamedTuple

import typer

from checkers.verdicts.memory import decided
from harness.checker import Outcome
from harness.replication.knobs import REMEDIES, Knobs, written
from harness.runner import plan
from harness.runner.rehearsal import rehearse
from harness.scenario import load
from harness.signals import die_with_parent
from tests.bench import real_run
from tests.bench.healthy_page import CRASH, Judged, document, machine

GENERATIONS = ("2.1", "2.8", "3.7", "4.1")
MINIMA = (1, 2)
ACKS = ("[all]", "[all, all, 1, 0]")

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "healthy-runs.md"
KEPT = ROOT / "runs" / "healthy"
"""Where real runs go that do not pass."""

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

    target: str
    seed: int
    generation: str
    minimum: int
    overrides: tuple[tuple[str, str], ...]

    def options(self) -> list[str]:
        """Of ``seawall run random-chaos``."""
        sets = [word for key, text in self.overrides for word in ("--set", f"{key}={text}")]
        return ["--target", self.target, "--generation", self.generation, "--seed", str(self.seed), *sets]

    def about(self) -> tuple[int, str, int, Sequence[str]]:
        """What a result says of it."""
        return self.seed, self.generation, self.minimum, self.options()


def cells(target: str, first: int, budget: str) -> Iterator[Cell]:
    """Without end; a seed stands for the same combination in every draw."""
    kinds = list(product(GENERATIONS, MINIMA, ACKS))
    for seed in count(first):
        generation, minimum, acks = kinds[seed % len(kinds)]
        ours = {"settings.min.insync.replicas": str(minimum), "workload.acks": acks, "chaos.budget": budget}
        quick = QUICK if target == "simulated" else {}
        yield Cell(target, seed, generation, minimum, (*(quick | ours).items(),))


def attempt(cell: Cell, duration_s: float) -> Judged:
    """Run and judge it; a run that seawall cannot end is a failure of its own."""
    try:
        return (_virtual if cell.target == "simulated" else _real)(cell, duration_s)
    except Exception as crash:  # noqa: BLE001 - listed like every run that does not pass
        return Judged(*cell.about(), CRASH, (), f"{type(crash).__name__}: {crash}", 0, 0, 0)


def _virtual(cell: Cell, duration_s: float) -> Judged:
    made = plan(
        load("random-chaos"), cell.target, cell.generation, cell.seed,
        duration_s=duration_s, overrides=dict(cell.overrides),
    )  # fmt: skip
    rehearsal = rehearse(made)
    archive = rehearsal.archive
    tables = (archive.history, archive.tables.get("timeline", ()), archive.tables.get("replica_logs", ()))
    verdict = decided(rehearsal.manifest, tables, archive.tables.get("faults", ()))
    found = sorted({(one.verdict.value, one.kind) for one in verdict.anomalies})
    why = "; ".join(filter(None, (*verdict.reasons, rehearsal.manifest.why)))
    counts = verdict.counts
    numbers = counts["faults"], counts["sends"], counts["sends_ok"]
    return Judged(*cell.about(), verdict.outcome.value, found, why, *numbers)


def _real(cell: Cell, duration_s: float) -> Judged:
    KEPT.mkdir(parents=True, exist_ok=True)
    out = Path(mkdtemp(prefix=f"{cell.seed}-", dir=KEPT))
    ended = real_run.run([*cell.options(), "--duration-s", f"{duration_s:g}"], out)
    if ended.verdict is None:
        return Judged(*cell.about(), CRASH, (), f"exit {ended.exit_code}: {ended.last_words}", 0, 0, 0, str(out))
    outcome, counts = ended.verdict["outcome"], ended.verdict["counts"]
    found = sorted({(one["verdict"], one["kind"]) for one in ended.verdict["anomalies"]})
    if outcome == Outcome.PASS:
        shutil.rmtree(out)
    why, kept = "; ".join(ended.verdict["reasons"]), "" if outcome == Outcome.PASS else str(ended.directory)
    return Judged(*cell.about(), outcome, found, why, counts["faults"], counts["sends"], counts["sends_ok"], kept)


def remedies(cell: Cell, duration_s: float) -> list[str]:
    """Under which single knobs, of the newest generation or a remedy, the same seed passes."""
    newest, ours = Knobs(), dict(cell.overrides)
    better = {**{one.name: getattr(newest, one.name) for one in fields(Knobs)}, **REMEDIES}
    tried = {f"replication.{name}": written(value) for name, value in better.items() if name != "bugs"}
    again = [cell._replace(overrides=(*(ours | {name: value}).items(),)) for name, value in tried.items()]
    return [f"{name}={tried[name]}" for name, one in zip(tried, again, strict=True) if _passes(one, duration_s)]


def _passes(cell: Cell, duration_s: float) -> bool:
    return attempt(cell, duration_s).outcome == Outcome.PASS


@contextmanager
def beside(busy: int) -> Iterator[None]:
    """That many processes which compute without end; the kernel ends them, too, when this process dies."""
    loops = [get_context("spawn").Process(target=_compute, daemon=True) for _ in range(busy)]
    try:
        for loop in loops:
            loop.start()
        yield
    finally:
        for loop in loops:
            if loop.pid is not None:
                loop.kill()
                loop.join()


def _compute() -> None:
    die_with_parent()
    while True:
        pass


def main(
    *,
    target: Annotated[str, typer.Option(help="simulated or builtin.")] = "simulated",
    runs: Annotated[int, typer.Option(help="How many.")] = 512,
    first: Annotated[int, typer.Option(help="The first seed.")] = 0,
    jobs: Annotated[int, typer.Option(help="Runs at one time.")] = 2,
    busy: Annotated[int, typer.Option(help="Busy loops beside them.")] = 0,
    budget: Annotated[str, typer.Option(help="Of faults: promised or any.")] = "promised",
    duration_s: Annotated[float, typer.Option(help="How long chaos lasts, in seconds of the target.")] = 6.0,
    explain: Annotated[bool, typer.Option(help="Look for the knobs that prevent each violation.")] = False,
    docs: Annotated[bool, typer.Option(help=f"Write what came of it into {PAGE.name}.")] = False,
) -> None:
    """Run random chaos on healthy clusters, and list what does not pass."""
    begun = time.monotonic()
    done: list[Judged] = []
    again = shlex.join(["python", "-m", "tests.bench.healthy_runs", *sys.argv[1:]])
    beside_it = f", beside {busy} busy loops" if busy else ""
    about = f"`{again}`{beside_it}, on {machine()}."
    with ExitStack() as stack:
        stack.enter_context(beside(busy))
        pool = stack.enter_context(_pool(target, jobs))
        chosen = islice(cells(target, first, budget), runs)
        futures = {pool.submit(attempt, cell, duration_s): cell for cell in chosen}
        for future in as_completed(futures):
            one = future.result()
            done.append(one)
            if one.outcome != Outcome.PASS:
                _tell(one, remedies(futures[future], duration_s) if explain and target == "simulated" else [])
            if docs:
                PAGE.write_text(document(PAGE.read_text() if PAGE.exists() else "", target, done, about))
    _summary(done, time.monotonic() - begun)
    raise typer.Exit(int(any(one.outcome != Outcome.PASS for one in done)))


def _pool(target: str, jobs: int) -> Executor:
    """Virtual time needs a processor of its own; a real run is a process anyway."""
    if target == "simulated":
        return ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_prepare)
    return ThreadPoolExecutor(jobs)


def _prepare() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _tell(one: Judged, better: list[str]) -> None:
    typer.echo(f"{one.outcome}: {one.found}\n  seawall run random-chaos {shlex.join(one.options)}")
    if one.kept:
        typer.echo(f"  {one.kept}")
    if better:
        typer.echo(f"  passes with {' or '.join(better)}")


def _summary(done: list[Judged], wall_s: float) -> None:
    outcomes = Counter(one.outcome for one in done)
    excused = Counter(f"{verdict} {kind}" for one in done for verdict, kind in one.anomalies if verdict != "VIOLATION")
    by_generation = Counter((one.generation, one.outcome) for one in done)
    typer.echo(f"{len(done)} runs in {wall_s:.0f} s: {dict(sorted(outcomes.items()))}")
    typer.echo(f"by generation: { {' '.join(key): number for key, number in sorted(by_generation.items())} }")
    typer.echo(f"excused, in how many runs: {dict(sorted(excused.items()))}")
    typer.echo(f"{sum(one.faults for one in done)} faults, {sum(one.sends for one in done)} sends")


if __name__ == "__main__":
    typer.run(main)
