"""Resolves ``--target cluster:FILE.yml`` for the plan: which faults the commands of the file can bring about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from pathlib import Path
from typing import Any, ClassVar

from harness.client_properties import PLAINTEXT
from harness.controls import Kills, Links, LogDirectories, Power, WallClocks
from harness.errors import UsageError
from harness.fault import Fault, nodes_named_by
from harness.model import CLIENTS, is_broker
from harness.property_file import read_properties
from harness.scenario import Scenario
from harness.target import Target, includes
from harness.targets.bootstrap.kind import Bootstrap, RunningCluster, RunningKind, told_by, without_its_log
from harness.targets.bootstrap.promises import topic_configs
from harness.targets.bootstrap.spelling import Named, given
from harness.targets.bootstrap.target import sampler
from harness.targets.cluster.cluster_file import ClusterFile, read
from harness.targets.cluster.commanded_node import NEEDED, SHOWS, CommandedNode
from harness.targets.cluster.node_clocks import sharing
from harness.targets.cluster.own_machine import locked_out
from harness.targets.cluster.target import ClusterTarget, controls_of
from harness.targets.cluster.tried import tried
from harness.targets.cluster.undo import NAME, remove
from harness.targets.leftovers import Leftovers, StartJournal
from harness.targets.system import SpokenProtocol, System, Unsupported
from harness.targets.target_kind import Timeline, Tried

LOGS = "logs"
"""In a run's configuration, that brokers' logs are read besides what they answer clients."""

_SHIM = "takes a library that is preloaded into a node, and seawall does not start these nodes"
WHY_NOT: Mapping[type[Target], str] = {
    Power: f"losing what was not flushed {_SHIM}",
    LogDirectories: f"failing a log directory under a broker {_SHIM}",
}
"""Why a running cluster cannot be done what has no commands, in a clause."""


@dataclass(frozen=True, slots=True)
class CommandedCluster(RunningCluster):
    """A running cluster whose nodes are harmed by commands.

    Attributes:
        nodes: every one.
    """

    nodes: Sequence[CommandedNode]

    @property
    def controls(self) -> frozenset[type[Target]]:
        """See :class:`harness.targets.system.System`: what all nodes have commands for."""
        return controls_of(self.nodes)

    def unsupported(self, fault: Fault) -> Unsupported | None:
        """See :class:`harness.targets.system.System`."""
        needed = [control for control in NEEDED if includes((control,), fault.needs)]
        if not needed:
            why = WHY_NOT.get(fault.needs, "it takes nodes that seawall starts itself")
            return Unsupported(f"{self.spelling!r} cannot do {fault.kind!r}: {why}.")
        for node in self.nodes:
            if (missing := node.missing(needed[0])) is not None:
                return Unsupported(f"{fault.kind!r} needs the {missing} of node {node.name}, which its file lacks.")
        if needed[0] is Links:
            return self._unsupported_cut(fault)
        if needed[0] is WallClocks and (shared := sharing(self.nodes)) is not None:
            return Unsupported(
                f"{fault.kind!r} would step a machine's clock, and {shared}.",
                "Give the nodes commands skew, unskew and now that move the clock of one process: see docs/targets.md.",
            )
        if getattr(fault, "log_dir", None) is not None:
            return Unsupported(f"{fault.kind!r} fills the disk of a node's data, and names one of them: log_dir.")
        return without_its_log(self.spelling, fault)

    def _unsupported_cut(self, fault: Fault) -> Unsupported | None:
        if len(self.nodes) == 1:
            return Unsupported(f"{fault.kind!r} cuts nodes off from each other, and the file has one.")
        if CLIENTS in nodes_named_by(fault, ("links", "between")):
            return Unsupported(f"{fault.kind!r} at clients needs commands on their machine, which is seawall's own.")
        if (locked := locked_out(self.nodes)) is not None:
            return Unsupported(f"{fault.kind!r} is not done, for {locked}.", "Run seawall on a machine of its own.")
        return None

    def configuration(self) -> Mapping[str, Any]:
        """See :class:`harness.targets.system.System`."""
        seen = {"seen_by": LOGS} if self._shows_logs() else {}
        controls = sorted(one.__name__ for one in self.controls)
        return {**RunningCluster.configuration(self), **seen, "controls": controls}

    def evidence(self) -> Mapping[str, str]:
        """See :class:`harness.targets.system.System`."""
        return {"timeline": "logs"} if self._shows_logs() else RunningCluster.evidence(self)

    def _shows_logs(self) -> bool:
        return not any(node.missing_for(SHOWS) for node in self.nodes if is_broker(node.name))

    def target(self, directory: Path, seed: int, journal: StartJournal) -> Target:
        """See :class:`harness.targets.system.System`."""
        samples = sampler(self.cluster, directory)
        logs = directory if self._shows_logs() else None
        return ClusterTarget(self.cluster, self.nodes, topic_configs(self.asked_for), journal, samples, directory=logs)


@dataclass(frozen=True, slots=True)
class CommandedSource(Bootstrap):
    """Implements :class:`harness.targets.system.SystemSource` for the cluster of a file."""

    nodes: Sequence[CommandedNode]

    def system(self, spelling: str, protocol: SpokenProtocol, scenario: Scenario) -> System:
        """See :class:`harness.targets.system.SystemSource`."""
        there, described = set(map(str, self.told.brokers)), {node.name for node in self.nodes}
        for name in sorted(there - described):
            raise UsageError(f"{spelling!r} has no node {name}, which is a broker of the cluster.")
        for name in sorted(filter(is_broker, described - there)):
            raise UsageError(f"{spelling!r} has a node {name}, which is no broker of the cluster now.")
        if not controls_of(self.nodes):
            first = next(
                f"node {node.name} lacks the {missing}" for node in self.nodes if (missing := node.missing(Kills))
            )
            raise UsageError(
                f"{spelling!r} has commands for no fault: {first}, for one.",
                "Take --target bootstrap: to have clients alone.",
            )
        running = Bootstrap.system(self, spelling, protocol, scenario)
        known = {field.name: getattr(running, field.name) for field in fields(RunningCluster)}
        return CommandedCluster(**known, nodes=self.nodes)


@dataclass(frozen=True, slots=True)
class CommandedKind(RunningKind):
    """How ``--target`` spells it; the attributes are those of :class:`harness.targets.target_kind.TargetKind`."""

    name: ClassVar[str] = NAME
    argument: ClassVar[str] = "FILE"
    leftovers: ClassVar[Leftovers] = Leftovers("harms", remove)

    def timeline(self, configuration: Mapping[str, Any]) -> Timeline:
        """See :class:`harness.targets.target_kind.TargetKind`."""
        return "logs" if configuration.get("seen_by") == LOGS else RunningKind.timeline(self, configuration)

    def source(self, argument: str) -> CommandedSource:
        """What makes a system of the cluster that the file describes.

        Raises:
            UsageError: the file is malformed.
            EnvironmentFault: no broker answers.
        """
        file = read(Path(argument))
        cluster = _named(file, Path(argument).parent)
        return CommandedSource(cluster, told_by(cluster), nodes_of(file))

    def tried(self, argument: str) -> Iterator[Tried]:
        """See :class:`harness.targets.target_kind.TargetKind`."""
        file = read(Path(argument))
        return tried(file, nodes_of(file))


def nodes_of(file: ClusterFile) -> Sequence[CommandedNode]:
    """Every node that a file describes."""
    return [CommandedNode(file, node) for node in file.nodes]


def _named(file: ClusterFile, directory: Path) -> Named:
    """Its addresses, and how clients use it in one run."""
    client = PLAINTEXT if file.client is None else read_properties(directory / file.client)
    cluster = Named(",".join(file.bootstrap), file.keep_topics, file.prefix, file.promises, client)
    return reduce(given, file.topics, cluster).of_one_run()


KIND = CommandedKind()
