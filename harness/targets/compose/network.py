"""Cuts links between the containers of a project by packet filters in the containers' network namespaces.

Beside every container runs a *sidecar*, which shares its network and may set its iptables; the containers need no
privileges. A cut link drops packets by address at both of its ends, so that it stays cut while either restarts. The
filters count packets that arrive at the discard port, so that a datagram proves one direction without an answer, which
the reverse link might drop.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any, NamedTuple

from docker.models.containers import Container

from harness.errors import EnvironmentFault
from harness.model import Link
from harness.target import Receipt
from harness.targets.compose.containers import asked, is_living, remove, run_in, to_its_end, told_by
from harness.targets.compose.project import TOOLS_IMAGE, Project, image_of

_DISCARD_PORT = 9
_IN, _OUT = "SEAWALL_IN", "SEAWALL_OUT"
_ARRIVAL_TIMEOUT_S = 5.0
_POLL_S = 0.05
_COUNTED = re.compile(r"\[(\d+):\d+\] -A (SEAWALL_\w+) -[sd] ([0-9.]+)/32 (.*)")

_SET = f"""\
if iptables -w -N {_IN} 2>/dev/null; then
    iptables -w -I INPUT -j {_IN} && iptables -w -N {_OUT} && iptables -w -I OUTPUT -j {_OUT} || exit
fi
printf %s "$1" | iptables-restore -w --noflush
"""
_SEND = f'printf . > "/dev/udp/$1/{_DISCARD_PORT}"'
_COUNT = ("iptables-save", "-c", "-t", "filter")

Addresses = Mapping[str, str]
"""Of one container, by the names of its networks."""


class _Counts(NamedTuple):
    """How many packets from one container to another were dropped, by either end, and how many datagrams arrived."""

    dropped: int
    arrived: int


class Network:
    """The network of a project's nodes, all of whose links are whole at first."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._cut: set[Link] = set()
        self._sidecars: dict[str, Container] = {}
        self._addresses: dict[str, Addresses] = {}

    def attach(self, node: str) -> None:
        """Start the sidecars of a node's just started containers, and cut what is to be cut.

        Where links are cut, the containers are paused meanwhile: no packet passes before the rules are set. One that
        has already exited again keeps the sidecar that it had.

        Raises:
            EnvironmentFault: the engine does not do it.
        """
        containers = self._project.containers(node)
        frozen = containers if any(node in link for link in self._cut) else []
        for one in frozen:
            with _unless_it_has_ended(one):
                asked(one.pause)
        stale = []
        try:
            for one in containers:
                with _unless_it_has_ended(one):
                    self._addresses[one.id] = _addresses(one)
                    sidecar, before = self._sidecar(one), self._sidecars.get(one.id)
                    self._sidecars[one.id] = sidecar
                    stale += [before] if before is not None else []
            self._apply(self._project.nodes)
        finally:
            for one in frozen:
                with _unless_it_has_ended(one):
                    asked(one.unpause)
            for sidecar in stale:
                remove(sidecar)

    def close(self) -> None:
        """Remove the sidecars; idempotent."""
        while self._sidecars:
            remove(self._sidecars.popitem()[1])

    def cut(self, links: Sequence[Link]) -> None:
        """Let no packet pass on these links, between nodes, until they are mended."""
        self._set(self._cut | set(links))

    def mend(self, links: Sequence[Link]) -> None:
        """Undo :meth:`cut` for these links."""
        self._set(self._cut - set(links))

    def is_cut(self, link: Link) -> Receipt:
        """Send a datagram over the link, and see whether a rule of either end drops it.

        A node that is down sends nothing: then the rules at the other end prove the cut.
        """
        if not self._running(link.source):
            awaits = link in self._cut and all(
                self._is_awaited(link.source, one) for one in self._running(link.destination)
            )
            return Receipt(awaits, f"{link}: node {link.source} is down{', and rules await it' if awaits else ''}")
        seen = [after.dropped - before.dropped for before, after in self._sent(link) if after.arrived == before.arrived]
        if len(seen) < len(self._ends(link)):
            return Receipt(False, f"{link}: a datagram arrived")
        if not seen or 0 in seen:
            return Receipt(False, f"{link}: a datagram got lost, but no rule of this link has dropped it")
        return Receipt(
            True, f"{link}: a datagram did not arrive, and the rules of this link dropped {sum(seen)} packets"
        )

    def carries(self, link: Link) -> Receipt:
        """Send a datagram over the link, and see whether it arrives."""
        for node in link:
            if not self._running(node):
                return Receipt(False, f"{link}: node {node} is down")
        through = all(after.arrived > before.arrived for before, after in self._sent(link))
        return Receipt(through, f"{link}: a datagram {'arrived' if through else 'got lost'}")

    # ------------------------------------------------------------------------------------------------ datagrams

    def _sent(self, link: Link) -> list[tuple[_Counts, _Counts]]:
        """The counters before and after a datagram, from each container of the one end to each of the other."""
        return [self._sent_between(*ends) for ends in self._ends(link)]

    def _sent_between(self, source: str, destination: str) -> tuple[_Counts, _Counts]:
        network = next(iter(self._addresses[source].keys() & self._addresses[destination].keys()), None)
        if network is None:
            raise EnvironmentFault(f"containers {source[:12]} and {destination[:12]} share no network.")
        before = self._counts(source, destination)
        run_in(self._sidecars[source], "bash", "-c", _SEND, "send", self._addresses[destination][network])
        deadline = time.monotonic() + _ARRIVAL_TIMEOUT_S
        while (after := self._counts(source, destination)) == before and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        return before, after

    def _counts(self, source: str, destination: str) -> _Counts:
        leaving = _counted(self._sidecars[source], _OUT, self._addresses[destination])
        coming = _counted(self._sidecars[destination], _IN, self._addresses[source])
        return _Counts(leaving["DROP"] + coming["DROP"], coming["count"])

    def _is_awaited(self, node: str, by: str) -> bool:
        """Whether a container drops packets from every address that the node had."""
        rules = told_by(self._sidecars[by], *_COUNT)
        return all(f"-A {_IN} -s {address}/32 -j DROP" in rules for address in self._of([node]))

    # ------------------------------------------------------------------------------------------------ rules

    def _set(self, links: set[Link]) -> None:
        nodes = self._project.nodes
        for link in links:
            for end in link:
                if end not in nodes:
                    raise EnvironmentFault(f"there is no node {end!r}; the nodes are {', '.join(nodes)}.")
        changed, self._cut = links ^ self._cut, links
        self._apply(sorted({end for link in changed for end in link}))

    def _apply(self, nodes: Iterable[str]) -> None:
        for node in nodes:
            rules = self._rules(node)
            for one in self._running(node):
                told_by(self._sidecars[one], "bash", "-c", _SET, "set", rules)

    def _rules(self, node: str) -> str:
        """The rules as ``iptables-restore`` reads them, which replaces the old ones atomically."""
        peers = [peer for peer in self._project.nodes if peer != node]
        leaving = [peer for peer in peers if Link(node, peer) in self._cut]
        coming = [peer for peer in peers if Link(peer, node) in self._cut]
        lines = [
            *(f"-A {_OUT} -d {address} -j DROP" for address in self._of(leaving)),
            *(f"-A {_IN} -s {address} -j DROP" for address in self._of(coming)),
            *(f"-A {_IN} -s {address} -p udp --dport {_DISCARD_PORT}" for address in self._of(peers)),
        ]
        return "\n".join(["*filter", f":{_IN} - [0:0]", f":{_OUT} - [0:0]", *lines, "COMMIT", ""])

    def _of(self, nodes: Sequence[str]) -> list[str]:
        """All addresses of these nodes, including those from before they went down."""
        containers = [one for node in nodes for one in self._members(node)]
        return sorted({address for one in containers for address in self._addresses.get(one, {}).values()})

    # ------------------------------------------------------------------------------------------------ containers

    def _ends(self, link: Link) -> list[tuple[str, str]]:
        """The containers, by their ids, between which datagrams probe the link."""
        return list(product(self._running(link.source), self._attached(link.destination)))

    def _members(self, node: str) -> list[str]:
        return [one.id for one in self._project.containers(node)]

    def _attached(self, node: str) -> list[str]:
        return [one for one in self._members(node) if one in self._sidecars]

    def _running(self, node: str) -> list[str]:
        """Those of a node's containers that run, paused or not, and have a sidecar."""
        running = [one.id for one in self._project.containers(node) if is_living(one)]
        return [one for one in running if one in self._sidecars]

    def _sidecar(self, beside: Container) -> Container:
        settings = {
            "network_mode": f"container:{beside.id}",
            "cap_drop": ["ALL"],
            "cap_add": ["NET_ADMIN", "NET_RAW"],
            "labels": dict(self._project.labels),
        }
        run, forever = self._project.client.containers.run, ["sleep", "infinity"]
        return asked(lambda: to_its_end(lambda: run(image_of(TOOLS_IMAGE), forever, detach=True, **settings)))


