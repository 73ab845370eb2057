"""Describes a kind of target that runs a release of Kafka, such as ``process:4.3.0``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from harness.errors import UsageError
from harness.scenario import Scenario
from harness.targets.kafka.source import KafkaSource
from harness.targets.kafka.system import configured
from harness.targets.leftovers import Leftovers
from harness.targets.system import SpokenProtocol, System
from harness.targets.target_kind import Timeline


@dataclass(frozen=True, slots=True)
class SourceKind:
    """How ``--target`` spells a kind of source.

    Attributes:
        name: what stands before the colon.
        argument: what follows it, in a word. A shell is offered the releases that were fetched for ``RELEASE``, and
            files of YAML for ``FILE``.
        find: the source that the argument names; raises ``UsageError`` and ``EnvironmentFault``.
        may_combine: whether brokers may also be controllers, by the argument.
        with_pattern: the argument with a pattern of the names of the services that run Kafka; None: it has no services.
        leftovers: as the others, see :class:`harness.targets.target_kind.TargetKind`.
    """

    in_virtual_time: ClassVar[bool] = False
    runs_releases: ClassVar[bool] = True
    needs_loopback: ClassVar[bool] = False
    tried: ClassVar[None] = None

    name: str
    argument: str
    find: Callable[[str], KafkaSource]
    may_combine: Callable[[str], bool]
    with_pattern: Callable[[str, str], str] | None = None
    leftovers: Leftovers | None = None

    @property
    def spelling(self) -> str:
        """As messages show it."""
        return f"{self.name}:{self.argument}"

    def timeline(self, configuration: Mapping[str, Any]) -> Timeline:
        """See :class:`harness.targets.target_kind.TargetKind`."""
        del configuration
        return "sampled"

    def source(self, argument: str) -> OneRelease:
        """What makes a system of the release that the argument names. Raises as :attr:`find`."""
        return OneRelease(self.find(argument))


@dataclass(frozen=True, slots=True)
class OneRelease:
    """Implements :class:`harness.targets.system.SystemSource` for a release of Kafka."""

    kafka: KafkaSource

    @property
    def generation(self) -> str:
        """See :class:`harness.targets.system.SystemSource`."""
        return self.kafka.release.generation

    @property
    def knobs(self) -> Mapping[str, str]:
        """See :class:`harness.targets.system.SystemSource`."""
        return self.kafka.release.family.knobs

    def refuse_switches(self, overrides: Mapping[str, str]) -> None:
        """See :class:`harness.targets.system.SystemSource`: it has none."""
        for key in overrides:
            version = self.kafka.release.version
            raise UsageError(f"--set {key}: Kafka {version} has no such switch, only the built-in cluster has.")

    def system(self, spelling: str, protocol: SpokenProtocol, scenario: Scenario) -> System:
        """See :class:`harness.targets.system.SystemSource`."""
        return configured(spelling, self.kafka, protocol, scenario)
