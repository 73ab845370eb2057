"""A node of the simulated cluster: an unmodified broker or controller, its clocks, disk and crashes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from harness.broker.broker import Broker
from harness.broker.controller_node import ControllerNode
from harness.broker.ledger import Cut
from harness.broker.node import Node
from harness.broker.node_environment import NodeEnvironment, Supervisor
from harness.broker.ports import Network
from harness.broker.session import raise_again
from harness.broker.settings import NodeConfig, NodeFaults
from harness.broker.timeline import ReplicaState, Timeline
from harness.broker.wire_tap import TappedNetwork, WireTap
from harness.model import CONTROLLER_ID, Link, NodeId, TopicPartition, node_name
from harness.simulation.stack.clock import NodeClock
from harness.simulation.stack.disk import MemoryDisk
from harness.simulation.stack.network import SimulatedNetwork
from harness.simulation.stack.scheduler import VirtualScheduler

_LAST_WORDS_S = 0.05


class Ending(NamedTuple):
    """How a life ended.

    Attributes:
        exit_code: of a node that ended by itself or was asked to; None: it was killed.
        asked: whether it was asked to.
    """

    exit_code: int | None = None
    asked: bool = False


class OwnEnd(NamedTuple):
    """When a life ended that had not been ordered to, with which exit code, and the lines of its log."""

    incarnation: int
    time_ns: int
    exit_code: int
    said: Sequence[str]


class SimulatedNode:
    """One node through all its lives.

    Args:
        config: of its first life; later ones differ in the number of the incarnation alone.
        world: the time in which it lives.

    Attributes:
        disk: outlives it.
        clock: its wall clock may be off, in its next lives too.
        rows: the lines of its timeline.
        is_tapped: whether it has a wire tap.
        wire: the lines of that.
        said: the lines of its log.
        incarnation: how often it had been started before; -1 before the first start.
        ending: how its last life ended; None while it lives.
        endings: how each of its lives ended that had not been ordered to.
        dropped: what its last power loss took; None when it has been started since, or never lost power.
        build: makes the program of each life.
        is_quiet: whether it writes neither timeline nor log, because the witness needs neither.
        leaves_out: the partition of which its timeline says nothing, because another witness has it; None: of each it
            says something.
        begun: called when a life begins; ``ended``: called with how it has ended.
    """

    def __init__(self, config: NodeConfig, world: VirtualScheduler) -> None:
        self.node: NodeId = config.node_id
        self.name = node_name(config.node_id)
        self.disk = MemoryDisk()
        self.clock = NodeClock(world)
        self.rows: list[bytes] = []
        self.is_tapped = False
        self.wire: list[bytes] = []
        self.said: list[str] = []
        self.incarnation = -1
        self.ending: Ending | None = None
        self.endings: list[OwnEnd] = []
        self.dropped: Sequence[Cut] | None = None
        self.build: Callable[[NodeConfig, NodeEnvironment], Node] = (
            ControllerNode if self.node == CONTROLLER_ID else Broker
        )
        self.is_quiet = False
        self.leaves_out: TopicPartition | None = None
        self.begun: Callable[[], None] = lambda: None
        self.ended: Callable[[Ending], None] = lambda _: None
        self._config = config
        self._world = world
        self._cut: tuple[Link, ...] = ()
        self._program: Node | None = None
        self._network: SimulatedNetwork | None = None
        self._may_end = False
        self._said_before = 0

    # ------------------------------------------------------------------------------------ what it is

    @property
    def lives(self) -> bool:
        """Whether its process exists."""
        return self._network is not None and self._network.alive

    @property
    def runs(self) -> bool:
        """Whether its process exists and is not stopped by a signal."""
        return self._network is not None and self._network.runs

    @property
    def network(self) -> SimulatedNetwork:
        """Its network, of this life or the last one."""
        assert self._network is not None, f"node {self.name} was never started"
        return self._network

    @property
    def program(self) -> Node:
        """The broker or controller of this life or the last one."""
        assert self._program is not None, f"node {self.name} was never started"
        return self._program

    def status(self) -> dict[str, Any]:
        """What the control channel of a node process answers; see :mod:`harness.broker.node`."""
        return {
            "node": self.node,
            "incarnation": self.incarnation,
            "monotonic_ns": self.clock.monotonic_ns(),
            "wall_ms": self.clock.wall_ms(),
            **self.program.status(),
        }

    # ------------------------------------------------------------------------------------ life

    def start(self, faults: NodeFaults | None = None) -> None:
        """Begin a life on what is on the disk; ``faults`` are what the broker itself makes of its birth's."""
        assert not self.lives, f"node {self.name} lives"
        self.incarnation += 1
        self.ending = self.dropped = None
        self._may_end = faults is not None and faults.dies_while_loading
        self._said_before = len(self.said)
        self.begun()
        self._network = network = SimulatedNetwork(self._world, self.name)
        network.cut(self._cut)
        timeline = self._timeline()
        halt = partial(self._halt, network)
        environment = NodeEnvironment(
            self._tapped(network), self.disk, self.clock, timeline, Supervisor(self._say, halt, raise_again)
        )
        config = replace(self._config, incarnation=self.incarnation, faults=faults or NodeFaults())
        self._program = self.build(config, environment)
        timeline.about_node("started")
        self._program.start()

    def start_again(self) -> None:
        """Start it, unless it lives."""
        if not self.lives:
            self.start()

    def kill(self) -> None:
        """SIGKILL; harmless when it is dead."""
        self._end(self.network, Ending())

    def shut_down(self) -> None:
        """SIGTERM: it writes down what a clean stop writes down, and ends."""
        network = self.network
        if network.alive:
            self.program.stop()
            self._end(network, Ending(0, asked=True))

    def freeze(self) -> None:
        """SIGSTOP."""
        self.network.freeze()

    def thaw(self) -> None:
        """SIGCONT."""
        self.network.thaw()

    def lose_power(self) -> Sequence[Cut]:
        """Kill it, unless it is dead already, and drop what had not reached the platter."""
        self.kill()
        self.dropped = self.disk.lose_power()
        return self.dropped

    def cut(self, links: tuple[Link, ...]) -> None:
        """Let no frame pass on exactly these links of this node, in its next lives too."""
        self._cut = links
        if self.lives:
            self.network.cut(links)

    def timeline_rows(self, kind: str) -> list[dict[str, Any]]:
        """The rows of ``kind`` that its last life has written."""
        rows = map(json.loads, self.rows)
        return [row for row in rows if row["kind"] == kind and row["incarnation"] == self.incarnation]

    def operate(self, operation: str, request: dict[str, Any]) -> Mapping[str, Any]:
        """What the node's control channel answers to one of the node's own operations, which all answer at once."""
        answers: list[Mapping[str, Any]] = []
        self.program.operations()[operation](request, answers.append)
        return answers[0]

    # ------------------------------------------------------------------------------------ internals

    def _tapped(self, network: SimulatedNetwork) -> Network:
        if not self.is_tapped:
            return network
        return TappedNetwork(network, WireTap(f"{self.incarnation}-", self.clock.monotonic_ns, self.wire.append))

    def _timeline(self) -> Timeline:
        if self.is_quiet:
            return _Unwritten(self.node, self.incarnation, self.clock, self.rows.append)
        timeline = _Partial(self.node, self.incarnation, self.clock, self.rows.append)
        timeline.left_out = self.leaves_out
        return timeline

    def _say(self, sentence: str) -> None:
        if self.is_quiet:
            return
        seconds, milliseconds = divmod(self.clock.wall_ms(), 1000)
        minutes, second = divmod(seconds, 60)
        stamp = f"{minutes // 60 % 24:02d}:{minutes % 60:02d}:{second:02d}.{milliseconds:03d}"
        self.said.append(f"{stamp} [{self.name}] {sentence}")

    def _halt(self, network: SimulatedNetwork, exit_code: int) -> None:
        """The node ends itself: what was already sent still leaves, but it serves no more requests."""

        def end() -> None:
            if exit_code == 0:
                self.program.stop()
            self._end(network, Ending(exit_code))

        network.call_later(0, end)

    def _end(self, network: SimulatedNetwork, ending: Ending) -> None:
        if network.alive:
            network.die()
            self.ending = ending
            how = "was killed" if ending.exit_code is None else f"stopped with exit code {ending.exit_code}"
            if ending.exit_code is not None and not ending.asked and not self._may_end:
                lines = self.said[self._said_before :]
                self.endings.append(OwnEnd(self.incarnation, self.clock.monotonic_ns(), ending.exit_code, lines))
            self._say(f"The node {how}.")
            self.ended(ending)


class _Partial(Timeline):
    """A timeline that says nothing of one partition."""

    left_out: TopicPartition | None = None

    def about_replica(
        self,
        kind: str,
        partition: TopicPartition,
        state: ReplicaState,
        detail: Mapping[str, object] | None = None,
    ) -> None:
        """See :class:`harness.broker.timeline.Timeline`."""
        if partition != self.left_out:
            super().about_replica(kind, partition, state, detail)


class _Unwritten(Timeline):
    """Drops every row."""

    def about_node(self, kind: str, detail: Mapping[str, object] | None = None) -> None:
        pass

    def about_replica(
        self,
        kind: str,
        partition: TopicPartition,
        state: ReplicaState,
        detail: Mapping[str, object] | None = None,
    ) -> None:
        pass
