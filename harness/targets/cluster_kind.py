"""Describes a kind of target that runs any generation of the replication protocol, such as ``builtin``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from harness.broker.settings import Settings
from harness.replication.knobs import Knobs
from harness.target import Target


class StartJournal(Protocol):
    """Records what a target starts, so that ``seawall heal`` finds it when the harness has been killed."""

    def node_started(self, name: str, pid: int) -> None:
        """Record that node ``name`` is process ``pid`` now."""
        ...

    def project_coming(self, name: str, containers: Sequence[str]) -> None:
        """Record the names of the Compose project and its containers before they exist."""
        ...


class MakeCluster(Protocol):
    """Makes a target that is not started."""

    def __call__(
        self, directory: Path, brokers: int, knobs: Knobs, settings: Settings, *, seed: int, journal: StartJournal
    ) -> Target:
        """Make it.

        Args:
            directory: where it keeps its files.
            brokers: how many brokers, with the ids 0, 1, 2 ...
            knobs: the generation of the replication protocol.
            settings: Kafka's settings, for every broker.
            seed: of a simulated target's random choices.
            journal: records what it starts.
        """
        ...


@dataclass(frozen=True, slots=True)
class ClusterKind:
    """The spelling of such a kind, and how to make a cluster of it.

    Attributes:
        name: as ``--target`` spells it.
        controls: what can be done to such a cluster; see :mod:`harness.controls`.
        make: makes one.
        in_virtual_time: whether it is simulated: then what ``make`` returns has a ``clock`` of virtual time and the
            simulated ``cluster``, inside which the clients run.
        runs_releases: whether it runs a release of Kafka, which ``--target`` names after a colon. This kind does not,
            see :class:`harness.targets.kafka.source.SourceKind`.
        argument: what follows the colon, in a word; empty: there is none.
        runs_in_containers: whether its nodes are containers, which ``seawall heal`` looks for with the Docker engine.
        with_pattern: None: no services run Kafka.
    """

    runs_releases: ClassVar[bool] = False
    argument: ClassVar[str] = ""
    runs_in_containers: ClassVar[bool] = False
    with_pattern: ClassVar[None] = None

    name: str
    controls: frozenset[type[Target]]
    make: MakeCluster
    in_virtual_time: bool = False

    @property
    def spelling(self) -> str:
        """As messages show it."""
        return self.name

    @property
    def needs_loopback(self) -> bool:
        """Whether each of its nodes has a loopback address of its own."""
        return not self.in_virtual_time

    def find(self, argument: str) -> None:
        """The source that the argument names: none, as it runs a generation of the protocol."""

    def may_combine(self, argument: str) -> bool:
        """Whether brokers may also be controllers."""
        del argument
        return False
