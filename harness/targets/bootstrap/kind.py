"""Resolves ``--target bootstrap:HOST:PORT,...`` for the plan: asks the cluster what it is before it is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from harness.broker.settings import Settings
from harness.client_properties import ClientProperties
from harness.errors import UsageError
from harness.fault import Fault
from harness.replication.knobs import CURRENT_GENERATION
from harness.scenario import Scenario
from harness.share_ports import ShareBounds, share_bounds
from harness.target import Target
from harness.targets.bootstrap.administration import Administration
from harness.targets.bootstrap.broker_numbers import BrokerNumbers
from harness.targets.bootstrap.given_topics import Shape, refuse_unlike
from harness.targets.bootstrap.promises import UNTOLD, asked, known_settings, refuse_unmet, topic_configs
from harness.targets.bootstrap.spelling import ARGUMENT, Named, named
from harness.targets.bootstrap.target import LEFTOVERS, NAME, BootstrapTarget, sampler
from harness.targets.kafka.layout import Control
from harness.targets.leftovers import Leftovers, StartJournal
from harness.targets.system import SpokenProtocol, System, Unsupported
from harness.targets.target_kind import Timeline

METADATA = "metadata"
"""By what a run has seen the brokers, besides its clients."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a running cluster says of itself.

    Attributes:
        brokers: their ids.
        settings: of its first broker, by Kafka's names; empty: it does not say.
        withheld: why it does not say, in words; empty: it does.
        topics: those that are given to the run, by name, in the order in which they are named.
    """

    brokers: tuple[int, ...]
    settings: Mapping[str, str]
    withheld: str = ""
    topics: Mapping[str, Shape] = field(default_factory=dict)

    @property
    def numbers(self) -> BrokerNumbers:
        """What its brokers are called."""
        return BrokerNumbers(self.brokers)


@dataclass(frozen=True, slots=True)
class RunningCluster(System):
    """A running cluster that clients reach, and that seawall does not control.

    Attributes:
        spelling: see :class:`harness.targets.system.System`.
        protocol: the newest: what the cluster does not deny, it promises.
        cluster: what was named.
        told: what it says of itself.
        asked_for: what the topics of the run are created with, by the names of broker settings.
        settings: as much of them as is known.
    """

    spelling: str
    protocol: SpokenProtocol
    cluster: Named
    told: Told
    asked_for: Mapping[str, str]
    settings: Settings

    @property
    def name(self) -> str:
        """See :class:`harness.targets.system.System`."""
        return f"the running cluster at {self.cluster.bootstrap}"

    def begins(self, brokers: int) -> str:
        """See :class:`harness.targets.system.System`."""
        del brokers
        number = len(self.told.brokers)
        begins = f"connecting to {self.name}, which has {number} broker{'s' if number != 1 else ''}"
        if called := self.told.numbers.in_words():
            begins += f" ({called})"
        if not self.told.withheld:
            return begins
        taken = ", ".join(f"{name}={value}" for name, value in self._promised().items())
        return f"{begins}; {self.told.withheld}, so that this is taken as promised: {taken}"

    def known_settings(self) -> Settings:
        """See :class:`harness.targets.system.System`."""
        return self.settings

    def properties(self) -> Mapping[str, Any]:
        """See :class:`harness.targets.system.System`."""
        return {**self.asked_for, **self.cluster.promises}

    def broker_numbers(self, brokers: int) -> Sequence[int]:
        """See :class:`harness.targets.system.System`: those that it has, however many the scenario asks for."""
        del brokers
        return self.told.numbers.all()

    @property
    def control(self) -> Control:
        """See :class:`harness.targets.system.System`: which nodes they are is not known, and no fault can name one."""
        return Control.ONE

    @property
    def controls(self) -> frozenset[type[Target]]:
        """See :class:`harness.targets.system.System`."""
        return BootstrapTarget.controls

    @property
    def leaves_faults_out(self) -> bool:
        """See :class:`harness.targets.system.System`."""
        return True

    @property
    def is_sampled(self) -> bool:
        """See :class:`harness.targets.system.System`: nothing is known of its brokers' states."""
        return True

    @property
    def schedules_by_wall_clock(self) -> bool:
        """See :class:`harness.targets.system.System`."""
        return True

    @property
    def starts_cut_off(self) -> bool:
        """See :class:`harness.targets.system.System`."""
        return False

    @property
    def is_heavy(self) -> bool:
        """See :class:`harness.targets.system.System`."""
        return False

    @property
    def share_bounds(self) -> ShareBounds | None:
        """See :class:`harness.targets.system.System`; a cluster that does not tell its settings has none."""
        return share_bounds(self.told.settings)

    @property
    def prefix(self) -> str:
        """See :class:`harness.targets.system.System`."""
        return self.cluster.prefix

    @property
    def given_topics(self) -> Sequence[str]:
        """See :class:`harness.targets.system.System`."""
        return self.cluster.topics

    @property
    def client(self) -> ClientProperties:
        """See :class:`harness.targets.system.System`."""
        return self.cluster.client

    def unsupported(self, fault: Fault) -> Unsupported | None:
        """See :class:`harness.targets.system.System`."""
        return Unsupported(f"{fault.kind!r} needs more of a cluster than its addresses.")

    def configuration(self) -> Mapping[str, Any]:
        """See :class:`harness.targets.system.System`."""
        client = {"client": self.client.recorded()} if self.client.values else {}
        return {
            "settings": {**self.properties(), **self._promised()},
            "brokers": list(self.told.brokers),
            "seen_by": METADATA,
            **client,
        }

    def _promised(self) -> Mapping[str, Any]:
        names = ("min.insync.replicas", "unclean.leader.election.enable", "replica.lag.time.max.ms")
        return {name: getattr(self.settings, name.replace(".", "_")) for name in names}

    def evidence(self) -> Mapping[str, str]:
        """See :class:`harness.targets.system.System`."""
        return {"timeline": "metadata"}

    def target(self, directory: Path, seed: int, journal: StartJournal) -> Target:
        """See :class:`harness.targets.system.System`."""
        return BootstrapTarget(self.cluster, topic_configs(self.asked_for), journal, sampler(self.cluster, directory))


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Implements :class:`harness.targets.system.SystemSource` for a cluster that was named."""

    cluster: Named
    told: Told

    @property
    def generation(self) -> str:
        """See :class:`harness.targets.system.SystemSource`."""
        return CURRENT_GENERATION

    @property
    def knobs(self) -> Mapping[str, str]:
        """See :class:`harness.targets.system.SystemSource`."""
        return {}

    def refuse_switches(self, overrides: Mapping[str, str]) -> None:
        """See :class:`harness.targets.system.SystemSource`: it has none."""
        for key in overrides:
            raise UsageError(f"--set {key}: a running cluster has no such switch, only the built-in cluster has.")

    def system(self, spelling: str, protocol: SpokenProtocol, scenario: Scenario) -> System:
        """See :class:`harness.targets.system.SystemSource`."""
        written = scenario.cluster.settings
        if scenario.schedule is not None:
            raise UsageError(
                f"scenario {scenario.id!r} is a schedule, whose steps need brokers that seawall looks into.",
                "Run one with random faults there, such as random-chaos, or a copy of it with other faults.",
            )
        for topic in scenario.topics:
            if topic.replication_factor > len(self.told.brokers):
                raise UsageError(
                    f"topic {topic.name!r} has {topic.replication_factor} replicas, and {spelling!r} has "
                    f"{len(self.told.brokers)} broker(s).",
                    f"Take --set topic.replication_factor={len(self.told.brokers)}.",
                )
        wanted = [Shape(topic.partitions, topic.replication_factor) for topic in scenario.topics]
        refuse_unlike(wanted, self.told.topics, spelling)
        refuse_unmet(written, self.told.settings, spelling)
        asked_for = asked(written, UNTOLD if self.told.withheld else self.told.settings)
        settings = known_settings(self.told.settings, asked_for, self.cluster.promises)
        least = min(topic.replication_factor for topic in scenario.topics)
        if settings.min_insync_replicas > least:
            raise UsageError(
                f"min.insync.replicas is {settings.min_insync_replicas}, and a topic has {least} replica(s): nothing "
                "would be acknowledged with acks=all.",
                f"Take --set settings.min.insync.replicas={least}.",
            )
        return RunningCluster(spelling, protocol, self.cluster, self.told, asked_for, settings)


def told_by(cluster: Named) -> Told:
    """What a running cluster tells of itself.

    Raises:
        EnvironmentFault: no broker answers, or it has no such topic.
    """
    administration = Administration(cluster.access)
    brokers = tuple(administration.brokers())
    settings = administration.broker_configs(brokers[0]) if brokers else {}
    topics = {name: administration.shape(name) for name in cluster.topics}
    return Told(brokers, settings, administration.withheld, topics)


@dataclass(frozen=True, slots=True)
class RunningKind:
    """What kinds of targets that run already have in common; see :class:`harness.targets.target_kind.TargetKind`."""

    in_virtual_time: ClassVar[bool] = False
    runs_releases: ClassVar[bool] = True
    needs_loopback: ClassVar[bool] = False
    with_pattern: ClassVar[None] = None
    name: ClassVar[str]
    argument: ClassVar[str]

    @property
    def spelling(self) -> str:
        """As messages show it."""
        return f"{self.name}:{self.argument}"

    def timeline(self, configuration: Mapping[str, Any]) -> Timeline:
        """See :class:`harness.targets.target_kind.TargetKind`; an audit's run has no such samples."""
        return "metadata" if configuration.get("seen_by") == METADATA else "none"

    def may_combine(self, argument: str) -> bool:
        """Whether brokers may also be controllers; that is for the cluster to know."""
        del argument
        return True


@dataclass(frozen=True, slots=True)
class BootstrapKind(RunningKind):
    """How ``--target`` spells it; the attributes are those of :class:`harness.targets.target_kind.TargetKind`."""

    tried: ClassVar[None] = None
    name: ClassVar[str] = NAME
    argument: ClassVar[str] = ARGUMENT
    leftovers: ClassVar[Leftovers] = LEFTOVERS

    def source(self, argument: str) -> Bootstrap:
        """What makes a system of the cluster that the argument names.

        Raises:
            UsageError: the argument is malformed.
            EnvironmentFault: no broker answers.
        """
        cluster = named(argument).of_one_run()
        return Bootstrap(cluster, told_by(cluster))


KIND = BootstrapKind()


def without_its_log(spelling: str, fault: Fault) -> Unsupported | None:
    """Why a cluster whose brokers' own logs are not read cannot have ``fault``; None: that does not matter."""
    if not getattr(fault, "must_refuse", False):
        return None
    return Unsupported(
        f"{fault.kind!r} with must_refuse is proven by the broker's own log, and that of {spelling!r} is not known.",
        "Leave must_refuse out: then a file that does not fit on the disk is the proof.",
    )
