"""A process of TCP proxies that can cut or stall each *directed* link of a real Kafka cluster.

The process has a listening socket for every route of the :class:`~harness.targets.kafka.layout.Routing`, and a gate
(:mod:`harness.targets.kafka.relay`) for every directed link. All bytes from x to y pass it, whether x or y made the
connection. A link can also be stalled in its present connections alone: bytes in flight there arrive after those sent
in new connections. The harness sends the process one JSON line per request over its control channel, as to a node of
the built-in cluster. The process dies with the harness.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import harness
from harness.broker.control_channel import Answer, Door, Operation, serve_control_on
from harness.broker.control_fields import address, pairs
from harness.broker.node import die_with, open_many_files, receive_secret
from harness.broker.secret import Secret
from harness.broker.wire_tap import WireTap
from harness.errors import EnvironmentFault, ExitCode, NoAnswer, NoSuchProbe
from harness.model import CLIENTS, Link
from harness.target import Receipt
from harness.targets.addresses import Address
from harness.targets.control_client import ask
from harness.targets.kafka.layout import Listener, Route, Routing
from harness.targets.kafka.relay import Gate, Relay
from harness.targets.link_probe import API_VERSIONS_REQUEST, probe_link, try_link
from harness.targets.stalling import ClientWitness, Witness, probe_stall, try_stalled
from harness.wire.summary import Summaries

_READY_TIMEOUT_S = 60.0
_PING_TIMEOUT_S = 0.15
_ANSWER_TIMEOUT_S = 1.0
_CONTROL_TIMEOUT_S = 5.0
_REAP_TIMEOUT_S = 60.0
"""A busy kernel may be slow to end a killed process."""

_BACKLOG = 1024
"""The backlog of a listening socket: past it the kernel drops a connection, whose caller retries a second later."""
_NAME = "proxies"


class Proxies:
    """The harness's end.

    Args:
        routing: the routes.
        directory: for the process's configuration and its log; created when missing.
        taps: by node, the file to which its wire tap appends; empty: there is none.
    """

    def __init__(self, routing: Routing, directory: Path, taps: Mapping[str, Path] = MappingProxyType({})) -> None:
        self._routing = routing
        self._taps = taps
        self._directory = directory
        self._cut: set[Link] = set()
        self._stalled: set[Link] = set()
        self._witnesses: dict[Link, Witness] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._control: Address | None = None
        self._secret = Secret.draw()

    def start(self) -> None:
        """Start the process, from the main thread, and wait until every route is open.

        Raises:
            EnvironmentFault: it did not come up.
        """
        assert threading.current_thread() is threading.main_thread(), "it would die with any other thread"
        self._directory.mkdir(parents=True, exist_ok=True)
        with socket.create_server((self._routing.proxy_host(CLIENTS), 0)) as control:
            self._control = control.getsockname()
            config = self._directory / "proxies.json"
            config.write_text(json.dumps(self._config(control.fileno())))
            with (self._directory / "proxies.log").open("ab") as log, self._secret.told() as stdin:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", __name__, str(config)],
                    stdin=stdin,
                    stdout=log,
                    stderr=log,
                    pass_fds=(control.fileno(),),
                    start_new_session=True,
                    env={**os.environ, "PYTHONPATH": str(Path(harness.__file__).parents[1])},
                )
        self._ask(_READY_TIMEOUT_S, op="held_bytes")

    def stop(self) -> None:
        """End the process; idempotent."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)
            self._process.wait(_REAP_TIMEOUT_S)
        while self._witnesses:
            self._witnesses.popitem()[1].close()

    def require_running(self) -> None:
        """Check that the process has not ended.

        Raises:
            EnvironmentFault: it has, so that no node reaches another one, nor a client any; names what it said last.
        """
        if self._process is not None and (status := self._process.poll()) is not None:
            said = f"exit status {status}: {self._log_tail(1)}"
            raise EnvironmentFault(f"the {_NAME} between the nodes have ended, {said}.")

    @property
    def pid(self) -> int | None:
        """Of the process; None before it is started."""
        return self._process.pid if self._process else None

    def cut(self, links: Iterable[Link]) -> None:
        """Let no byte pass on these links until they are mended."""
        self._set(self._cut | set(links))

    def mend(self, links: Iterable[Link]) -> None:
        """Undo :meth:`cut` for these links."""
        self._set(self._cut - set(links))

    def stall(self, links: Iterable[Link]) -> None:
        """Let no byte pass on these links in their present connections, until :meth:`resume_links`.

        Raises:
            EnvironmentFault: no node answers on one of them, so that no connection could prove the stall.
        """
        for link in set(links) - self._stalled:
            if link in self._witnesses:
                self._witnesses.pop(link).close()
            try:
                self._witnesses[link] = ClientWitness(self._leading_to(link).listens)
            except OSError as error:
                raise EnvironmentFault(f"{link} cannot be stalled: no answer ({error}).") from error
        self._set_stalled(self._stalled | set(links))

    def resume_links(self, links: Iterable[Link]) -> None:
        """Undo :meth:`stall` for these links."""
        self._set_stalled(self._stalled - set(links))

    def is_stalled(self, link: Link) -> Receipt:
        """Whether a request gets stuck in a connection from before, and none in a new one."""
        stalled = partial(self._stalled_bytes, link)
        return probe_stall(link, self._witnesses.get(link), stalled, partial(self._ping, link))

    def has_gone_on(self, link: Link) -> Receipt:
        """Whether the bytes sent in a stalled connection have arrived."""
        return try_stalled(link, self._witnesses.get(link))

    def _stalled_bytes(self, link: Link) -> int:
        return int(self._ask(op="held_bytes")["stalled_bytes"].get(str(link), 0))

    def cuts_off(self, node: str) -> bool:
        """Whether a link between the node and another one is cut."""
        return any(node in link and CLIENTS not in link for link in self._cut)

    def held(self, link: Link) -> int:
        """How many bytes are withheld on the link now: 0 while it is whole."""
        return int(self._ask(op="held_bytes")["held_bytes"].get(str(link), 0))

    def is_cut(self, link: Link) -> Receipt:
        """Send a request over the link and see whether it gets through.

        On a link to the clients the probe is the answer to a request that ignores all cuts on its way to the broker.
        """
        return probe_link(link, partial(self.held, link), partial(self._ping, link))

    def carries(self, link: Link) -> Receipt:
        """Send the request of :meth:`is_cut`, and see whether its answer proves that bytes pass."""
        return try_link(link, partial(self.held, link), partial(self._ping, link))

    def _ping(self, link: Link, held_bytes: Callable[[], int]) -> int | None:
        with socket.socket() as connection:
            connection.settimeout(_PING_TIMEOUT_S)
            if link.destination == CLIENTS:
                connection.bind((self._routing.proxy_host(CLIENTS), 0))
                self._ask(op="probe_back", address=list(connection.getsockname()))
            try:
                connection.connect(self._leading_to(link).listens)
                connection.sendall(API_VERSIONS_REQUEST)
                return None if _answers(connection, held_bytes) else held_bytes()
            except OSError:
                return held_bytes()  # refused or reset: by the node, or by the gate if it holds bytes

    def _leading_to(self, link: Link) -> Route:
        """The route whose connections use ``link``: to clients, bytes flow in the clients' own connections."""
        return self._route(*(reversed(link) if link.destination == CLIENTS else link))

    def _route(self, source: str, destination: str) -> Route:
        wanted = Listener.CLIENTS if source == CLIENTS else Listener.PEERS
        if Listener.PEERS not in self._routing.listeners(destination):
            wanted = Listener.CONTROLLER
        for route in self._routing.routes():
            if (route.source, route.destination, route.listener) == (source, destination, wanted):
                return route
        raise NoSuchProbe(f"no bytes flow on the link {source}->{destination}: no node connects that way.")

    def _set(self, links: set[Link]) -> None:
        self._require_known(links)
        self._ask(op="cut", links=[list(link) for link in sorted(links)])
        self._cut = links

    def _set_stalled(self, links: set[Link]) -> None:
        self._require_known(links)
        self._ask(op="stall", links=[list(link) for link in sorted(links)])
        self._stalled = links

    def _require_known(self, links: Iterable[Link]) -> None:
        unknown = sorted({end for link in links for end in link} - {*self._routing.nodes, CLIENTS})
        if unknown:
            nodes = ", ".join(self._routing.nodes)
            raise EnvironmentFault(f"there is no node {unknown[0]!r}; the nodes are {nodes}.")

    def _ask(self, timeout_s: float = _CONTROL_TIMEOUT_S, /, **request: Any) -> dict[str, Any]:
        assert self._control is not None, "the proxies have not been started"
        try:
            return ask(_NAME, self._control, self._secret, timeout_s, **request)
        except NoAnswer as problem:
            raise EnvironmentFault(f"{problem} Their log ends with: {self._log_tail(5)}") from None

    def _log_tail(self, lines: int) -> str:
        log = (self._directory / "proxies.log").read_text(errors="replace").splitlines()
        return " | ".join(log[-lines:]) or "(nothing)"

    def _config(self, control: int) -> dict[str, Any]:
        routes = [
            {
                "source": route.source,
                "destination": route.destination,
                "listens": route.listens,
                "leads_to": route.leads_to,
            }
            for route in self._routing.routes()
        ]
        taps = {node: str(path) for node, path in self._taps.items()}
        return {"parent_pid": os.getpid(), "control": control, "routes": routes, "taps": taps}


