"""A simulated world: a heap of virtual time, in which one seed decides what happens when.

One event is one thing taken off the heap: a message that arrives, a timer, a fault. Between two events nothing
happens. First comes the safety phase, with load and faults; then everything is mended, and a healthy core must
converge (the liveness phase): every replica in sync, all logs equal, and a last write acknowledged.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from harness.history.delete_records_log import DeleteRecordsLog
from harness.model import NO_LEADER, NodeId
from harness.replication.messages import ReplicaFailed
from harness.simulation.core.broker import Broker
from harness.simulation.core.budget import Budget
from harness.simulation.core.clients import Consumer, Producer
from harness.simulation.core.configuration import MS, Configuration, Setup, drawn_for
from harness.simulation.core.controller_process import Controlling
from harness.simulation.core.network import Held, Link, Network
from harness.simulation.core.planned_fault import PlannedFault, Troublemaker, draw_all
from harness.simulation.core.process import Process
from harness.simulation.core.recording import Recording
from harness.simulation.run_observers import RunObservers
from harness.simulation.violations import Violation
from harness.simulation.witness import Witness

if TYPE_CHECKING:
    from harness.simulation.trace import Trace

SETTLE_MS = 20_000
"""Virtual time in which a healthy core must converge; beyond every timeout and back-off that can be drawn."""

_LOOK_EVERY_MS = 10

_Planned: TypeAlias = tuple[Process | None, int, Callable[[Any], object], Any]
"""Whose it is (None: nobody's), in which of its lives, what is to be done, and with what."""


class Finished(NamedTuple):
    """What came of a run.

    Attributes:
        events: how many things happened.
        happened: the faults that had an effect, each aimed at whom it hit.
        violations: what the witness saw, in the order in which it happened.
    """

    seed: int
    events: int
    virtual_ns: int
    happened: tuple[PlannedFault, ...]
    violations: tuple[Violation, ...]
    converged: bool


class World(RunObservers):
    """One run; see the module.

    Args:
        seed: decides everything.
        setup: the protocol, and settings that are not drawn.
        troubles: the faults; None: as drawn.
        configuration: None: as drawn.
        trace: told of every transition; None: nobody listens, which is faster.
        recorded: whether to keep what a real run would leave behind, in ``recording``.
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
        self.now_ns = 0
        if trace is not None:
            trace.now_ns = lambda: self.now_ns
        self.orders = DeleteRecordsLog(lambda: self.now_ns)
        self.recording = Recording(self) if recorded else None
        self.events = 0
        self.producing = True
        self.mended = False
        self._random = random.Random(f"{seed}:world")
        self.random = self._random.random
        self._times: list[int] = []
        self._planned: dict[int, list[_Planned]] = {}
        self._values = 0
        self.witness = Witness(self)
        self.budget = Budget(self)
        self._people()

    def _people(self) -> None:
        configuration = self.configuration
        nodes = configuration.nodes
        self.troublemaker = Troublemaker(self)
        self.brokers = [Broker(self, NodeId(node)) for node in range(nodes)]
        self.controller = Controlling(self, nodes)
        first = nodes + 1
        acks = configuration.acks
        self.producers = [
            Producer(self, first + number, number, acks[number % len(acks)])
            for number in range(configuration.producers)
        ]
        self.consumer = Consumer(self, first + configuration.producers, "con")
        self.network = Network(first + configuration.producers + 1, first, configuration)
        self._links = self.network.links

    # ----------------------------------------------------------------------------------------------------------- time

    def at(self, time_ns: int, act: Callable[[Any], object], argument: Any) -> None:
        """Do something at a time, whoever is alive."""
        self._plan(time_ns, (None, 0, act, argument))

    def after(self, process: Process, delay_ns: int, act: Callable[[Any], object], argument: Any) -> None:
        """A timer of ``process``: it dies with it, and waits while it is paused."""
        self._plan(self.now_ns + delay_ns, (process, process.life, act, argument))

    def _plan(self, time_ns: int, what: _Planned) -> None:
        """What is to happen at one time happens in the order in which it was planned."""
        if time_ns in self._planned:
            self._planned[time_ns].append(what)
        else:
            self._planned[time_ns] = [what]
            heappush(self._times, time_ns)

    def send(
        self,
        source: int,
        destination: Process,
        life: int,
        arrive: Callable[[Any], object],
        argument: Any,
        *,
        apart: Callable[[], float] | None = None,
    ) -> None:
        """Send a message; it arrives, if at all, in the given life of ``destination``.

        ``apart``: what its delay is drawn from, if not from what all others' are. A cut link does not keep such a one.
        """
        link = self._links[source][destination.index]
        if link.cuts:
            if link.holds and apart is None:
                link.held.append((destination, life, arrive, argument))
            return
        luck = apart or self.random
        delay_ns = link.delay_ns + int(link.spread_ns * luck())
        if link.late:
            chance = luck()
            if chance < link.lost:
                return
            if chance < link.doubled:
                self._plan(self.now_ns + delay_ns * 3, (destination, life, arrive, argument))
            elif chance < link.late:
                delay_ns *= link.late_factor
        if link.slow > 1:
            delay_ns *= link.slow
        self._plan(self.now_ns + delay_ns, (destination, life, arrive, argument))

    def release(self, link: Link, held: Held) -> None:
        """A mended link lets go of what it had kept."""
        self._plan(self.now_ns + link.delay_ns + int(link.spread_ns * self.random()), held)

    def resume(self, process: Process) -> None:
        """A paused process goes on with what has come together."""
        process.paused = False
        waiting, process.waiting = process.waiting, []
        for act, argument in waiting:
            self._plan(self.now_ns, (process, process.life, act, argument))

    def run_until(self, end_ns: int) -> None:
        """Let happen what happens before ``end_ns``."""
        times, planned = self._times, self._planned
        while times and times[0] < end_ns:
            now_ns = heappop(times)
            for process, life, act, argument in planned.pop(now_ns):
                if process is not None:
                    if process.life != life:
                        continue
                    if process.paused:
                        process.waiting.append((act, argument))
                        continue
                self.now_ns = now_ns
                self.events += 1
                act(argument)
        self.now_ns = end_ns

    # ------------------------------------------------------------------------------------------------------------ run

    def run(self) -> Finished:
        """Both phases, and the verdict."""
        self._begin()
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
            tuple(self.troublemaker.happened),
            tuple(self.witness.violations),
            converged,
        )

    def _begin(self) -> None:
        self.controller.start()
        for broker in self.brokers:
            broker.start()
        self.controller.found()
        for trouble in self.troubles:
            self.at(trouble.at_ns, self.troublemaker.strike, trouble)
        first_ns = 3 * self.configuration.delay_us * 1_000
        for producer in self.producers:
            self.after(producer, first_ns + int(self.random() * MS), producer.go_on, None)
        self.after(self.consumer, self.configuration.poll_every_ms * MS, self.consumer.poll, 0)

    def _mend(self) -> None:
        """End every fault, for good."""
        self.mended = True
        self.producing = False
        self.troublemaker.heal_all()
        for link in self.network.all():
            link.lost = link.doubled = link.late = 0.0
        for broker in self.brokers:
            if not broker.alive:
                broker.start()

    def _settle(self) -> bool:
        """Wait for convergence; then write once more, and wait again."""
        if not self._wait_for(self._at_rest):
            return False
        self.producing = True
        last = self._values
        for producer in self.producers[:1]:
            producer.acks = -1
            producer.go_on()
        self._wait_for(lambda: self.witness.heard_of(last))
        self.producing = False
        return self.witness.heard_of(last) and self._wait_for(self._at_rest)

    def _wait_for(self, condition: Callable[[], bool]) -> bool:
        deadline_ns = self.now_ns + SETTLE_MS * MS
        while not condition():
            if self.now_ns >= deadline_ns:
                return False
            self.run_until(self.now_ns + _LOOK_EVERY_MS * MS)
        return True

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

    # ---------------------------------------------------------------------------------------------------------- faults

    def lose_power(self, broker: Broker) -> None:
        """Cut a dead broker's disk back to what was durable."""
        lost = broker.disk.lose_power(self.random)
        broker.lossy = True
        self.witness.power_lost(broker, lost)

    def free_disk(self, broker: Broker) -> None:
        """There is room on a disk again."""
        broker.disk.full = False

    def replica_failed(self, broker: Broker, effect: ReplicaFailed) -> None:
        """A replica has failed: its broker, which has only this one, exits, and is started again in a while."""
        self.witness.failed(broker, effect)
        broker.die()
        broker.dirty = True
        life = broker.life
        if self.recording is not None:
            self.recording.failed(broker, effect)
        retry_ns = 2 * self.configuration.session_timeout_ms * MS
        self.at(self.now_ns + retry_ns, lambda _: broker.start() if broker.life == life else None, None)
