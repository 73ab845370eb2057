"""One seed whose load has groups or transactions: it runs beside the plain load, and both verdicts count.

The cluster, the plain load and the faults are those of :class:`StackSimulation`, before the witness. The load is a
workload on a topic of its own, in the phases of every run, and leaves the evidence of a real one; the checkers judge
that, because the witness knows nothing of coordinators. The witness alone judges the partition that it watches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from checkers.verdicts.memory import decided
from harness.checker import Anomaly, Outcome, Verdict
from harness.exploration.loads import DrawnLoad, drawn
from harness.exploration.spelled_setup import settings_of, turned
from harness.history.arrow import write_rows
from harness.history.run_directory import Manifest, RunDirectory
from harness.history.schema import TABLES
from harness.replication.knobs import written
from harness.runner import plan
from harness.runner.plan import Plan
from harness.runner.rehearsal import Rehearsal, Stage, rehearse
from harness.runner.run_environment import RunEnvironment, clients_of
from harness.runner.run_lifecycle import RunLifecycle
from harness.scenario import Scenario
from harness.simulation.core.configuration import PARTITION, Configuration, Setup, drawn_for
from harness.simulation.core.planned import Planned
from harness.simulation.core.recording import Recording
from harness.simulation.finished import Finished
from harness.simulation.stack.stack_simulation import StackSimulation
from harness.simulation.trace import Trace
from harness.simulation.violations import STUCK, Violation
from harness.targets.simulated import KIND, SharedTarget
from harness.validation import validated

CHECKERS = "checkers"
"""Who has found a violation that is none of the witness's invariants."""

INCONCLUSIVE_LOAD = "an inconclusive load"
"""What is said of a seed whose load proves nothing, as where nothing of it was acknowledged."""

Row = Mapping[str, Any]


