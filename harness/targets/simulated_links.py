"""Link faults on the simulated cluster: cut links, and links that are stalled in the connections of now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from harness.broker.ping import Ping
from harness.broker.ports import Connection
from harness.broker.witness import Witness
from harness.errors import EnvironmentFault
from harness.model import CLIENTS, Link, node_id
from harness.simulation.stack.cluster import SimulatedCluster, listener
from harness.simulation.stack.network import SimulatedNetwork, Stream
from harness.simulation.stack.scheduler import VirtualScheduler
from harness.target import Receipt
from harness.targets import stalling
from harness.targets.link_probe import probe_link, try_link
from harness.targets.simulated_nodes import SimulatedNodes

_PING_TIMEOUT_S = 0.15
_OPENING_TIMEOUT_S = 5.0


class SimulatedLinks(SimulatedNodes):
    """Implements the protocols of :mod:`harness.controls` about links.

    Args:
        cluster: the nodes.

    Attributes:
        clock: virtual time; sleeping on it makes it pass.
    """

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster)
        self.clock: VirtualScheduler = cluster.world
        self._cut: set[Link] = set()
        self._witnesses: dict[Link, stalling.Witness] = {}

    def cut(self, links: Sequence[Link]) -> None:
        """See :class:`harness.controls.Links`."""
        self._set_cut(self._cut | set(self._known(links)))

    def mend(self, links: Sequence[Link]) -> None:
        """See :class:`harness.controls.Links`."""
        self._set_cut(self._cut - set(self._known(links)))

    def is_cut(self, link: Link) -> Receipt:
        """See :class:`harness.controls.Links`."""
        holder = self._running(link.source if link.destination == CLIENTS else link.destination)
        held_bytes = partial(holder.network.held_bytes, link)
        return probe_link(link, held_bytes, partial(self._ping, link))

    def carries(self, link: Link) -> Receipt:
        """See :class:`harness.controls.Links`."""
        return try_link(link, lambda: 0, partial(self._ping, link))

    def _ping(self, link: Link, held_bytes: Callable[[], int]) -> int | None:
        return None if self._gets_through(link) else held_bytes()

    def _gets_through(self, link: Link) -> bool:
        """Send a probe over ``link`` on a new connection, and give it a little time to arrive."""
        if link.destination == CLIENTS:
            return self._nudged(link.source)
        network = self.cluster.network() if link.source == CLIENTS else self._running(link.source).network
        answers: list[Mapping[str, Any]] = []
        address = listener(node_id(link.destination))
        Ping(network, self.clock, answers.append).send(address, link.destination, round(_PING_TIMEOUT_S * 1000))
        self.clock.sleep_until(lambda: bool(answers), 2 * _PING_TIMEOUT_S)
        return bool(answers and answers[0]["answered"])

    def _nudged(self, node: str) -> bool:
        """Make ``node`` send a client a frame without a request, as the reverse link may be cut."""
        ear = _Ear()
        self.cluster.network().connect(listener(node_id(node)), node, ear.connected, lambda: None)
        nudge = self._running(node).network.nudge
        self.clock.sleep_until(lambda: ear.stream is not None and nudge(ear.stream), _PING_TIMEOUT_S)
        return self.clock.sleep_until(lambda: ear.heard, _PING_TIMEOUT_S)

    def _set_cut(self, links: set[Link]) -> None:
        self._cut = links
        for node in self.cluster.nodes.values():
            node.cut(tuple(sorted(link for link in links if node.name in link)))

    def _known(self, links: Iterable[Link]) -> Iterable[Link]:
        for link in links:
            for end in link:
                if end != CLIENTS:
                    self._node(end)
            yield link

    # ------------------------------------------------------------------------------------------------ stalls

    def stall(self, links: Sequence[Link]) -> None:
        """See :class:`harness.controls.ConnectionStalls`."""
        for link in sorted(set(self._known(links))):
            if link in self._witnesses:
                self._witnesses.pop(link).close()
            self._witnesses[link] = self._witness(link)
        self._set_stalled(links, stalled=True)

    def resume_links(self, links: Sequence[Link]) -> None:
        """See :class:`harness.controls.ConnectionStalls`."""
        self._set_stalled(list(self._known(links)), stalled=False)

    def is_stalled(self, link: Link) -> Receipt:
        """See :class:`harness.controls.ConnectionStalls`."""
        stalled = partial(self._holder(link).stalled_bytes, link)
        return stalling.probe_stall(link, self._witnesses.get(link), stalled, partial(self._ping, link))

    def has_gone_on(self, link: Link) -> Receipt:
        """See :class:`harness.controls.ConnectionStalls`."""
        return stalling.try_stalled(link, self._witnesses.get(link))

    def _witness(self, link: Link) -> stalling.Witness:
        if link.destination == CLIENTS:
            return _HearingWitness(self, link.source)
        return _AskingWitness(self.clock, self._source(link), link)

    def node_network(self, node: str) -> SimulatedNetwork:
        """The network of a node that runs."""
        return self._running(node).network

    def _source(self, link: Link) -> SimulatedNetwork:
        """The network from which connections are opened whose requests travel on the link."""
        return self.cluster.network() if link.source == CLIENTS else self.node_network(link.source)

    def _holder(self, link: Link) -> SimulatedNetwork:
        """The network that withholds what is stalled on the link."""
        return self._node(link.source if link.destination == CLIENTS else link.destination).network

    def _set_stalled(self, links: Sequence[Link], *, stalled: bool) -> None:
        for link in links:
            self._holder(link).stall([link], stalled=stalled)


class _AskingWitness:
    """A :class:`harness.targets.stalling.Witness` that has sent a request over the link before."""

    def __init__(self, clock: VirtualScheduler, network: SimulatedNetwork, link: Link) -> None:
        self._clock = clock
        self._asked = 1
        self._line = Witness(network, listener(node_id(link.destination)), link.destination)
        self._line.ask()
        if not self._has_answers(_OPENING_TIMEOUT_S):
            raise EnvironmentFault(f"{link} cannot be stalled: no answer.")

    def is_answered(self, within_s: float) -> bool:
        if self._asked == 1:
            self._asked = 2
            self._line.ask()
        return self._has_answers(within_s)

    def close(self) -> None:
        self._line.close()

    def _has_answers(self, within_s: float) -> bool:
        return self._clock.sleep_until(lambda: self._line.answers == self._asked, within_s)


class _HearingWitness:
    """A :class:`harness.targets.stalling.Witness` that a node has sent something before."""

    def __init__(self, links: SimulatedLinks, node: str) -> None:
        self._clock = links.clock
        self._network = links.node_network(node)
        self._nudged = False
        self._ear = _Ear()
        links.cluster.network().connect(listener(node_id(node)), node, self._ear.connected, lambda: None)
        if not self._clock.sleep_until(self._nudge, _OPENING_TIMEOUT_S) or not self._hears(_OPENING_TIMEOUT_S):
            raise EnvironmentFault(f"{node}->{CLIENTS} cannot be stalled: node {node} sends nothing.")

    def is_answered(self, within_s: float) -> bool:
        if not self._nudged:
            self._nudged, self._ear.heard = True, False
            self._nudge()
        return self._hears(within_s)

    def close(self) -> None:
        if self._ear.stream is not None:
            self._ear.stream.close()

    def _nudge(self) -> bool:
        return self._ear.stream is not None and self._network.nudge(self._ear.stream)

    def _hears(self, within_s: float) -> bool:
        return self._clock.sleep_until(lambda: self._ear.heard, within_s)


class _Ear:
    """A client that waits for a frame without having sent a request."""

    def __init__(self) -> None:
        self.stream: Stream | None = None
        self.heard = False

    def connected(self, connection: Connection) -> _Ear:
        assert isinstance(connection, Stream)
        self.stream = connection
        return self

    def on_frame(self, frame: memoryview) -> None:
        self.heard = True

    def on_lost(self) -> None:
        self.stream = None
