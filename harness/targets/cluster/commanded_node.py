"""A node of a running cluster that is harmed and looked at by the commands of its file."""

from __future__ import annotations

import re
import shlex
import shutil
import tarfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import NamedTuple

from harness.broker.checkpoints import HIGH_WATERMARKS
from harness.controls import DiskSpace, Kills, Links, Pauses, Shutdowns, WallClocks
from harness.errors import EnvironmentFault
from harness.target import Target
from harness.targets.cluster.cluster_file import ClusterFile, Node, Transport
from harness.targets.cluster.presets import PRESETS, TO_BE_SET, Preset
from harness.targets.cluster.shell import Ran, run, save, words
from harness.targets.cluster.wall_clock import BOOT_ID, NOW, ClockReading, beside_uptime, clock_by

NEEDED: Mapping[type[Target], Sequence[str]] = {
    Kills: ("pid", "kill", "start"),
    Shutdowns: ("pid", "stop", "start"),
    Pauses: ("pid", "pause", "resume"),
    Links: ("cut", "mend", "reach", "dropped"),
    DiskSpace: ("pid", "stop", "start", "fill", "free", "write"),
    WallClocks: ("pid", "kill", "start", "skew", "unskew", NOW),  # a broker that it has misled is started again
}
"""By what can be done to a cluster, the commands that each of its nodes needs for that."""

SHOWS = "logs"
"""The command that prints what is on a broker's disk."""

WRITTEN, FULL = "written", "full"
"""What the command ``write`` prints."""

_VARIABLE = re.compile(r"\$\{?([A-Z_]+)")
_LOGS_TIMEOUT_S = 600.0
_GONE = "gone"
_STATE = f"""\
PID=$(%s)
case "${{PID:-0}}" in
    0) echo {_GONE};;
    *[!0-9]*) echo unknown;;
    *) cat "/proc/$PID/stat" 2>/dev/null || echo {_GONE};;
esac
"""
_START_TIME = 19
"""Its place in ``/proc/PID/stat`` behind the name, from 0: see proc(5)."""


class ProcessState(NamedTuple):
    """A process as ``/proc`` has it: its id, the letter of its state, and when it started, in ticks since the boot."""

    pid: int
    state: str
    started: str

    @property
    def is_paused(self) -> bool:
        """Whether a signal has stopped it."""
        return self.state == "T"

    def is_the_same(self, other: ProcessState) -> bool:
        """Whether both are the same process: an id is used again, but not with the same start."""
        return (self.pid, self.started) == (other.pid, other.started)


