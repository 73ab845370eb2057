"""Says what can be done to a compose file's brokers of another make, and why no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.client_properties import ClientProperties
from harness.controls import (
    ConnectionStalls,
    DiskContents,
    DiskSpace,
    Kills,
    Links,
    LogDirectories,
    Pauses,
    Power,
    Shutdowns,
    WallClocks,
    WireTaps,
)
from harness.errors import UsageError
from harness.fault import Fault, nodes_named_by
from harness.model import CLIENTS
from harness.target import Target, includes
from harness.targets.bootstrap.kind import without_its_log
from harness.targets.compose.foreign_file import DISK_LABEL, ForeignFile, understood
from harness.targets.compose.foreign_image import why_no_clock
from harness.targets.compose.images import provide_all
from harness.targets.compose.project import connected
from harness.targets.compose.refusals import other_hosts, unreachable
from harness.targets.compose.rewriting import Stack, kept
from harness.targets.compose.written_stack import WrittenStack
from harness.targets.system import Unsupported

_ALWAYS: frozenset[type[Target]] = frozenset({Kills, Pauses, Shutdowns, Links})
_LINKS = ("links", "between", "isolate")


@dataclass(frozen=True, slots=True)
class ForeignStack:
    """A compose file with brokers of another make.

    Attributes:
        file: its brokers.
        stack: the file as plain data; see :mod:`harness.targets.compose.rewriting`.
        services: the services to run: the brokers, and what they depend on.
        no_clock: why clocks cannot be moved, in a sentence; empty: they can.
        client: what its brokers want of clients.
    """

    file: ForeignFile
    stack: Stack
    services: Sequence[str]
    no_clock: str
    client: ClientProperties

    @property
    def no_disk(self) -> str:
        """Why disks cannot be filled, in a sentence; empty: they can."""
        for broker in self.file.brokers:
            if broker.disk is None:
                return (
                    f"Service {broker.name!r} does not mount exactly one volume: give it one for its data, and name it "
                    f"by the label {DISK_LABEL} if there are others."
                )
        return ""

    @property
    def controls(self) -> frozenset[type[Target]]:
        """What can be done to its containers."""
        disks: set[type[Target]] = set() if self.no_disk else {DiskSpace}
        clocks: set[type[Target]] = set() if self.no_clock else {WallClocks}
        taps: set[type[Target]] = set() if self.client.values else {WireTaps}
        return _ALWAYS | disks | clocks | taps

    @property
    def lacks(self) -> Mapping[type[Target], str]:
        """Why each missing control is missing, in a sentence."""
        return {
            Power: "What such a program has flushed is not known.",
            DiskContents: "What such a program keeps on its disk is not known.",
            LogDirectories: "A container's volume cannot lose its name.",
            ConnectionStalls: "Toxiproxy cuts a link in all its connections.",
            WireTaps: "Client properties are given, by which what goes to its brokers may be encrypted.",
            WallClocks: self.no_clock,
            DiskSpace: self.no_disk,
        }

    def unsupported(self, spelling: str, fault: Fault) -> Unsupported | None:
        """Why ``fault`` cannot be injected; None: it can.

        Args:
            spelling: the target, as ``--target`` spells it.
            fault: to inject.
        """
        if not includes(self.controls, fault.needs):
            return Unsupported(f"target {spelling!r} cannot do {fault.kind!r}.", self.lacks.get(fault.needs, ""))
        if (unproven := without_its_log(spelling, fault)) is not None:
            return unproven
        named = nodes_named_by(fault, _LINKS)
        if includes((Links,), fault.needs) and len(self.file.brokers) == 1 and CLIENTS not in named:
            return Unsupported(f"{fault.kind!r} cuts brokers off from each other, and {self.file.path} has one.")
        return None

    def in_words(self) -> Mapping[str, Any]:
        """The service of each node, as plain data for ``run.json``."""
        brokers = {
            node: {"service": broker.name, "image": broker.image}
            for node, broker in zip(self.file.nodes, self.file.brokers, strict=True)
        }
        return {"file": str(self.file.path), "brokers": brokers, "seen_by": CLIENTS}


def find(written: WrittenStack) -> ForeignStack:
    """The brokers of another make that a compose file runs; pulls or builds missing images.

    Raises:
        UsageError: the file is not understood, or has nodes that could not be cut off.
        EnvironmentFault: there is no Docker engine or no Compose, or an image is unavailable.
    """
    stack, path, pattern = written.stack, written.path, written.pattern
    file = understood(stack, path, pattern)
    for problem in (*other_hosts(file.brokers, file.brokers), *unreachable(file, file.brokers)):
        raise UsageError(f"{path}: {problem.sentence}", problem.remedy)
    services = kept(stack, [broker.name for broker in file.brokers])
    client = connected()
    try:
        provide_all(client, path, stack, services)
        tried = {broker.image: broker for broker in reversed(file.brokers)}
        why = (why_no_clock(client, one, stack["services"][one.name]) for one in tried.values())
        no_clock = next(filter(None, why), "")
    finally:
        client.close()
    return ForeignStack(file, stack, services, no_clock, written.client)
