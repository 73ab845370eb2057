"""The protocol by which the plan asks about a target of real Kafka before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from harness.scenario import Scenario
from harness.target import Target
from harness.targets.kafka.layout import Control
from harness.targets.kafka.releases import Release
from harness.targets.kafka.server_properties import KafkaSettings
from harness.targets.leftovers import StartJournal


class KafkaSource(Protocol):
    """A Kafka release, and how a target runs it."""

    @property
    def release(self) -> Release:
        """The release that every node runs."""
        ...

    @property
    def control(self) -> Control:
        """Which nodes are controllers."""
        ...

    @property
    def controls(self) -> frozenset[type[Target]]:
        """What can be done to its nodes on this machine."""
        ...

    @property
    def leaves_faults_out(self) -> bool:
        """Whether random chaos skips the faults that it lacks, with the reason, instead of refusing to run."""
        ...

    @property
    def never_the_controller(self) -> tuple[str, ...]:
        """The fields of a fault that cannot be ``controller``."""
        ...

    def why_not(self, control: type[Target]) -> str:
        """Why it lacks that control, in a sentence that names the remedy."""
        ...

    def in_words(self) -> Mapping[str, Any]:
        """Its part of the configuration in ``run.json`` beside the release, as plain data."""
        ...

    def versions(self) -> Mapping[str, str]:
        """The versions of the software that runs Kafka, by name, for ``run.json``."""
        ...

    def settings(self, scenario: Scenario) -> KafkaSettings:
        """The settings of every broker in a run of ``scenario``.

        Raises:
            UsageError: the scenario has settings or a number of brokers that it does not support.
            EnvironmentFault: this machine lacks a program.
        """
        ...

    def target(self, directory: Path, brokers: int, settings: KafkaSettings, journal: StartJournal) -> Target:
        """The target, not started. It keeps its files below ``directory`` and records in ``journal`` what it starts."""
        ...