def _answers(connection: socket.socket, held_bytes: Callable[[], int]) -> bool:
    """Whether an answer arrives; where no bytes are held, the probe waits longer for it."""
    try:
        return bool(connection.recv(1))
    except TimeoutError:
        if held_bytes():
            return False
        connection.settimeout(_ANSWER_TIMEOUT_S)
        return bool(connection.recv(1))


class _Process:
    """The process's end: every gate and every relay."""

    def __init__(self, routes: Sequence[Mapping[str, Any]], taps: Mapping[str, str]) -> None:
        self._routes = routes
        summaries = Summaries()
        self._taps = {node: WireTap("", time.monotonic_ns, _appending(path), summaries) for node, path in taps.items()}
        self._ends = sorted({end for route in routes for end in (route["source"], route["destination"])})
        ends = {(route["source"], route["destination"]) for route in routes}
        links = {Link(*pair) for pair in ends} | {Link(back, there) for there, back in ends}
        self._gates = {link: Gate(link) for link in links}
        self._stalled: dict[Link, Gate] = {}
        self._probes_back: set[Address] = set()

    async def run(self, control: socket.socket, secret: Secret) -> None:
        """Serve until killed. The control channel listened before the secret was drawn: no proof can be too old."""
        async with asyncio.TaskGroup() as tasks:
            for route in self._routes:
                listening = socket.create_server(tuple(route["listens"]), backlog=_BACKLOG)
                tasks.create_task(self._accept(listening, self._relay(route), tasks))
            server = await serve_control_on(control, Door(secret, _NAME, since_ns=0), self._operations())
            tasks.create_task(server.serve_forever())

    def _relay(self, route: Mapping[str, Any]) -> Relay:
        there = Link(route["source"], route["destination"])
        back = Link(there.destination, there.source)
        return Relay(
            self._gates[there],
            self._gates[back],
            tuple(route["leads_to"]),
            route["listens"][0],
            self._taps.get(there.destination),
        )

    async def _accept(self, listening: socket.socket, relay: Relay, tasks: asyncio.TaskGroup) -> None:
        listening.setblocking(False)
        while True:
            near, peer = await asyncio.get_running_loop().sock_accept(listening)
            probes_back = peer in self._probes_back
            self._probes_back.discard(peer)
            tasks.create_task(relay.serve(near, probes_back=probes_back))

    def _operations(self) -> dict[str, Operation]:
        return {
            "cut": lambda request, answer: answer(self._cut(self._links(request))),
            "probe_back": self._probe_back,
            "stall": lambda request, answer: answer(self._stall(self._links(request))),
            "held_bytes": lambda _, answer: answer(self._held_bytes()),
        }

    def _links(self, request: Mapping[str, Any]) -> set[Link]:
        return {Link(*pair) for pair in pairs(request, "links", self._ends)}

    def _probe_back(self, request: Mapping[str, Any], answer: Answer) -> None:
        self._probes_back.add(address(request, "address"))
        answer({})

    def _held_bytes(self) -> dict[str, Any]:
        both = {"held_bytes": self._gates, "stalled_bytes": self._stalled}
        return {name: {str(link): g.held_bytes() for link, g in gates.items()} for name, gates in both.items()}

    def _cut(self, links: set[Link]) -> dict[str, Any]:
        for link, gate in self._gates.items():
            if link in links:
                gate.shut()
            else:
                gate.open()
        return {}

    def _stall(self, links: set[Link]) -> dict[str, Any]:
        for link in self._stalled.keys() - links:
            apart = self._stalled.pop(link)
            self._gates[link].take_over(apart)
            apart.open()
        for link in links - self._stalled.keys():
            self._stalled[link] = self._gates[link].stalled()
        return {}


def _appending(path: str) -> Callable[[bytes], None]:
    """Writes a line to a file, at once; the process ends where that fails, and the run with it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def write(line: bytes) -> None:
        try:
            os.write(descriptor, line)
        except OSError as error:
            sys.stderr.write(f"FATAL: cannot write {path}: {error.strerror}.\n")
            os._exit(ExitCode.ENVIRONMENT)

    return write


def main() -> None:
    """Run the process that the configuration file named on the command line describes."""
    config = json.loads(Path(sys.argv[1]).read_text())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the launcher ends this process
    die_with(config["parent_pid"])
    open_many_files()
    control = socket.socket(fileno=config["control"])
    try:
        asyncio.run(_Process(config["routes"], config["taps"]).run(control, receive_secret()))
    except ExceptionGroup as failed:  # such as one for each connection, when there are too many of them
        traceback.print_exception(failed, limit=-1)
        sys.exit(f"FATAL: {_first(failed)}")


def _first(failed: BaseException) -> BaseException:
    return _first(failed.exceptions[0]) if isinstance(failed, BaseExceptionGroup) else failed


if __name__ == "__main__":
    main()