class LoadedSimulation:
    """One run; see the module. Arguments as of :class:`StackSimulation`.

    Attributes:
        simulation: the cluster, its plain load and its faults.
        rehearsal: the evidence of the load; None before the end.
    """

    def __init__(
        self,
        seed: int,
        setup: Setup,
        *,
        faults: Sequence[Planned] | None = None,
        configuration: Configuration | None = None,
        trace: Trace | None = None,
        recorded: bool = False,
    ) -> None:
        del recorded  # the checkers need the evidence anyway
        found = configuration or drawn_for(seed, setup)
        load = drawn(seed, found.load, found.nodes, setup.knobs)
        beside = {name.replace(".", "_"): value for name, value in load.settings.items()}
        self.simulation = StackSimulation(
            seed, setup, faults=faults, configuration=found, trace=trace, recorded=True, beside=beside
        )
        self.rehearsal: Rehearsal | None = None
        self._trace = trace
        self._plan = _planned(seed, setup, found, load)
        self._finished: Finished | None = None

    @property
    def configuration(self) -> Configuration:
        """What the seed draws."""
        return self.simulation.configuration

    @property
    def recording(self) -> Recording | None:
        """What the plain load would leave behind."""
        return self.simulation.recording

    @property
    def now_ns(self) -> int:
        """Since load and faults began; negative before."""
        return self.simulation.now_ns

    @property
    def events(self) -> int:
        """How many things have happened."""
        return self.simulation.events

    def run(self) -> Finished:
        """Every phase, and both verdicts."""
        stage = Stage(self._environment, self._play)
        rehearsal = rehearse(self._plan, stage=stage)
        self.rehearsal = rehearsal
        if self._finished is None:
            raise AssertionError(f"the run of the load ended before its faults: {rehearsal.manifest.why}")
        found = self._judged()
        if self._trace is not None:
            for violation in found:
                self._trace.violation(violation)
        return self._finished._replace(
            events=self.events, virtual_ns=self.now_ns, violations=(*self._finished.violations, *found)
        )

    def write(self, path: Path) -> RunDirectory:
        """Leave the evidence of the load behind, once it has run, as a real run does."""
        assert self.rehearsal is not None
        manifest, (history, timeline, replica_logs), faults = self._evidence()
        directory = RunDirectory.create(path, manifest)
        for name, rows in (("history", history), ("timeline", timeline), ("replica_logs", replica_logs)):
            write_rows(TABLES[name], path / TABLES[name].path / "part-00000.parquet", list(rows))
        write_rows(TABLES["faults"], path / TABLES["faults"].path, list(faults))
        directory.finish(manifest.state, self.now_ns / 1e9)
        return directory

    # ------------------------------------------------------------------------------------------------------ the phases

    def _environment(self, made: Plan, scratch: Path) -> RunEnvironment:
        target = SharedTarget(scratch, self.simulation.cluster.simulated, self.simulation.bring_up)
        return RunEnvironment(target, target.clock, partial(clients_of, made, target.new_clients))

    def _play(self, lifecycle: RunLifecycle) -> None:
        simulation = self.simulation
        lifecycle.start_cluster()
        lifecycle.start_load()
        simulation.unleash()
        simulation.mend()
        lifecycle.stop_load()
        self._finished = simulation.conclude(converged=simulation.settle())
        lifecycle.settle()
        lifecycle.read_everything()
        lifecycle.read_logs()
        lifecycle.stop_cluster()
        lifecycle.collect()

    # ----------------------------------------------------------------------------------------------------- the verdict

    def _evidence(self) -> tuple[Manifest, tuple[Sequence[Row], Sequence[Row], Sequence[Row]], Sequence[Row]]:
        """The manifest, history, timeline, replica logs and faults, without what only the witness judges."""
        assert self.rehearsal is not None
        assert self.simulation.recording is not None
        manifest, archive = self.rehearsal.manifest, self.rehearsal.archive
        timeline, logs = archive.tables.get("timeline", ()), archive.tables.get("replica_logs", ())
        begun_ns = self.simulation.begun_ns
        faults = [_later({**row, "run": manifest.run}, begun_ns) for row in self.simulation.recording.faults]
        return manifest, (archive.history, _unwitnessed(timeline), _unwitnessed(logs)), faults

    def _judged(self) -> list[Violation]:
        """What the checkers find; a run that proves nothing has been kept from its end by the healed cluster."""
        verdict = decided(*self._evidence())
        found = [self._violation(one.kind, one.verdict, one.why, one) for one in verdict.anomalies]
        if verdict.outcome is Outcome.INVALID:
            found.append(self._violation(STUCK, Verdict.VIOLATION, " ".join(verdict.reasons)))
        if verdict.outcome is Outcome.INCONCLUSIVE:
            found.append(self._violation(INCONCLUSIVE_LOAD, Verdict.INDETERMINATE, " ".join(verdict.reasons)))
        return found

    def _violation(self, kind: str, verdict: Verdict, why: str, found: Anomaly | None = None) -> Violation:
        offset, value = (None, None) if found is None else (found.offset, found.value)
        return Violation(CHECKERS, kind, offset, value, (), self.now_ns, self.events, verdict, why)


def _planned(seed: int, setup: Setup, configuration: Configuration, load: DrawnLoad) -> Plan:
    """The run of the load, as a scenario without faults: those are the simulation's.

    It promises that laggards leave the ISR as soon as they can where a request takes longer than a session.
    """
    slowest_ms = max(configuration.request_timeout_ms, configuration.session_timeout_ms)
    slowest = replace(configuration, session_timeout_ms=slowest_ms)
    document = {
        "id": "simulate",
        "title": "A load beside the one that the witness watches",
        "source": "seawall simulate",
        "cluster": {
            "brokers": configuration.nodes,
            "settings": {**settings_of(slowest, 1), **load.settings},
        },
        "topics": [load.topic],
        "workload": load.workload,
        "schedule": [{"wait_s": configuration.horizon_ms / 1000}],
    }
    switched = {f"replication.{name}": written(value) for name, value in turned(setup).items()}
    scenario = validated(Scenario, document, "")
    return plan(scenario, KIND.name, setup.generation, seed, overrides=switched)


def _unwitnessed(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["topic"] != PARTITION.topic]


def _later(fault: Row, by_ns: int) -> Row:
    times = ("aimed_ns", "injected_ns", "proven_ns", "healed_ns", "heal_proven_ns")
    return {**fault, **{name: fault[name] + by_ns for name in times if fault[name] is not None}}
