"""The system under test, as a plan knows it: all that a run asks about it, whatever kind of target runs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from harness.broker.settings import Settings
from harness.client_properties import PLAINTEXT, ClientProperties
from harness.fault import Fault
from harness.payload import EVERYTHING, Carried
from harness.replication.knobs import Knobs
from harness.scenario import Scenario
from harness.share_ports import ShareBounds
from harness.target import Target
from harness.targets.kafka.layout import Control
from harness.targets.leftovers import StartJournal


class Unsupported(NamedTuple):
    """Why a fault cannot be injected: what follows its path in a message, and the remedy, which may be empty."""

    what: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class SpokenProtocol:
    """The replication protocol that a cluster speaks.

    Attributes:
        generation: its name.
        knobs: of the generation, overrides applied.
    """

    generation: str
    knobs: Knobs


class System(ABC):
    """A generation of the replication protocol, or a release of Kafka, configured for one scenario.

    Attributes:
        spelling: the target, as ``--target`` spells it.
        protocol: what its brokers speak to each other.
    """

    spelling: str
    protocol: SpokenProtocol

    @property
    @abstractmethod
    def name(self) -> str:
        """In words."""

    def broker_numbers(self, brokers: int) -> Sequence[int]:
        """The numbers of its brokers for a scenario with so many."""
        return range(brokers)

    def begins(self, brokers: int) -> str:
        """What the run does first, in words, for a scenario with so many brokers."""
        return f"starting {self.control.in_words(brokers)}, {self.name}"

    @property
    def prefix(self) -> str:
        """With what the names of topics, groups and transactional ids begin, for others use the cluster, too."""
        return ""

    @property
    def given_topics(self) -> Sequence[str]:
        """Topics of the cluster that take the place of the scenario's first topics, in this order."""
        return ()

    @property
    def client(self) -> ClientProperties:
        """What its clients need besides addresses."""
        return PLAINTEXT

    @property
    def release(self) -> str | None:
        """Which release of Kafka it is; None: seawall's own brokers."""
        return None

    @property
    def version(self) -> str:
        """The release, or else the generation, as messages name it."""
        return self.release or f"generation {self.protocol.generation}"

    @abstractmethod
    def known_settings(self) -> Settings:
        """As much of its settings as the built-in cluster has, too: promises are made from them."""

    @abstractmethod
    def properties(self) -> Mapping[str, Any]:
        """The settings that its brokers were given, by Kafka's names; without those that they take by default."""

    @property
    @abstractmethod
    def control(self) -> Control:
        """Which nodes are controllers."""

    @property
    @abstractmethod
    def controls(self) -> frozenset[type[Target]]:
        """What can be done to it; see :mod:`harness.controls`."""

    @property
    def share_bounds(self) -> ShareBounds | None:
        """What its brokers permit to share groups; None: they have none whose limit of deliveries can be set."""
        return None

    @property
    def carried(self) -> Carried:
        """What of a record it stores as its client sent it."""
        return EVERYTHING

    @property
    def leaves_faults_out(self) -> bool:
        """Whether random chaos skips the faults that it lacks, with the reason, instead of refusing to run."""
        return False

    @property
    @abstractmethod
    def is_sampled(self) -> bool:
        """Whether its brokers are watched from outside, so that its timeline may lack changes."""

    @property
    @abstractmethod
    def schedules_by_wall_clock(self) -> bool:
        """Whether a node whose wall clock was moved may put off what it has to do until the clock is there again."""

    @property
    @abstractmethod
    def starts_cut_off(self) -> bool:
        """Whether a broker that can reach no other node starts all the same."""

    @property
    @abstractmethod
    def is_heavy(self) -> bool:
        """Whether its nodes need all processors while they start."""

    @abstractmethod
    def unsupported(self, fault: Fault) -> Unsupported | None:
        """Why ``fault`` cannot be injected; None: it can."""

    def arguments(self) -> Sequence[str]:
        """What ``seawall run`` needs besides the target to run the same system."""
        return ()

    @abstractmethod
    def configuration(self) -> Mapping[str, Any]:
        """Its part of the configuration in ``run.json``: ``settings``, and what else there is, as plain data."""

    def versions(self) -> Mapping[str, str]:
        """The versions of the software that runs it, by name, for ``run.json``."""
        return {}

    def evidence(self) -> Mapping[str, str]:
        """The guarantees in ``run.json`` that say what its evidence is."""
        return {}

    @abstractmethod
    def target(self, directory: Path, seed: int, journal: StartJournal) -> Target:
        """The target, not started. It keeps its files below ``directory`` and records in ``journal`` what it starts."""


class SystemSource(Protocol):
    """What ``--target`` names: from a scenario it makes the system of a run."""

    @property
    def generation(self) -> str | None:
        """The only generation of the protocol that it speaks; None: any."""
        ...

    @property
    def knobs(self) -> Mapping[str, str]:
        """How it differs from that generation, as ``--set replication.KNOB`` would spell it."""
        ...

    def refuse_switches(self, overrides: Mapping[str, str]) -> None:
        """Refuse overrides of the protocol that it does not know.

        Raises:
            UsageError: names the first.
        """
        ...

    def system(self, spelling: str, protocol: SpokenProtocol, scenario: Scenario) -> System:
        """The system of a run of ``scenario``, whose overrides have been applied.

        Args:
            spelling: the target, as ``--target`` spells it.
            protocol: that it is to speak.
            scenario: of the run.

        Raises:
            UsageError: the scenario needs what it cannot do, or a setting is wrong.
            EnvironmentFault: this machine lacks something.
        """
        ...
