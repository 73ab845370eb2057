"""One node as an operating-system process: its ports, its control channel, its start and its exit."""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from harness.broker.complaints import Complaints
from harness.broker.control_channel import Answer, Operation, serve_control
from harness.broker.control_fields import MAX_INT64, address, flag, number, one_of, pairs, text, whole, whole_or_none
from harness.broker.files import Disk
from harness.broker.log_directories import log_dir_names
from harness.broker.network import AsyncioNetwork
from harness.broker.node_environment import NodeEnvironment, Supervisor
from harness.broker.ping import Ping
from harness.broker.ports import Network
from harness.broker.secret import Secret
from harness.broker.settings import Address, NodeConfig, NodeFaults
from harness.broker.timeline import Timeline
from harness.broker.wire_tap import TappedNetwork, WireTap
from harness.broker.witness import Witness
from harness.clock import MAX_OFFSET_MS, SystemClock
from harness.errors import ExitCode
from harness.model import CLIENTS, Link, node_name

_PR_SET_PDEATHSIG = 1
_EXIT_BROKEN = 70
_LAST_WORDS_S = 0.05
_PROBE_BYTES = 65_536
_MAX_PING_MS = 60_000


class Node(Protocol):
    """What runs inside the process: a broker or a controller."""

    def start(self) -> None:
        """Listen, and introduce yourself to the cluster."""
        ...

    def stop(self) -> None:
        """Write down what a clean stop writes down."""
        ...

    def status(self) -> dict[str, Any]:
        """The node's own part of the control channel's status."""
        ...

    def operations(self) -> dict[str, Operation]:
        """The node's own operations for the control channel."""
        ...

    def address_of(self, node: str) -> Address:
        """The listener of another node.

        Raises:
            ValueError: it is not known.
        """
        ...


Build = Callable[[NodeConfig, NodeEnvironment], Node]


