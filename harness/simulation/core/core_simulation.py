"""One seed on the bare core: the cluster, load and faults that it draws, in virtual time.

First comes the safety phase, with load and faults; then everything is mended, and a healthy core must converge (the
liveness phase): every replica in sync, all logs equal, and a last write acknowledged.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from harness.history.delete_records_log import DeleteRecordsLog
from harness.model import NodeId
from harness.simulation.core.broker import Broker
from harness.simulation.core.budget import Budget
from harness.simulation.core.clients import ClientEnvironment, Consumer, Producer
from harness.simulation.core.cluster import CoreCluster
from harness.simulation.core.configuration import MS, Configuration, Setup, drawn_for
from harness.simulation.core.controller_process import ControllerProcess
from harness.simulation.core.deletions import Deletions
from harness.simulation.core.fault_injector import FaultInjector, PowerLoss
from harness.simulation.core.network import Network
from harness.simulation.core.planned import Planned, draw_all
from harness.simulation.core.recording import Recording
from harness.simulation.core.scheduler import Scheduler
from harness.simulation.faults_in_force import FaultsInForce
from harness.simulation.finished import Finished
from harness.simulation.load import Load
from harness.simulation.rest import SETTLE_MS, at_rest
from harness.simulation.run_observers import ClientObservers, ControllerObservers, PlannedObservers, ReplicaObservers
from harness.simulation.trace import Trace
from harness.simulation.witness import Witness

_LOOK_EVERY_MS = 10


class CoreSimulation:
    """One run; see the module.

    Args:
        seed: decides everything.
        setup: the protocol, and settings that are not drawn.
        faults: None: as drawn.
        configuration: None: as drawn.
        trace: gets every transition; None: there is none, which is faster.
        recorded: whether to keep what a real run would leave behind, in ``recording``.

    Attributes:
        faults: what may happen; ``in_force``: what did.
        cluster: the brokers and the controller.
        orders: the DeleteRecords that were sent.
        recording: what a real run would leave behind; None: nothing is kept.
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
        self.seed = seed
        self.configuration = configuration or drawn_for(seed, setup)
        self.faults = draw_all(seed, self.configuration) if faults is None else tuple(faults)
        self._scheduler = Scheduler()
        self._random = random.Random(f"{seed}:world").random
        inner = self.configuration.nodes + 1
        ends = inner + self.configuration.producers + 1
        network = Network(ends, inner, self.configuration, self._scheduler, self._random)
        self.cluster = CoreCluster(self.configuration, setup.knobs, self._scheduler, network)
        self.orders = DeleteRecordsLog(lambda: self.now_ns)
        if trace is not None:
            trace.now_ns = lambda: self.now_ns
        self.witness = Witness(self.cluster) if trace is None else Witness(self.cluster, trace.violation)
        self.budget = Budget(self.cluster, self.witness.committed.missing)
        self.recording = Recording(seed, self.cluster, self.orders, self.witness.committed) if recorded else None
        self._load = Load(self.configuration.records_per_send, self._random)
        self._build_cluster(trace)
        self._build_clients(trace)
        self._build_faults(trace)

    def _build_cluster(self, trace: Trace | None) -> None:
        configuration, knobs, scheduler, network = (
            self.cluster.configuration, self.cluster.knobs, self.cluster.scheduler, self.cluster.network,
        )  # fmt: skip
        observers = ReplicaObservers(self.witness, trace, self.recording)
        brokers = [
            Broker(NodeId(node), configuration, knobs, scheduler, network, observers=observers)
            for node in range(configuration.nodes)
        ]
        controller = ControllerProcess(
            brokers, configuration, knobs, scheduler, network,
            observers=ControllerObservers(self.witness, trace, self.recording, self.budget),
            luck=random.Random(f"{self.seed}:metadata").random,
        )  # fmt: skip
        for broker in brokers:
            broker.meet(brokers, controller)
        self.cluster.brokers, self.cluster.controller = brokers, controller

    def _build_clients(self, trace: Trace | None) -> None:
        configuration, cluster = self.configuration, self.cluster
        observers = ClientObservers(self.witness, trace, self.recording)
        environment = ClientEnvironment(
            configuration, cluster.scheduler, cluster.network, self._random, self._load, observers
        )
        first, acks = configuration.nodes + 1, configuration.acks
        self.producers = [
            Producer(environment, cluster.brokers, first + number, number, acks[number % len(acks)])
            for number in range(configuration.producers)
        ]
        self.consumer = Consumer(environment, cluster.brokers, first + configuration.producers)

    def _build_faults(self, trace: Trace | None) -> None:
        scheduler = self._scheduler

        def after(delay_ns: int, act: Callable[[], None]) -> None:
            scheduler.at(scheduler.now_ns + delay_ns, lambda _: act(), None)

        self.in_force = FaultsInForce(lambda: scheduler.now_ns, after, PlannedObservers(trace, self.recording))
        self._injector = FaultInjector(
            self.cluster,
            (*self.producers, self.consumer),
            self.budget,
            Deletions(scheduler, self.orders, self.configuration.send_timeout_ms),
            PowerLoss(self._random, self.witness),
            in_force=self.in_force,
        )

    # ------------------------------------------------------------------------------------------------ what it comes to

    @property
    def brokers(self) -> list[Broker]:
        """By their ids."""
        return self.cluster.brokers

    @property
    def controller(self) -> ControllerProcess:
        """The controller."""
        return self.cluster.controller

    @property
    def now_ns(self) -> int:
        """Since the run began."""
        return self._scheduler.now_ns

    @property
    def events(self) -> int:
        """How many things have happened."""
        return self._scheduler.events

    # ------------------------------------------------------------------------------------------------------------ run

    def run(self) -> Finished:
        """Both phases, and the verdict."""
        self.begin()
        self.run_until(self.configuration.horizon_ms * MS)
        self._mend()
        converged = self._settle()
        self._wait_for(lambda: not self.orders.is_waiting)
        self.witness.finish(converged=converged)
        if self.recording is not None:
            self.recording.finish()
        return Finished(
            self.seed,
            self.events,
            self.now_ns,
            tuple(self.in_force.happened),
            tuple(self.witness.violations),
            converged,
        )

    def begin(self) -> None:
        """Start every process, and plan the faults."""
        scheduler = self._scheduler
        self.controller.start()
        for broker in self.brokers:
            broker.start()
        self.controller.found()
        for fault in self.faults:
            scheduler.at(fault.at_ns, self._injector.strike, fault)
        first_ns = 3 * self.configuration.delay_us * 1_000
        for producer in self.producers:
            scheduler.after(producer, first_ns + int(self._random() * MS), producer.go_on, None)
        scheduler.after(self.consumer, self.configuration.poll_every_ms * MS, self.consumer.poll, 0)

    def run_until(self, end_ns: int) -> None:
        """Let happen what happens before ``end_ns``."""
        self._scheduler.run_until(end_ns)

    def _mend(self) -> None:
        """End every fault, for good."""
        self._load.goes_on = False
        self.in_force.heal_all()
        self.cluster.network.calm()
        for broker in self.brokers:
            if not broker.alive:
                broker.start()

    def _settle(self) -> bool:
        """Wait for convergence; then write once more, and wait again."""
        if not self._wait_for(lambda: at_rest(self.cluster)):
            return False
        self._load.goes_on = True
        last = self._load.next_value
        for producer in self.producers[:1]:
            producer.acks = -1
            producer.go_on()
        self._wait_for(lambda: self.witness.clients.heard_of(last))
        self._load.goes_on = False
        return self.witness.clients.heard_of(last) and self._wait_for(lambda: at_rest(self.cluster))

    def _wait_for(self, condition: Callable[[], bool]) -> bool:
        deadline_ns = self.now_ns + SETTLE_MS * MS
        while not condition():
            if self.now_ns >= deadline_ns:
                return False
            self.run_until(self.now_ns + _LOOK_EVERY_MS * MS)
        return True
