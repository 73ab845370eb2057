"""Resolves ``--target process:RELEASE`` for the plan, before any process starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.scenario import Scenario
from harness.target import Target
from harness.targets.kafka import local
from harness.targets.kafka.disks import NEEDS_SHIM
from harness.targets.kafka.jvm import java_version, refuse_old_java
from harness.targets.kafka.layout import Control
from harness.targets.kafka.local import LocalKafka
from harness.targets.kafka.process import ProcessTarget, controls
from harness.targets.kafka.releases import Release
from harness.targets.kafka.server_properties import KafkaSettings, understood
from harness.targets.kafka.source_kind import SourceKind
from harness.targets.leftovers import StartJournal


@dataclass(frozen=True, slots=True)
class ProcessSource:
    """Implements :class:`harness.targets.kafka.source.KafkaSource`."""

    kafka: LocalKafka
    leaves_faults_out: bool = False

    @property
    def release(self) -> Release:
        """The release that every node runs."""
        return self.kafka.release

    @property
    def control(self) -> Control:
        """Which nodes are controllers."""
        return self.kafka.control

    @property
    def controls(self) -> frozenset[type[Target]]:
        """All controls, or without a C compiler those that do not need the shim."""
        return controls()

    @property
    def never_the_controller(self) -> tuple[str, ...]:
        """The fields with links: combined brokers cannot be cut off from the controllers alone."""
        return ("links", "between") if self.control is Control.COMBINED else ()

    def why_not(self, control: type[Target]) -> str:
        """See :class:`harness.targets.kafka.source.KafkaSource`."""
        return "It takes a C compiler: see `seawall doctor`." if control in NEEDS_SHIM else ""

    def in_words(self) -> Mapping[str, Any]:
        """Nothing beside the release."""
        return {}

    def versions(self) -> Mapping[str, str]:
        """The Java of this machine."""
        return {"java": java_version()}

    def settings(self, scenario: Scenario) -> KafkaSettings:
        """As the scenario has them; see :class:`harness.targets.kafka.source.KafkaSource`."""
        brokers = scenario.cluster.brokers
        settings = understood(scenario.cluster.settings, self.release, brokers)
        refuse_old_java()
        self.kafka.refuse_few(brokers)
        return settings

    def target(self, directory: Path, brokers: int, settings: KafkaSettings, journal: StartJournal) -> ProcessTarget:
        """See :class:`harness.targets.kafka.source.KafkaSource`."""
        return ProcessTarget(directory, brokers, self.kafka, settings, journal.node_started)


def find(spelling: str) -> ProcessSource:
    """The source that ``spelling``, without the prefix, names. Raises as :func:`harness.targets.kafka.local.find`."""
    return ProcessSource(local.find(spelling))


def _may_combine(spelling: str) -> bool:
    return spelling.partition(local.CONTROL_MARK)[2] == Control.COMBINED.value


KIND = SourceKind("process", "RELEASE", find, _may_combine)
"""The argument is a release, or the path of an unpacked one, and optionally ``#`` with the kind of control."""