class NodeProcess:
    """The real ports of one node, and the loop that they live on.

    Args:
        config: the node's configuration.
        secret: of the run.
        build: makes the node, on this process's ports; called once, on the loop.
    """

    def __init__(self, config: NodeConfig, secret: Secret, build: Build) -> None:
        self.config = config
        self._secret = secret
        self.name = node_name(config.node_id)
        self.clock = SystemClock(config.faults.wall_offset_ms)
        self.disk = Disk(Path(config.data_dir), config.faults.free_bytes)
        self.disk.free_within.update(config.faults.free_within)
        self.timeline = Timeline(
            config.node_id, config.incarnation, self.clock, self._appending(config.timeline, "its timeline")
        )
        self._build = build
        self._witnesses: dict[str, Witness] = {}

    def run(self) -> int:
        """Live until SIGTERM or until the node halts itself; returns the exit code."""
        return asyncio.run(self._live())

    def halt(self, exit_code: int) -> None:
        """End the process soon, after what was already sent has left."""
        if not self._ended.done():
            self._ended.set_result(exit_code)

    def say(self, sentence: str) -> None:
        """One line to the operator."""
        now = self.clock.wall_ms()
        stamp = time.strftime("%H:%M:%S", time.gmtime(now // 1000))
        _tell(f"{stamp}.{now % 1000:03d} [{self.name}] {sentence}")

    def report(self, request: str, error: Exception) -> None:
        """See :attr:`harness.broker.node_environment.Supervisor.report`: a real node logs it and lives on."""
        self.say(f"ERROR: {request} could not be served and is answered with UNKNOWN_SERVER_ERROR: {error!r}.")
        _tell("".join(traceback.format_exception(error)).rstrip())

    async def _live(self) -> int:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_die_of_a_bug)
        self._ended: asyncio.Future[int] = loop.create_future()
        loop.add_signal_handler(signal.SIGTERM, self.halt, 0)
        complaints = Complaints(self.say, self.clock)
        self.network = AsyncioNetwork(
            self.name, self.config.listener[0], self.config.names, self._secret, complaints.about
        )
        self.network.cut(self.config.faults.cut)
        self._announce_faults(self.config.faults)
        environment = NodeEnvironment(
            self._tapped(), self.disk, self.clock, self.timeline, Supervisor(self.say, self.halt, self.report)
        )
        self._node = self._build(self.config, environment)
        control = await serve_control(self.config.control, self._secret, self.name, self._operations())
        self.timeline.about_node("started")
        self._node.start()
        exit_code = await self._ended
        control.close()
        if exit_code == 0:
            self._node.stop()
        await self.network.close()
        await asyncio.sleep(_LAST_WORDS_S if exit_code else 0)
        self.say(f"Stopped with exit code {exit_code}.")
        return exit_code

    def _tapped(self) -> Network:
        """The network that the node gets, which has a wire tap if the configuration says so."""
        if not self.config.wire:
            return self.network
        write = self._appending(self.config.wire, "its wire tap")
        write(b"\n")  # ends a line that a crash has torn
        return TappedNetwork(self.network, WireTap(f"{self.config.incarnation}-", self.clock.monotonic_ns, write))

    def _appending(self, path: str, what: str) -> Callable[[bytes], None]:
        """Writes a line to a file of evidence, at once; the process ends, naming ``what``, if that fails."""
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

        def write(line: bytes) -> None:
            try:
                os.write(descriptor, line)
            except OSError as error:
                _tell(f"FATAL: Node {self.config.node_id} cannot write {what}: {error.strerror}.")
                os._exit(ExitCode.ENVIRONMENT)

        return write

    # ------------------------------------------------------------------------------------ control channel

    def _operations(self) -> dict[str, Operation]:
        return {
            "status": lambda _, answer: answer(self._status()),
            "cut": self._cut,
            "stall": self._stall,
            "watch": self._watch,
            "limit_disk": self._limit_disk,
            "offset_clock": self._offset_clock,
            "ping": self._ping,
            "nudge": self._nudge,
            "probe_disk": self._probe_disk,
            "sync": self._sync,
            **self._node.operations(),
        }

    def _status(self) -> dict[str, Any]:
        return {
            "node": self.config.node_id,
            "pid": os.getpid(),
            "incarnation": self.config.incarnation,
            "monotonic_ns": self.clock.monotonic_ns(),
            "wall_ms": self.clock.wall_ms(),
            "links": {
                "cut": [list(link) for link in self.network.cut_links],
                "held_bytes": self.network.held_bytes(),
                "stalled_bytes": self.network.stalled_bytes(),
                "answers": {node: witness.answers for node, witness in sorted(self._witnesses.items())},
            },
            "disk": {"free_bytes": self.disk.free_bytes},
            **self._node.status(),
        }

    def _cut(self, request: dict[str, Any], answer: Answer) -> None:
        links = [Link(*pair) for pair in pairs(request, "links", [*self.config.names.values(), CLIENTS])]
        self.network.cut(links)
        self._announce_cut(links)
        answer({})

    def _stall(self, request: dict[str, Any], answer: Answer) -> None:
        links = [Link(*pair) for pair in pairs(request, "links", [*self.config.names.values(), CLIENTS])]
        stalled = flag(request, "stalled")
        self.network.stall(links, stalled=stalled)
        self.say(f"Fault: {', '.join(map(str, links))} {'stalled' if stalled else 'no longer stalled'}.")
        answer({})

    def _watch(self, request: dict[str, Any], answer: Answer) -> None:
        """Send a request in the connection that watches the link to a node, which may be made ``anew``."""
        node = one_of(request, "node", list(self.config.names.values()), "")
        if flag(request, "anew") or node not in self._witnesses:
            if node in self._witnesses:
                self._witnesses[node].close()
            self._witnesses[node] = Witness(self.network, self._node.address_of(node), node)
        self._witnesses[node].ask()
        answer({})

    def _limit_disk(self, request: dict[str, Any], answer: Answer) -> None:
        free_bytes, directory = whole_or_none(request, "free_bytes", 0, MAX_INT64), self._log_dir(request)
        self.disk.limit(directory, free_bytes)
        where = f"log directory {directory}" if directory else "storage"
        self.say(f"Fault: {where} takes {'any number of' if free_bytes is None else free_bytes} more bytes.")
        answer({})

    def _offset_clock(self, request: dict[str, Any], answer: Answer) -> None:
        self.clock.wall_offset_ms = whole(request, "ms", -MAX_OFFSET_MS, MAX_OFFSET_MS)
        self.say(f"Fault: the wall clock is off by {self.clock.wall_offset_ms} ms.")
        answer({})

    def _ping(self, request: dict[str, Any], answer: Answer) -> None:
        node, timeout_ms = text(request, "node"), number(request, "timeout_ms", _MAX_PING_MS)
        Ping(self.network, self.clock, answer).send(self._node.address_of(node), node, timeout_ms)

    def _nudge(self, request: dict[str, Any], answer: Answer) -> None:
        answer({"connected": self.network.nudge(address(request, "address"))})

    def _probe_disk(self, request: dict[str, Any], answer: Answer) -> None:
        refusal, written = self.disk.probe(_PROBE_BYTES, self._log_dir(request))
        answer({"errno": refusal, "written": written})

    def _log_dir(self, request: dict[str, Any]) -> str:
        """The log directory that is meant, and nothing else of the file system; "": all of them."""
        return one_of(request, "directory", ["", *log_dir_names(self.config.settings.log_dirs_count)], "")

    def _sync(self, _: dict[str, Any], answer: Answer) -> None:
        self.disk.sync()
        answer({})

    def _announce_faults(self, faults: NodeFaults) -> None:
        if faults != NodeFaults():
            self.say(f"Fault: started with {faults.free_bytes} free bytes, clock off by {faults.wall_offset_ms} ms.")
            self._announce_cut(faults.cut)

    def _announce_cut(self, links: Iterable[Link]) -> None:
        self.say(f"Fault: cut links: {', '.join(map(str, links)) or 'none'}.")


def die_with(parent_pid: int) -> None:
    """Ask the kernel to kill this process when the thread that has started it dies (``PR_SET_PDEATHSIG``).

    The parent may have died before the request; the kernel then sends no signal, so exit at once.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(0)


def open_many_files() -> None:
    """Take as many descriptors as we may: every segment and every connection needs one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main(build: Build, path: str) -> int:
    """Run the node that a configuration file describes; returns the exit status of its process.

    The secret of its run comes by standard input.
    """
    config = NodeConfig.read(Path(path))
    open_many_files()
    try:
        return NodeProcess(config, receive_secret(), build).run()
    except OSError as error:
        _tell(f"FATAL: Node {config.node_id} cannot start: {error}.")
        return ExitCode.ENVIRONMENT


def receive_secret() -> Secret:
    """The secret of the run, from standard input.

    Raises:
        OSError: it is not there.
    """
    try:
        with open(0, "rb", closefd=False) as stdin:
            return Secret.receive(stdin)
    except ValueError:
        raise OSError("standard input does not begin with the secret of a run") from None


def _tell(line: str) -> None:
    """One line into the node's log, unless that cannot be written."""
    with suppress(OSError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def _die_of_a_bug(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """An unhandled exception is a bug of ours: a node that went on would prove nothing."""
    error = context.get("exception")
    if isinstance(error, OSError) and "socket" in context:
        return  # accept() ran out of descriptors: asyncio waits a second and goes on
    _tell(context["message"])
    if error is not None:
        _tell("".join(traceback.format_exception(error)).rstrip())
        _tell(f"FATAL: this node has ended because of a bug of its own: {error!r}.")
    os._exit(_EXIT_BROKEN)
