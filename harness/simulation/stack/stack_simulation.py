"""One seed on the whole broker: it draws a cluster, load and faults, and the witness of the bare core watches.

The draw is that of :mod:`harness.simulation.core`, so that a seed means the same cluster at both depths and ``--set``
the same settings; what is a frame here takes another course than what is a message there, so it is another run. Time 0
is when load and faults begin; before, the cluster is brought up, while every frame arrives at once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from harness.broker.settings import NEVER, Settings
from harness.history.delete_records_log import DeleteRecordsLog
from harness.model import Offset
from harness.simulation.core.budget import Budget
from harness.simulation.core.configuration import MS, PARTITION, Configuration, Setup, drawn_for
from harness.simulation.core.planned import Planned, draw_all
from harness.simulation.core.recording import Recording
from harness.simulation.faults_in_force import FaultsInForce
from harness.simulation.finished import Finished
from harness.simulation.load import Load
from harness.simulation.rest import SETTLE_MS, at_rest
from harness.simulation.run_observers import ClientObservers, ControllerObservers, PlannedObservers, ReplicaObservers
from harness.simulation.stack.clients import ClientEnvironment, Clients
from harness.simulation.stack.cluster import Request, SimulatedCluster
from harness.simulation.stack.deletions import Deletions
from harness.simulation.stack.fault_injector import FaultInjector
from harness.simulation.stack.links import LinkConditions
from harness.simulation.stack.node import Ending
from harness.simulation.stack.observed_cluster import BRING_UP_MS, ObservedCluster
from harness.simulation.stack.observed_nodes import (
    BatchContents,
    ObservedBroker,
    ObservedController,
    ObservedControllerNode,
    ObservedNode,
)
from harness.simulation.stack.scheduler import VirtualScheduler
from harness.simulation.trace import Trace
from harness.simulation.witness import Witness
from harness.simulation.witnessed import Broker
from harness.wire.keys import ApiKey
from harness.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

_LOOK_EVERY_MS = 10
_CREATE_TOPICS_VERSION = 5
_SEGMENT_BYTES = (300, 1_500, 1 << 26)
_CHECKPOINT_MS = (20, 200, 60_000)
_BATCH_BYTES = 150
_ALL_BYTES = 1 << 20


class StackSimulation:
    """One run; see the module. Other arguments as of :class:`harness.simulation.core.core_simulation.CoreSimulation`.

    Args:
        beside: the settings of brokers for a load that the caller runs beside, in the phases that :meth:`run` goes
            through; the nodes then write their timelines, of all other partitions. None: there is none.

    Attributes:
        faults: what may happen; ``in_force``: what did.
        cluster: the brokers and the controller, as the witness sees them.
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
        beside: Mapping[str, Any] | None = None,
    ) -> None:
        self.seed = seed
        self.configuration = configuration or drawn_for(seed, setup)
        self.faults = draw_all(seed, self.configuration) if faults is None else tuple(faults)
        self._clock = VirtualScheduler(seed)
        simulated = SimulatedCluster(self._clock, self.configuration.nodes, setup.knobs, self._settings(beside or {}))
        self.cluster = ObservedCluster(self.configuration, setup.knobs, simulated)
        for node in simulated.nodes.values():
            node.is_quiet = beside is None
            node.leaves_out = PARTITION
        self.orders = DeleteRecordsLog(lambda: self.now_ns)
        if trace is not None:
            trace.now_ns = lambda: self.now_ns
        self.witness = Witness(self.cluster) if trace is None else Witness(self.cluster, trace.violation)
        self.budget = Budget(self.cluster, self._missing)
        self.recording = Recording(seed, self.cluster, self.orders, self.witness.committed) if recorded else None
        self._observe(trace)
        drawn = random.Random(f"{seed}:clients").random
        self._load = Load(self.configuration.records_per_send, drawn)
        observers = ClientObservers(self.witness, trace, self.recording)
        self._clients = Clients(ClientEnvironment(self.configuration, simulated, drawn, self._load, observers))
        self.in_force = FaultsInForce(lambda: self.now_ns, self._after, PlannedObservers(trace, self.recording))
        self._injector = FaultInjector(self.cluster, self.budget, Deletions(self.cluster, self.orders), self.in_force)

    def _missing(self, broker: Broker) -> Offset | None:
        """The first committed offset that its log lacks; 0 where it is not in every ISR; None: it lacks nothing."""
        lacking = self.witness.committed.missing(broker)
        return 0 if lacking is None and self.controller.lacks(broker.node) else lacking

    def _settings(self, beside: Mapping[str, Any]) -> Settings:
        chance = random.Random(f"{self.seed}:stack")
        drawn = self.configuration
        return Settings(
            min_insync_replicas=drawn.min_insync_replicas,
            default_replication_factor=drawn.nodes,
            unclean_leader_election_enable=drawn.unclean_leader_election_enable,
            replica_lag_time_max_ms=drawn.replica_lag_time_max_ms,
            replica_fetch_wait_max_ms=drawn.replica_fetch_wait_max_ms,
            replica_fetch_max_bytes=min(drawn.fetch_batches * _BATCH_BYTES, _ALL_BYTES),
            replica_fetch_backoff_ms=drawn.replica_fetch_backoff_ms,
            replica_socket_timeout_ms=drawn.request_timeout_ms,
            replica_high_watermark_checkpoint_interval_ms=drawn.checkpoint_ms,
            broker_session_timeout_ms=drawn.session_timeout_ms,
            broker_heartbeat_interval_ms=drawn.heartbeat_ms,
            log_segment_bytes=chance.choice(_SEGMENT_BYTES),
            log_flush_interval_messages=drawn.flush_messages or NEVER,
            log_flush_interval_ms=drawn.flush_ms or NEVER,
            log_flush_offset_checkpoint_interval_ms=chance.choice(_CHECKPOINT_MS),
            log_flush_start_offset_checkpoint_interval_ms=chance.choice(_CHECKPOINT_MS),
            **beside,
        )

    def _observe(self, trace: Trace | None) -> None:
        cluster, contents = self.cluster, BatchContents()
        of_controller = ControllerObservers(self.witness, trace, self.recording, self.budget)
        of_brokers = ReplicaObservers(self.witness, trace, self.recording)
        controller = cluster.controller
        controller.simulated.build = partial(ObservedController, controller, of_controller)
        controller.simulated.begun = partial(of_controller.started, controller)
        for simulated in cluster.simulated.brokers():
            broker = ObservedNode(simulated, cluster.knobs, of_brokers, contents)
            simulated.build = partial(ObservedBroker, broker)
            simulated.begun = partial(of_brokers.started, broker)
            simulated.ended = partial(self._ended, broker)
            cluster.brokers.append(broker)

    # ------------------------------------------------------------------------------------------------ what it comes to

    @property
    def brokers(self) -> list[ObservedNode]:
        """By their ids."""
        return self.cluster.brokers

    @property
    def controller(self) -> ObservedControllerNode:
        """The controller."""
        return self.cluster.controller

    @property
    def now_ns(self) -> int:
        """Since load and faults began; negative before."""
        return self.cluster.now_ns

    @property
    def begun_ns(self) -> int:
        """When load and faults begin, on the monotonic clock of virtual time."""
        return self._clock.now_ns - self.now_ns

    @property
    def events(self) -> int:
        """How many things have happened."""
        return self._clock.events

    def _after(self, delay_ns: int, act: Callable[[], None]) -> None:
        """Do something later; no crash prevents it."""
        self._clock.at(self._clock.now_ns + delay_ns, act)

    # ------------------------------------------------------------------------------------------------------------ run

    def run(self) -> Finished:
        """Both phases, and the verdict."""
        self.bring_up()
        self.unleash()
        self.mend()
        return self.conclude(converged=self.settle())

    def conclude(self, *, converged: bool) -> Finished:
        """The verdict of the witness, once everything is over; ``converged``: what :meth:`settle` says."""
        self._wait_for(lambda: not self.orders.is_waiting)
        self._clients.check()
        for broker in self.brokers:
            broker.check_disk()
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

    def bring_up(self) -> None:
        """Start the nodes, and create the partition that the witness watches, while every frame arrives at once."""
        for node in self.cluster.simulated.nodes.values():
            node.start_again()
        registered = self._wait_for(lambda: all(broker.broker_epoch >= 0 for broker in self.brokers), BRING_UP_MS, 1)
        assert registered
        replicas = CreatableReplicaAssignment(0, list(range(self.configuration.nodes)))
        request = CreateTopicsRequest([CreatableTopic(PARTITION.topic, -1, -1, [replicas])])
        answers: list[Any] = []
        caller = self.cluster.simulated.call(
            "0", Request(ApiKey.CREATE_TOPICS, _CREATE_TOPICS_VERSION, request), answers.append
        )
        created = self._wait_for(lambda: bool(answers) and at_rest(self.cluster), BRING_UP_MS, 1)
        assert created
        assert isinstance(answers[0], CreateTopicsResponse)
        caller.close()

    def unleash(self) -> None:
        """Load and faults, as long as they last; not before their time has come."""
        self._clock.sleep(max(0, -self.now_ns) / 1e9)
        drawn = self.configuration
        shortest_ns = drawn.delay_us * 1_000
        self._clock.links.conditions = LinkConditions(
            (shortest_ns, shortest_ns + drawn.spread_us * 1_000), drawn.loss, drawn.late, drawn.late_factor
        )
        for fault in self.faults:
            self._after(fault.at_ns, partial(self._injector.strike, fault))
        self._clients.start()
        self._clock.sleep(drawn.horizon_ms / 1000)

    def mend(self) -> None:
        """End every fault, for good."""
        self._load.goes_on = False
        self.in_force.heal_all()
        links = self._clock.links
        links.conditions = LinkConditions(links.conditions.delay_ns)
        for broker in self.brokers:
            broker.simulated.start_again()

    def settle(self) -> bool:
        """Wait for convergence; then write once more, and wait again."""
        if not self._wait_for(lambda: at_rest(self.cluster)):
            return False
        self._load.goes_on = True
        last = self._load.next_value
        self._clients.send_until(lambda: self.witness.clients.heard_of(last))
        self._wait_for(lambda: self.witness.clients.heard_of(last))
        self._load.goes_on = False
        return self.witness.clients.heard_of(last) and self._wait_for(lambda: at_rest(self.cluster))

    def _wait_for(
        self, holds: Callable[[], bool], timeout_ms: int = SETTLE_MS, look_every_ms: int = _LOOK_EVERY_MS
    ) -> bool:
        return self._clock.sleep_until(holds, timeout_ms / 1000, look_every_ms / 1000)

    def _ended(self, broker: ObservedNode, ending: Ending) -> None:
        """A broker that has ended itself has stopped uncleanly, and is started again in a while."""
        if ending.exit_code is None or ending.asked:
            return
        broker.dirty = True
        life = broker.life
        retry_ns = 2 * self.configuration.session_timeout_ms * MS
        self._after(retry_ns, lambda: broker.simulated.start_again() if broker.life == life else None)
