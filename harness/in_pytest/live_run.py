"""A run whose load and faults are a test's: the lifecycle of a run, of which the plan is known in the end alone."""

from __future__ import annotations

from dataclasses import replace

from harness.client_ports import ClientContext
from harness.client_tasks.final_reader import FinalReader
from harness.client_tasks.scheduled_client import OrderedClient
from harness.errors import InvalidRun
from harness.fault import Fault
from harness.history.recorder import Recorder
from harness.runner.archive import Archive
from harness.runner.journal import Undo
from harness.runner.nemesis import FaultRecord
from harness.runner.plan import Plan
from harness.runner.reporting import silent
from harness.runner.run_clients import RunClients
from harness.runner.run_environment import RunEnvironment
from harness.runner.run_lifecycle import RunLifecycle
from harness.runner.schedule_log import ScheduleLog
from harness.target import Target, TopicSpec
from harness.workload import Workload


class NoLoad(Workload):
    """No background load: the clients are the test's."""

    def start(self) -> None:
        """See :class:`harness.workload.Workload`."""


class LiveRun(RunLifecycle):
    """Starts the cluster, injects faults one by one, and ends as any run does."""

    def __init__(self, plan: Plan, archive: Archive, environment: RunEnvironment, journal: Undo) -> None:
        super().__init__(plan, archive, replace(environment, clients=self._idle), journal, silent)
        self._load: ClientContext | None = None

    @property
    def target(self) -> Target:
        """The cluster."""
        return self._target

    @property
    def recorder(self) -> Recorder:
        """Of the history."""
        return self._recorder

    def start(self, context: ClientContext) -> None:
        """Start the nodes; ``context`` is that of the run's own clients."""
        self._load = context
        self._target.start()
        self.start_load()

    def create_topic(self, topic: TopicSpec) -> None:
        """Create a topic, and wait until it has leaders and full ISRs."""
        self._target.create_topic(topic)

    def inject(self, name: str, fault: Fault) -> FaultRecord:
        """Inject a fault that is proven to be in effect.

        Raises:
            InvalidRun: no probe saw it in effect; it was healed.
        """
        record = self._nemesis.inject(name, fault)
        if record.proven_ns is None:
            self._nemesis.heal(name)
            raise InvalidRun(f"fault {name} was not proven: {record.proof}.")
        return record

    def mend(self, name: str) -> FaultRecord:
        """Heal a fault."""
        return self._nemesis.heal(name)

    def unproven(self) -> list[str]:
        """One sentence for each fault that was not proven, or not proven healed."""
        return self._nemesis.unproven()

    def end_with(self, plan: Plan) -> None:
        """From now on the run is one of ``plan``, which has all that the test did."""
        self._plan = plan
        self._clients = self._idle(self._recorder)  # whose final read is of all topics now
        self._schedule_log = ScheduleLog(plan.partitions)

    def _idle(self, recorder: Recorder) -> RunClients:
        assert self._load is not None
        return RunClients(NoLoad(self._load), OrderedClient(self._load), FinalReader(self._load))
