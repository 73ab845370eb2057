"""One seed on the whole broker: the cluster, load and faults that it draws, watched by the witness of the bare core.

The draw is that of :mod:`harness.simulation.core`, so that a seed means the same cluster at both depths and ``--set``
the same settings; what is a frame here takes another course than what is a message there, so it is another run. Time 0
is when load and faults begin; before, the cluster is brought up, in calm weather.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from harness.broker.settings import NEVER, Settings
from harness.history.delete_records_log import DeleteRecordsLog
from harness.model import CONTROLLER, NO_LEADER
from harness.simulation.core.budget import Budget
from harness.simulation.core.configuration import MS, PARTITION, Configuration, Setup, drawn_for
from harness.simulation.core.planned_fault import PlannedFault, draw_all
from harness.simulation.core.recording import Recording
from harness.simulation.core.world import SETTLE_MS, Finished
from harness.simulation.run_observers import RunObservers
from harness.simulation.stack.clients import Clients
from harness.simulation.stack.cluster import Request, SimulatedCluster
from harness.simulation.stack.node import Ending, SimulatedNode
from harness.simulation.stack.observed_nodes import (
    ObservedBroker,
    ObservedController,
    ObservedControllerNode,
    ObservedNode,
)
from harness.simulation.stack.planned_faults import Troubles
from harness.simulation.stack.world import START_NS, LinkConditions, World
from harness.simulation.witness import Witness
from harness.wire.keys import ApiKey
from harness.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from harness.simulation.trace import Trace

_BRING_UP_MS = 200
_LOOK_EVERY_MS = 10
_CREATE_TOPICS_VERSION = 5
_SEGMENT_BYTES = (300, 1_500, 1 << 26)
_CHECKPOINT_MS = (20, 200, 60_000)
_BATCH_BYTES = 150
_ALL_BYTES = 1 << 20


class StackSimulation(RunObservers):
    """One run; see the module.

    Args:
        seed: decides everything.
        setup: the protocol, and settings that are not drawn.
        troubles: the faults; None: as drawn.
        configuration: None: as drawn.
        trace: told of every transition; None: nobody listens, which is faster.
        recorded: whether to keep what a real run would leave behind, in ``recording``.

    Attributes:
        clock: the time of the cluster.
        random: for clients.
        producing: whether there is load.
        contents: the values of each batch that was seen, by its checksum and size: every replica writes the same bytes.
    """

    def __init__(
        self,
        seed: int,
        setup: Setup,
        *,
        troubles: Sequence[PlannedFault] | None = None,
        configuration: Configuration | None = None,
        trace: Trace | None = None,
        recorded: bool = False,
    ) -> None:
        self.seed = seed
        self.knobs = setup.knobs
        self.configuration = configuration or drawn_for(seed, setup)
        self.troubles = draw_all(seed, self.configuration) if troubles is None else tuple(troubles)
        self.trace = trace
        if trace is not None:
            trace.now_ns = lambda: self.now_ns
        self.clock = World(seed)
        self.random = random.Random(f"{seed}:clients").random
        self.producing = True
        self.mended = False
        self.contents: dict[tuple[int, int], tuple[int, ...]] = {}
        self._values = 0
        self.orders = DeleteRecordsLog(lambda: self.now_ns)
        self.recording = Recording(self) if recorded else None
        self.witness: Witness = Witness(self)
        self.budget: Budget = Budget(self)
        self.cluster = SimulatedCluster(self.clock, self.configuration.nodes, setup.knobs, self._settings())
        self.controller = ObservedControllerNode(self, self.cluster.nodes[CONTROLLER])
        self.brokers = [ObservedNode(self, node) for node in self.cluster.brokers()]
        self._watch()
        self._troubles = Troubles(self)
        self._clients = Clients(self)

    def _settings(self) -> Settings:
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
        )

    def _watch(self) -> None:
        for node in self.cluster.nodes.values():
            node.is_quiet = True
        self.controller.simulated.build = partial(ObservedController, self)
        self.controller.simulated.begun = partial(self.started, self.controller)
        for broker in self.brokers:
            broker.simulated.build = partial(ObservedBroker, broker)
            broker.simulated.begun = partial(self.started, broker)
            broker.simulated.ended = partial(self._ended, broker)

    # ----------------------------------------------------------------------------------------------------------- time

    @property
    def now_ns(self) -> int:
        """Since load and faults began; negative before."""
        return self.clock.now_ns - START_NS - _BRING_UP_MS * MS

    @property
    def events(self) -> int:
        """How many things have happened."""
        return self.clock.events

    def after(self, delay_ns: int, act: Callable[[], None]) -> None:
        """Do something later, whoever is alive."""
        self.clock.at(self.clock.now_ns + delay_ns, act)

    # ------------------------------------------------------------------------------------------------------------ run

    def run(self) -> Finished:
        """Both phases, and the verdict."""
        self._bring_up()
        for trouble in self.troubles:
            self.after(trouble.at_ns, partial(self._troubles.strike, trouble))
        self._clients.start()
        self.clock.sleep(self.configuration.horizon_ms / 1000)
        self._mend()
        converged = self._settle()
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
            tuple(self._troubles.happened),
            tuple(self.witness.violations),
            converged,
        )

    def _bring_up(self) -> None:
        begun_ns = self.clock.now_ns
        for node in self.cluster.nodes.values():
            self.start(node)
        registered = self._wait_for(lambda: all(broker.broker_epoch >= 0 for broker in self.brokers), _BRING_UP_MS, 1)
        assert registered
        replicas = CreatableReplicaAssignment(0, list(range(self.configuration.nodes)))
        request = CreateTopicsRequest([CreatableTopic(PARTITION.topic, -1, -1, [replicas])])
        answers: list[Any] = []
        caller = self.cluster.call("0", Request(ApiKey.CREATE_TOPICS, _CREATE_TOPICS_VERSION, request), answers.append)
        created = self._wait_for(lambda: bool(answers) and self._at_rest(), _BRING_UP_MS, 1)
        assert created
        assert isinstance(answers[0], CreateTopicsResponse)
        caller.close()
        self.clock.sleep((begun_ns + _BRING_UP_MS * MS - self.clock.now_ns) / 1e9)
        drawn = self.configuration
        shortest_ns = drawn.delay_us * 1_000
        self.clock.weather = LinkConditions(
            (shortest_ns, shortest_ns + drawn.spread_us * 1_000), drawn.loss, drawn.late, drawn.late_factor
        )

    def _mend(self) -> None:
        """End every fault, for good."""
        self.mended = True
        self.producing = False
        self._troubles.heal_all()
        self.clock.weather = LinkConditions(self.clock.weather.delay_ns)
        for broker in self.brokers:
            self.start(broker.simulated)

    def _settle(self) -> bool:
        """Wait for convergence; then write once more, and wait again."""
        if not self._wait_for(self._at_rest):
            return False
        self.producing = True
        last = self._values
        self._clients.send_until(lambda: self.witness.heard_of(last))
        self._wait_for(lambda: self.witness.heard_of(last))
        self.producing = False
        return self.witness.heard_of(last) and self._wait_for(self._at_rest)

    def _wait_for(
        self, holds: Callable[[], bool], timeout_ms: int = SETTLE_MS, look_every_ms: int = _LOOK_EVERY_MS
    ) -> bool:
        return self.clock.sleep_until(holds, timeout_ms / 1000, look_every_ms / 1000)

    def _at_rest(self) -> bool:
        """Whether one leads and everybody follows, in sync, up to the end."""
        partition = self.controller.partition
        if partition is None or partition.leader == NO_LEADER or len(partition.isr) < len(self.brokers):
            return False
        end = self.brokers[partition.leader].disk.end
        for broker in self.brokers:
            replica = broker.replica
            if replica is None or replica.role == "offline" or replica.leader_epoch != partition.leader_epoch:
                return False
            if not broker.disk.end == replica.high_watermark == end or len(replica.isr) != len(self.brokers):
                return False
        return True

    # ----------------------------------------------------------------------------------------------- lives and faults

    def start(self, node: SimulatedNode) -> None:
        """Start a node, unless it lives."""
        if not node.lives:
            node.start()

    def _ended(self, broker: ObservedNode, ending: Ending) -> None:
        """A broker that has ended itself has stopped uncleanly, and is started again in a while."""
        if ending.exit_code is None or ending.asked:
            return
        broker.dirty = True
        life = broker.life
        retry_ns = 2 * self.configuration.session_timeout_ms * MS
        self.after(retry_ns, lambda: self.start(broker.simulated) if broker.life == life else None)
