"""One trial: a seed with or without a bug, and what the checkers make of what it leaves behind."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from checkers.verdicts.memory import decided
from harness.checker import EvidenceTier, Outcome, Verdict
from harness.detection.mixes import SYNTHETIC, core_setup, stack_scenario
from harness.detection.synthetic import told
from harness.detection.withheld import withheld
from harness.exploration.depth import run_of
from harness.history.run_directory import Manifest
from harness.model import STACK
from harness.replication.knobs import Knobs, written
from harness.runner import plan
from harness.runner.archive import Rows
from harness.runner.rehearsal import rehearse
from harness.scenario import Scenario, load

SCENARIO = "scenario"
"""The workload of a cell that plays a schedule; ``faults`` is the scenario, shipped or below this package."""

_OWN_SCENARIOS = Path(__file__).parent / "scenarios"
OWN_SCENARIOS = tuple(sorted(path.stem for path in _OWN_SCENARIOS.glob("*.yaml")))
"""The names of the scenarios below this package."""

_MOST_CPU_S = 10.0
_ALL = (EvidenceTier.BROKERS,)

BROKEN = "broken"
"""The outcome of a trial in which the simulator itself could not go on, for an assertion failed."""


class Cell(NamedTuple):
    """Where a trial takes place."""

    depth: str
    workload: str
    faults: str


class Trial(NamedTuple):
    """What came of one.

    Attributes:
        outcome: of the run, or BROKEN.
        kinds: of the anomalies that nothing excuses, in order.
        sends: how many records were sent; ``faults``: how many faults happened; ``virtual_s``: how long it took.
        cpu_s: how much it cost, its check included.
    """

    outcome: str
    kinds: tuple[str, ...] = ()
    sends: int = 0
    faults: int = 0
    virtual_s: float = 0.0
    cpu_s: float = 0.0

    @property
    def is_detected(self) -> bool:
        """Whether the checkers found something that nothing excuses."""
        return self.outcome == Outcome.VIOLATION

    @property
    def is_sound(self) -> bool:
        """Whether they found nothing wrong, and nothing missing in the evidence."""
        return self.outcome == Outcome.PASS


class Left(NamedTuple):
    """What a run leaves behind."""

    manifest: Manifest
    tables: tuple[Rows, Rows, Rows]
    faults: Rows
    virtual_s: float


def attempt(cell: Cell, seed: int, bug: str, knobs: Mapping[str, str]) -> Trial:
    """Run ``seed`` in ``cell`` with the bug named ``bug``, which ``knobs`` switch on; empty: without any."""
    return attempt_in(_ALL, cell, seed, bug, knobs)[EvidenceTier.BROKERS]


def attempt_in(
    tiers: Sequence[EvidenceTier], cell: Cell, seed: int, bug: str, knobs: Mapping[str, str]
) -> Mapping[EvidenceTier, Trial]:
    """The same, judged by the evidence of each of ``tiers``."""
    begun = time.process_time()
    try:
        with limited(_MOST_CPU_S):
            left = left_behind(cell, seed, bug, knobs)
    except (Exception, Endless):  # the simulator need not survive a broken broker, but a sound one
        if not bug:
            raise
        return dict.fromkeys(tiers, Trial(BROKEN, cpu_s=time.process_time() - begun))
    return {tier: _judged(tier, left, begun) for tier in tiers}


def left_behind(cell: Cell, seed: int, bug: str, knobs: Mapping[str, str]) -> Left:
    """What the run of ``seed`` leaves behind, with a bug or without."""
    return _LEFT.get(cell.depth, _core)(cell, seed, bug, knobs)


def _judged(tier: EvidenceTier, left: Left, begun: float) -> Trial:
    verdict = decided(*withheld(tier, left.manifest, left.tables), left.faults)
    kinds = [one.kind for one in verdict.anomalies if one.verdict is Verdict.VIOLATION]
    return Trial(
        verdict.outcome.value,
        tuple(dict.fromkeys(kinds)),
        verdict.counts["sends"],
        len(left.faults),
        left.virtual_s,
        time.process_time() - begun,
    )


@contextmanager
def limited(cpu_s: float) -> Iterator[None]:
    """Give up what takes more than ``cpu_s`` of the processor: a broken broker may go round in circles.

    Raises:
        Endless: it has taken that much.
    """

    def stop(*_: object) -> None:
        raise Endless

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, cpu_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class Endless(BaseException):
    """A trial takes too much of the processor; no handler of the code under test catches it."""


def _core(cell: Cell, seed: int, _: str, knobs: Mapping[str, str]) -> Left:
    setup = core_setup(cell.workload, cell.faults, knobs)
    world = run_of(seed, setup, recorded=True)
    finished, recording = world.run(), world.recording
    assert recording is not None
    manifest = recording.manifest(setup.generation)
    manifest = replace(manifest, guarantees={**manifest.guarantees, "settles": True, "unclean_election": False})
    tables = (recording.history, recording.timeline, recording.replica_logs)
    return Left(manifest, tables, recording.faults, finished.virtual_ns / 1e9)


def _stack(cell: Cell, seed: int, _: str, knobs: Mapping[str, str]) -> Left:
    overrides = {f"replication.{name}": value for name, value in knobs.items()}
    if cell.workload == SCENARIO:
        scenario = scenario_of(cell.faults)
        overrides = overrides if cell.faults in OWN_SCENARIOS else {**_sound(scenario), **overrides}
    else:
        scenario = stack_scenario(cell.workload, cell.faults)
    made = plan(scenario, "simulated", "4.1", seed, overrides=overrides)
    rehearsal = rehearse(made)
    archive = rehearsal.archive
    timeline = archive.tables.get("timeline", ())
    tables = (archive.history, timeline, archive.tables.get("replica_logs", ()))
    times = [row["time_ns"] for row in archive.history] or [0]
    return Left(rehearsal.manifest, tables, archive.tables.get("faults", ()), (max(times) - min(times)) / 1e9)


def scenario_of(name: str) -> Scenario:
    """The scenario of that name, shipped or below this package."""
    return load(str(_OWN_SCENARIOS / f"{name}.yaml") if name in OWN_SCENARIOS else name)


def _sound(scenario: Scenario) -> Mapping[str, str]:
    """What takes a shipped scenario's own flaws away; never nothing, so that its prediction is not used."""
    newest = Knobs()
    return {"replication.bugs": ""} | {
        f"replication.{name}": written(getattr(newest, name)) for name in scenario.replication
    }


def _synthetic(_: Cell, seed: int, bug: str, __: Mapping[str, str]) -> Left:
    manifest, tables = told(seed, bug)
    return Left(manifest, tables, (), 0.0)


_LEFT = {STACK: _stack, SYNTHETIC: _synthetic}
