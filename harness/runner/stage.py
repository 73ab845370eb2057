"""The stage of a run: the cluster, the load, the nemesis and the history, and what is done with them in turn."""

from __future__ import annotations

from contextlib import ExitStack

import workloads
from harness.clients.librdkafka import close_log, file_log
from harness.clock import SystemClock
from harness.errors import InvalidRun
from harness.history.run_directory import RunDirectory
from harness.runner import settle as settling
from harness.runner.chaos import Chaos
from harness.runner.collect import collect
from harness.runner.journal import Journal
from harness.runner.nemesis import Nemesis
from harness.runner.performance import Performance
from harness.runner.plan import Plan
from harness.runner.reporting import Reporter
from harness.target import Target
from harness.targets.builtin import BuiltinTarget
from harness.workload import Workload
from workloads.surroundings import Surroundings

_FINAL_READ_TIMEOUT_S = 30.0


class Stage:
    """Everything that one run uses; :meth:`clear` leaves nothing of it behind, however far the run came."""

    def __init__(self, plan: Plan, directory: RunDirectory, journal: Journal, report: Reporter) -> None:
        clock = SystemClock()
        self._plan = plan
        self._directory = directory
        self._report = report
        self._recorder = directory.recorder(clock)
        self._log = file_log(directory.broker_logs / "clients.log", directory.path.name)
        self._target: Target = _target(plan, directory, journal)
        self._nemesis = Nemesis(self._target, journal, clock, plan.seed, report)
        self._chaos = Chaos(plan, self._nemesis, clock) if plan.scenario.chaos else None
        self._workload: Workload | None = None
        self._collected = False

    def start_cluster(self) -> None:
        """Start the nodes and create the topics."""
        cluster = self._plan.scenario.cluster
        self._report(f"starting {cluster.brokers} brokers and a controller, generation {self._plan.generation}")
        self._target.start()
        for topic in self._plan.topics:
            self._target.create_topic(topic)

    def start_load(self) -> None:
        """Start the workload's producers and consumers."""
        plan = self._plan
        around = Surroundings(self._target.bootstrap(), plan.partitions, self._recorder, plan.seed, self._log)
        self._workload = workloads.NAMES[plan.scenario.workload.name][0](plan.workload, around)
        self._report(f"starting workload {plan.scenario.workload.name} on {len(plan.partitions)} partitions")
        self._workload.start()

    def do_harm(self) -> None:
        """Perform the schedule, or let chaos loose."""
        assert self._workload is not None
        if self._chaos is not None:
            self._report(f"random faults for {self._plan.duration_s:g} s, seed {self._plan.seed}")
            self._chaos.unleash()
        else:
            Performance(self._plan, self._target, self._workload, self._nemesis, self._report).perform()

    def heal(self) -> None:
        """Heal whatever is still in force."""
        self._nemesis.heal_all()

    def stop_load(self) -> None:
        """Stop producers and tailing consumers; every outstanding answer comes in first."""
        assert self._workload is not None
        self._report("stopping the load")
        self._workload.stop()

    def settle(self) -> None:
        """Wait until the cluster is whole again."""
        self._report("waiting until every replica is in sync and equally far")
        settling.settle(self._target, self._plan.partitions, self._plan.scenario.settle_s)

    def read_everything(self) -> None:
        """Read every partition from the start to its end, and close the history."""
        assert self._workload is not None
        self._report("reading everything from the beginning")
        if not self._workload.final_read(_FINAL_READ_TIMEOUT_S):
            raise InvalidRun(f"the final read did not reach every end within {_FINAL_READ_TIMEOUT_S:g} s.")
        self._recorder.close()

    def stop_cluster(self) -> None:
        """Stop the nodes."""
        self._target.stop()

    def collect(self) -> None:
        """Write what the nodes and the nemesis know into the run directory."""
        if not self._collected:
            collect(self._directory, self._target, self._nemesis)
            self._collected = True

    def clear(self) -> None:
        """Heal, stop and write down whatever has not been; each part is tried whatever becomes of the others."""
        with ExitStack() as last_things_first:
            last_things_first.callback(close_log, self._log)
            last_things_first.callback(self.collect)
            last_things_first.callback(self._target.stop)
            last_things_first.callback(self._recorder.flush)
            if self._workload is not None:
                last_things_first.callback(self._workload.stop)
            last_things_first.callback(self._nemesis.heal_all)


def _target(plan: Plan, directory: RunDirectory, journal: Journal) -> Target:
    match plan.target:
        case BuiltinTarget.name:
            return BuiltinTarget(
                directory.path / "cluster",
                plan.scenario.cluster.brokers,
                plan.knobs,
                plan.settings,
                journal.node_started,
            )
        case unknown:
            raise AssertionError(f"target {unknown!r} was planned")