@contextmanager
def _unless_it_has_ended(one: Container) -> Iterator[None]:
    """Suppress a refusal of the engine because the container has no processes any more."""
    try:
        yield
    except EnvironmentFault:
        asked(one.reload)
        if is_living(one):
            raise


def _addresses(one: Container) -> Addresses:
    """Its addresses. Raises EnvironmentFault: it has none, or one that cannot be cut off."""
    networks: Mapping[str, Any] = one.attrs["NetworkSettings"]["Networks"]
    if any(network.get("GlobalIPv6Address") for network in networks.values()):
        raise EnvironmentFault(
            f"container {one.name} has an IPv6 address, and links are cut by IPv4 addresses.",
            "Remove enable_ipv6 from the networks of the compose file.",
        )
    found = {name: network["IPAddress"] for name, network in networks.items() if network.get("IPAddress")}
    if not found:
        raise EnvironmentFault(f"container {one.name} has no address; its state is {one.status}.")
    return found


def _counted(sidecar: Container, chain: str, addresses: Addresses) -> dict[str, int]:
    """Packets from or to these addresses: how many a chain dropped, and how many it only counted."""
    counts = {"DROP": 0, "count": 0}
    for line in told_by(sidecar, *_COUNT).splitlines():
        counted = _COUNTED.match(line)
        if counted and counted[2] == chain and counted[3] in addresses.values():
            counts["DROP" if counted[4] == "-j DROP" else "count"] += int(counted[1])
    return counts
