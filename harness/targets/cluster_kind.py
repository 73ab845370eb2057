"""Describes a kind of target that runs any generation of the replication protocol, such as ``builtin``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from harness.broker.settings import Settings
from harness.client_ports import Clients
from harness.clock import PacedClock
from harness.errors import UsageError
from harness.fault import Fault
from harness.observations import BrokerEvidence
from harness.replication.knobs import Knobs
from harness.scenario import Scenario
from harness.target import Target, includes
from harness.targets.kafka.layout import Control
from harness.targets.leftovers import Leftovers, StartJournal
from harness.targets.system import SpokenProtocol, System, Unsupported
from harness.targets.target_kind import Timeline


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
        leftovers: as the others, see :class:`harness.targets.target_kind.TargetKind`.
    """

    runs_releases: ClassVar[bool] = False
    argument: ClassVar[str] = ""
    with_pattern: ClassVar[None] = None
    tried: ClassVar[None] = None

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
        """See :class:`harness.targets.target_kind.TargetKind`."""
        return not self.in_virtual_time

    def timeline(self, configuration: Mapping[str, Any]) -> Timeline:
        """See :class:`harness.targets.target_kind.TargetKind`."""
        del configuration
        return "whole" if includes(self.controls, BrokerEvidence) else "none"

    def source(self, argument: str) -> AnyGeneration:
        """What makes a system of it, which runs any generation of the protocol."""
        assert not argument, "such a kind has no argument"
        return AnyGeneration(self)

    def may_combine(self, argument: str) -> bool:
        """Whether brokers may also be controllers."""
        del argument
        return False


@dataclass(frozen=True, slots=True)
class AnyGeneration:
    """Implements :class:`harness.targets.system.SystemSource` for seawall's own brokers."""

    kind: ClusterKind

    @property
    def generation(self) -> None:
        """See :class:`harness.targets.system.SystemSource`."""

    @property
    def knobs(self) -> Mapping[str, str]:
        """See :class:`harness.targets.system.SystemSource`."""
        return {}

    def refuse_switches(self, overrides: Mapping[str, str]) -> None:
        """See :class:`harness.targets.system.SystemSource`: each knob is one."""

    def system(self, spelling: str, protocol: SpokenProtocol, scenario: Scenario) -> System:
        """See :class:`harness.targets.system.SystemSource`."""
        cluster = scenario.cluster
        return BuiltInSystem(self.kind, spelling, protocol, cluster.brokers, cluster.settings, _settings(scenario))


@dataclass(frozen=True, slots=True)
class BuiltInSystem(System):
    """A generation of the replication protocol, on brokers of seawall's own.

    Attributes:
        kind: of the target.
        spelling: see :class:`System`.
        protocol: see :class:`System`.
        brokers: how many.
        written: the settings that the scenario has.
        settings: of every broker.
    """

    kind: ClusterKind
    spelling: str
    protocol: SpokenProtocol
    brokers: int
    written: Mapping[str, Any]
    settings: Settings

    @property
    def name(self) -> str:
        """See :class:`System`."""
        return self.version

    def known_settings(self) -> Settings:
        """See :class:`System`."""
        return self.settings

    def properties(self) -> Mapping[str, Any]:
        """See :class:`System`."""
        return self.written

    @property
    def control(self) -> Control:
        """See :class:`System`."""
        return Control.ONE

    @property
    def controls(self) -> frozenset[type[Target]]:
        """See :class:`System`."""
        return self.kind.controls

    @property
    def is_sampled(self) -> bool:
        """See :class:`System`."""
        return False

    @property
    def schedules_by_wall_clock(self) -> bool:
        """See :class:`System`."""
        return False

    @property
    def starts_cut_off(self) -> bool:
        """See :class:`System`."""
        return True

    @property
    def is_heavy(self) -> bool:
        """See :class:`System`."""
        return False

    def unsupported(self, fault: Fault) -> Unsupported | None:
        """See :class:`System`."""
        if includes(self.controls, fault.needs):
            return None
        return Unsupported(f"target {self.spelling!r} cannot do {fault.kind!r}.")

    def arguments(self) -> Sequence[str]:
        """See :class:`System`."""
        return "--generation", self.protocol.generation

    def configuration(self) -> Mapping[str, Any]:
        """See :class:`System`."""
        return {"settings": {name.replace("_", "."): value for name, value in asdict(self.settings).items()}}

    def evidence(self) -> Mapping[str, str]:
        """See :class:`System`."""
        time = {"time": "virtual"} if self.kind.in_virtual_time else {}
        timeline = self.kind.timeline({})
        return time if timeline == "whole" else {**time, "timeline": timeline}

    def target(self, directory: Path, seed: int, journal: StartJournal) -> Target:
        """See :class:`System`."""
        knobs = self.protocol.knobs
        return self.kind.make(directory, self.brokers, knobs, self.settings, seed=seed, journal=journal)


def _settings(scenario: Scenario) -> Settings:
    try:
        settings = Settings.parse(dict(scenario.cluster.settings))
    except UsageError as error:
        raise UsageError(f"cluster.settings: {error.sentence}", error.remedy) from None
    if settings.replica_fetch_wait_max_ms >= settings.replica_socket_timeout_ms:
        raise UsageError(
            f"cluster.settings: replica.fetch.wait.max.ms, {settings.replica_fetch_wait_max_ms}, is not below "
            f"replica.socket.timeout.ms, {settings.replica_socket_timeout_ms}: every parked fetch would time out."
        )
    if settings.broker_heartbeat_interval_ms >= settings.broker_session_timeout_ms:
        raise UsageError(
            f"cluster.settings: broker.heartbeat.interval.ms, {settings.broker_heartbeat_interval_ms}, is not below "
            f"broker.session.timeout.ms, {settings.broker_session_timeout_ms}: every session would expire."
        )
    return settings