class CommandedNode:
    """One node, with every command that its file and preset give for it.

    Attributes:
        name: of the node.
        address: its address for other nodes; None: the file does not say.
        port: the same.
        transport: how a shell is reached on it.
    """

    def __init__(self, file: ClusterFile, node: Node) -> None:
        self._preset = preset = PRESETS[file.preset] if file.preset is not None else Preset({})
        self.name = node.name
        self.address = node.address
        self.port = node.port
        self.transport = node.transport
        self._variables = {**preset.variables, **file.variables, **node.variables, "ID": node.name}
        there = {name: (node.transport, text) for name, text in preset.commands.items()}
        for commands, local in ((file.commands, file.local_commands), (node.commands, node.local_commands)):
            there |= {name: (node.transport, text) for name, text in commands.given().items()}
            there |= {name: (Transport(), text) for name, text in local.given().items()}
        self._commands: Mapping[str, tuple[Transport, str]] = there
        self._boot_id = ""

    def has(self, command: str) -> bool:
        """Whether there is such a command."""
        return command in self._commands

    def missing(self, control: type[Target]) -> str | None:
        """What the node lacks to be controlled so, in words; None: nothing."""
        lacks = next((lack for name in NEEDED[control] if (lack := self.missing_for(name)) is not None), None)
        if lacks is not None:
            return lacks
        if control is Links and (self.address is None or self.port is None):
            return "address and port"
        return None

    def missing_for(self, command: str) -> str | None:
        """What the node lacks for a command, in words; None: nothing."""
        if not self.has(command):
            return f"command {command!r}"
        unset = (name for name in sorted(TO_BE_SET) if not self._variables.get(name))
        return next((f"variable {name!r}" for name in unset if name in self._wanted_by(command)), None)

    def _wanted_by(self, command: str) -> Collection[str]:
        """The variables that a preset's command needs; those of a file see to themselves."""
        return _VARIABLE.findall(self._commands[command][1]) if self._has_from_preset(command) else ()

    def _has_from_preset(self, command: str) -> bool:
        return self.has(command) and self._commands[command][1] == self._preset.commands.get(command)

    @property
    def steps_its_machine(self) -> bool:
        """Whether its clock is moved by stepping that of its machine, as presets do."""
        return self._has_from_preset("skew")

    def boot_id(self) -> str:
        """The same for all nodes that have one machine's clock; it is asked for once.

        Raises:
            EnvironmentFault: the node does not tell.
        """
        if not self._boot_id:
            ran = run(words(self.transport, f"cat {BOOT_ID}"))
            if ran.status or not ran.printed.strip():
                raise EnvironmentFault(f"node {self.name}: on which machine it runs is not known, {ran.in_words}.")
            self._boot_id = ran.printed.strip()
        return self._boot_id

    def greet(self) -> Ran:
        """Run nothing, by its transport.

        Raises:
            EnvironmentFault: the program that reaches the node cannot be started, or does not end.
        """
        return run(words(self.transport, ":"))

    def command_line(
        self,
        name: str,
        peer: CommandedNode | None = None,
        given: Mapping[str, object] = MappingProxyType({}),
    ) -> Sequence[str]:
        """The command line, for this machine, that runs a command of the node.

        Args:
            name: of the command.
            peer: the other end of a link.
            given: further shell variables of this command, such as ``FREE_BYTES``.
        """
        transport, text = self._commands[name]
        if name == NOW:
            text = beside_uptime(text)
        own = {"ADDRESS": self.address, "PORT": self.port}
        other = {"PEER_ADDRESS": peer.address, "PEER_PORT": peer.port} if peer is not None else {}
        ends = {key: value for key, value in {**own, **other}.items() if value is not None}
        variables = {**self._variables, **ends, **given}
        lines = [f"{key}={shlex.quote(str(value))}" for key, value in variables.items()]
        if name != "pid" and "PID" in text and self.has("pid"):
            lines.append(f"PID=$({self._commands['pid'][1]})")
        return words(transport, "\n".join([*lines, text]))

    def state_line(self) -> Sequence[str]:
        """The command line that prints what :func:`state_in` reads."""
        transport, _ = self._commands["pid"]
        lines = [f"{key}={shlex.quote(value)}" for key, value in self._variables.items()]
        return words(transport, "\n".join([*lines, _STATE % self._commands["pid"][1]]))

    def perform(
        self,
        name: str,
        peer: CommandedNode | None = None,
        given: Mapping[str, object] = MappingProxyType({}),
        started: Callable[[int], None] | None = None,
    ) -> str:
        """Run one of its commands; returns what it printed. ``started`` is as of :func:`run`, the rest as above.

        Raises:
            EnvironmentFault: it failed.
        """
        ran = run(self.command_line(name, peer, given), started)
        if ran.status:
            raise EnvironmentFault(f"node {self.name}: command {name!r} failed, {ran.in_words}.")
        return ran.printed

    def succeeds(self, name: str, peer: CommandedNode) -> bool:
        """Whether one of its commands ends with 0."""
        return run(self.command_line(name, peer)).status == 0

    def save_logs(self, topics: Collection[str], directory: Path) -> None:
        """Copy the logs of topics, and the checkpoints beside them, to ``directory``, instead of what is there.

        Raises:
            EnvironmentFault: the command failed, or what it printed is no archive of a broker's log directory.
        """
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        archive = directory.with_name(f"{directory.name}.tar")
        try:
            ran = save(self.command_line(SHOWS, given={"TOPICS": " ".join(topics)}), archive, _LOGS_TIMEOUT_S)
            if ran.status:
                raise EnvironmentFault(f"node {self.name}: command {SHOWS!r} failed, {ran.in_words}.")
            _unpack(archive, directory)
        except (tarfile.TarError, OSError) as problem:
            raise EnvironmentFault(f"node {self.name}: no archive that {SHOWS!r} prints: {problem}.") from None
        finally:
            archive.unlink(missing_ok=True)
        if topics and not (directory / HIGH_WATERMARKS).exists():
            raise EnvironmentFault(f"node {self.name}: what {SHOWS!r} prints is without the file {HIGH_WATERMARKS}.")

    def disk(self) -> str:
        """What ``write`` prints of the disk of its data, :data:`WRITTEN` or :data:`FULL`.

        Raises:
            EnvironmentFault: it failed, or printed something else.
        """
        said = self.perform("write").strip()
        if said not in (WRITTEN, FULL):
            raise EnvironmentFault(f"node {self.name}: command 'write' printed {said[:40]!r}, not {WRITTEN} or {FULL}.")
        return said

    def clock(self) -> ClockReading:
        """Its wall clock. Raises as :func:`harness.targets.cluster.wall_clock.clock_by`."""
        return clock_by(self.command_line(NOW), self.name)

    def state(self) -> ProcessState | None:
        """Its process; None: it has none. Raises as :func:`state_by`."""
        return state_by(self.state_line(), self.name)


def _unpack(archive: Path, directory: Path) -> None:
    """Write the regular files of an archive below ``directory``, none beside it."""
    with tarfile.open(archive, "r:") as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            if not member.isfile() or path.is_absolute() or ".." in path.parts:
                continue
            content, copy = tar.extractfile(member), directory / path
            assert content is not None
            copy.parent.mkdir(parents=True, exist_ok=True)
            with copy.open("wb") as file:
                shutil.copyfileobj(content, file)


def state_by(command_line: Sequence[str], node: str) -> ProcessState | None:
    """The process of a node, by a line of :meth:`CommandedNode.state_line`; None: it has none, or a zombie.

    Raises:
        EnvironmentFault: the node cannot be asked, or what it prints is no state.
    """
    ran = run(command_line)
    if ran.status:
        raise EnvironmentFault(f"node {node}: its process cannot be looked at, {ran.in_words}.")
    if ran.printed.strip() == _GONE:
        return None
    before, _, after = ran.printed.rpartition(")")
    rest, pid = after.split(), before.partition(" ")[0]
    if not pid.isdecimal() or len(rest) <= _START_TIME:
        raise EnvironmentFault(f"node {node}: command 'pid' does not print the id of one process.")
    return None if rest[0] in "ZX" else ProcessState(int(pid), rest[0], rest[_START_TIME])
