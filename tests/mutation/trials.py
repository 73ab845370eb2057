"""The loads that mutants are run under: seeds in virtual time with overlapping faults, judged by the checkers.

A trial is one seed of one cell in one generation, most of them in the newest. On the bare core and on the whole broker
the cells are those of the detection matrix, in which several faults are in force at a time. A third depth runs a
scenario with random chaos on the simulated target, whose producers number their batches and which has several
partitions. Of five trials one plays a shipped scenario, and one a scenario of the detection matrix, as long as there
are any: their schedules reach what random load does not, such as log directories that fail, operators' elections,
orders to delete records, and brokers that are away for long.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any, NamedTuple

from checkers.verdicts.memory import decided
from harness.checker import Outcome, Verdict
from harness.detection.mixes import core_setup
from harness.detection.trial import OWN_SCENARIOS, SCENARIO, Endless, limited, scenario_of
from harness.exploration.depth import run_of
from harness.history.run_directory import Manifest
from harness.model import CORE, STACK
from harness.replication.knobs import CURRENT_GENERATION, GENERATIONS
from harness.runner import plan
from harness.runner.archive import Rows
from harness.runner.rehearsal import rehearse
from harness.scenario import Scenario, shipped
from harness.validation import validated

CLUSTER = "cluster"
"""The depth of a scenario on the simulated target."""

CRASHED, ENDLESS = "crashed", "endless"
"""The outcomes of a trial in which the mutated code raised, or did not come to an end."""

_MOST_CPU_S = 4.0
_FAULTS_OF = {
    "single": ("all", "control"),
    "batches": ("all", "partition", "deletion"),
    "mixed": ("all", "kill", "power", "blackout", "pause", "control", "deletion"),
}
_SEEDS = {CORE: 3, STACK: 4, CLUSTER: 8}
_OTHER_GENERATIONS = tuple(name for name in reversed(list(GENERATIONS)) if name != CURRENT_GENERATION)
_FAULTS_OF_OTHERS = {"batches": ("all",), "mixed": ("all", "kill", "deletion")}
_GENERATIONS_OF_SCENARIOS = (CURRENT_GENERATION, "2.1", "0.11")
_CHAOS: Mapping[str, Any] = {
    "id": "mutation",
    "title": "Random faults under the load that mutants are run under",
    "source": "docs/mutation.md",
    "description": "See the mutation score.",
    "cluster": {
        "brokers": 3,
        "settings": {
            "min.insync.replicas": 2,
            "broker.session.timeout.ms": 300,
            "broker.heartbeat.interval.ms": 50,
            "replica.lag.time.max.ms": 400,
            "replica.fetch.wait.max.ms": 50,
            "replica.socket.timeout.ms": 300,
            "log.segment.bytes": 2000,
            "replica.high.watermark.checkpoint.interval.ms": 200,
        },
    },
    "topics": [{"name": "ledger", "partitions": 2, "replication_factor": 3}],
    "workload": {
        "name": "unique_sends", "producers": 4, "consumers": 1, "rate": 80, "delivery_timeout_s": 0.8,
        "acks": ["all", "all", 1, "all"], "idempotent": True,
    },
    "replication": {"reelected_leader": "forgets", "straddled_batch": "cut"},
    "duration_s": 3,
    "chaos": {
        "at_once": 3,
        "budget": "promised",
        "interval_s": [0.1, 0.4],
        "for_s": [0.3, 0.9],
        "faults": [
            {"fault": "kill", "node": "leader"},
            {"fault": "kill", "node": "controller", "for_s": [0.1, 0.4]},
            {"fault": "stop", "node": "leader"},
            {"fault": "power_loss", "node": "leader"},
            {"fault": "pause", "node": "leader"},
            {"fault": "partition", "isolate": "leader"},
            {"fault": "partition", "between": ["leader", "follower"], "direction": "in"},
            {"fault": "disk_full", "node": "any", "free_bytes": 700, "must_refuse": True},
            {"fault": "clock", "node": "any", "offset_ms": 3_600_000},
        ],
    },
}  # fmt: skip


class Trial(NamedTuple):
    """One seed of one cell.

    Attributes:
        depth: CORE, STACK, CLUSTER or SCENARIO.
        workload: of the detection matrix; ``faults`` likewise. CLUSTER has one cell, and both are empty; of SCENARIO
            the workload is the scenario's name.
    """

    depth: str
    workload: str
    faults: str
    seed: int
    generation: str = CURRENT_GENERATION


class Result(NamedTuple):
    """What came of a trial.

    Attributes:
        outcome: the run's, CRASHED or ENDLESS.
        kinds: of the anomalies that nothing excuses.
        why: what was raised; empty: nothing.
        digest: of the history, the timeline, the logs and the faults that the trial left; empty: it left none.
    """

    outcome: str
    kinds: tuple[str, ...] = ()
    why: str = ""
    digest: str = ""

    @property
    def is_detected(self) -> bool:
        """Whether the checkers found something that nothing excuses."""
        return self.outcome == Outcome.VIOLATION


class _Left(NamedTuple):
    manifest: Manifest
    tables: tuple[Rows, Rows, Rows]
    faults: Rows

    def digest(self) -> str:
        """Equal for equal evidence."""
        rows = [list(map(dict, table)) for table in (*self.tables, self.faults)]
        return hashlib.sha256(repr(rows).encode()).hexdigest()[:16]


def trials() -> Iterator[Trial]:
    """Every trial, those of all kinds in turn, so that the first few already see every kind of load."""
    random, played, of_matrix = _of_random_load(), _of_scenarios(), _of_matrix()
    for trial in random:
        yield trial
        if trial.seed % 3 == 0:
            yield from chain(islice(played, 1), islice(of_matrix, 1))
    yield from chain(played, of_matrix)


def _of_random_load() -> Iterator[Trial]:
    cells = _cells(_FAULTS_OF)
    for round_ in range(max(_SEEDS.values())):
        for at, (depth, workload, faults) in enumerate(cells):
            if round_ < _SEEDS[depth]:
                yield Trial(depth, workload, faults, 1_000 * at + round_)
        if round_ < _SEEDS[CLUSTER]:
            yield Trial(CLUSTER, "", "", round_)
        for generation in _OTHER_GENERATIONS[round_ : round_ + 1]:
            for at, (depth, workload, faults) in enumerate(_cells(_FAULTS_OF_OTHERS)):
                yield Trial(depth, workload, faults, 1_000 * at + round_, generation)
            yield Trial(CLUSTER, "", "", round_, generation)


def _of_scenarios() -> Iterator[Trial]:
    for generation in _GENERATIONS_OF_SCENARIOS:
        for scenario in shipped():
            yield Trial(SCENARIO, scenario.id, "", 0, generation)


def _of_matrix() -> Iterator[Trial]:
    yield from (Trial(SCENARIO, name, "", 0) for name in OWN_SCENARIOS)


def _cells(faults_of: Mapping[str, Sequence[str]]) -> list[tuple[str, str, str]]:
    return [(depth, workload, faults) for depth in (CORE, STACK) for workload, names in faults_of.items()
            for faults in names]  # fmt: skip


def perform(trial: Trial) -> Result:
    """Run a trial and judge it; what the code under test raises is its result."""
    try:
        with limited(_MOST_CPU_S):
            left = (_of_world if trial.depth in (CORE, STACK) else _of_cluster)(trial)
            verdict = decided(left.manifest, left.tables, left.faults)
    except Endless:
        return Result(ENDLESS)
    except Exception as error:  # noqa: BLE001 - whatever mutated code raises is its result
        return Result(CRASHED, why=f"{type(error).__name__}: {error}"[:200])
    kinds = [one.kind for one in verdict.anomalies if one.verdict is Verdict.VIOLATION]
    return Result(verdict.outcome.value, tuple(dict.fromkeys(kinds)), " ".join(verdict.reasons)[:200], left.digest())


def _of_world(trial: Trial) -> _Left:
    setup = replace(core_setup(trial.workload, trial.faults, {}, trial.generation), depth=trial.depth)
    world = run_of(trial.seed, setup, recorded=True)
    world.run()
    recording = world.recording
    assert recording is not None
    manifest = recording.manifest(setup.generation)
    promises = {"settles": True, "unclean_election": False, "idempotent_producers": False}
    manifest = replace(manifest, guarantees={**manifest.guarantees, **promises})
    return _Left(manifest, (recording.history, recording.timeline, recording.replica_logs), recording.faults)


def _of_cluster(trial: Trial) -> _Left:
    scenario = scenario_of(trial.workload) if trial.depth == SCENARIO else validated(Scenario, dict(_CHAOS), "")
    rehearsal = rehearse(plan(scenario, "simulated", trial.generation, trial.seed))
    tables = rehearsal.archive.tables
    rows = (rehearsal.archive.history, tables.get("timeline", ()), tables.get("replica_logs", ()))
    return _Left(rehearsal.manifest, rows, tables.get("faults", ()))
