"""Describes a kind of target that runs any generation of the replication protocol, such as ``builtin``.

It says besides what every target, those of real Kafka too, records so that ``seawall heal`` finds what it started.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from harness.broker.settings import Settings
from harness.client_ports import Clients
from harness.clock import PacedClock
from harness.replication.knobs import Knobs
from harness.target import Target


class StartJournal(Protocol):
    """Records what a target starts, so that ``seawall heal`` finds it when the harness has been killed."""

    def node_started(self, name: str, pid: int) -> None:
        """Record that node ``name`` is process ``pid`` now."""
        ...

    def leftover_coming(self, kind: str, what: Mapping[str, Any]) -> None:
        """Record something that does not end with this process and its nodes, before it exists.

        Args:
            kind: the name of the kind of target whose :class:`Leftovers` remove it.
            what: names it, as JSON has it; :attr:`Leftovers.remove` is called with that.

        Raises:
            EnvironmentFault: a plugin's kind has no :class:`Leftovers`.
        """
        ...


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What a seawall that was killed leaves of a kind of target beside processes and its run directory.

    Attributes:
        plural: what they are, in messages, such as ``containers``.
        remove: removes what :meth:`StartJournal.leftover_coming` has recorded, as far as it is there, and returns the
            name of each thing that it has removed. It is called in another process, and again while it raises
            ``EnvironmentFault``: it cannot be done now.
        remove_lost: removes what no journal names any more, but what certainly belongs to a seawall of this user that
            has ended; returns one line for each thing. A kind that cannot know that has none.
    """

    plural: str
    remove: Callable[[Mapping[str, Any]], Sequence[str]]
    remove_lost: Callable[[], Sequence[str]] = list


class InVirtualTime(Target, Protocol):
    """A target that lives in this process, in a time of its own, as the clients of its runs do."""

    @property
    def clock(self) -> PacedClock:
        """The clock of its runs: while the runner sleeps on it, and only then, time passes for nodes and clients."""
        ...

    def new_clients(self) -> Clients:
        """Clients of the started cluster, whose tasks run while time passes."""
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
        in_virtual_time: whether what ``make`` returns is :class:`InVirtualTime`.
        runs_releases: whether it runs a release of Kafka, which ``--target`` names after a colon. This kind does not,
            see :class:`harness.targets.kafka.source.SourceKind`.
        argument: what follows the colon, in a word; empty: there is none.
        with_pattern: None: no services run Kafka.
        leftovers: how ``seawall heal`` ends what its targets record as coming; None: they leave nothing but processes
            and files of the run directory.
    """

    runs_releases: ClassVar[bool] = False
    argument: ClassVar[str] = ""
    with_pattern: ClassVar[None] = None

    name: str
    controls: frozenset[type[Target]]
    make: MakeCluster
    in_virtual_time: bool = False
    leftovers: Leftovers | None = None

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
