"""Answers the plan's questions about ``--target compose:FILE`` before any container starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.model import CONTROLLER
from harness.scenario import Scenario
from harness.target import Target
from harness.targets.compose.agreement import agreed
from harness.targets.compose.inspected_stack import InspectedStack
from harness.targets.compose.leftovers import NAME
from harness.targets.compose.target import ComposeTarget
from harness.targets.kafka.layout import Control
from harness.targets.kafka.releases import Release
from harness.targets.kafka.server_properties import KafkaSettings, alike, understood
from harness.targets.leftovers import StartJournal


@dataclass(frozen=True, slots=True)
class ComposeSource:
    """Implements :class:`harness.targets.kafka.source.KafkaSource`."""

    kafka: InspectedStack
    leaves_faults_out: bool = True
    never_the_controller: tuple[str, ...] = ()

    @property
    def release(self) -> Release:
        """The release in every image."""
        return self.kafka.release

    @property
    def control(self) -> Control:
        """Which nodes are controllers: all dedicated ones of the file are one node."""
        return Control.ONE if CONTROLLER in self.kafka.file.nodes else Control.COMBINED

    @property
    def controls(self) -> frozenset[type[Target]]:
        """What can be done to its containers on this machine."""
        return self.kafka.controls

    def why_not(self, control: type[Target]) -> str:
        """See :class:`harness.targets.kafka.source.KafkaSource`."""
        return self.kafka.lacks.get(control, "")

    def in_words(self) -> Mapping[str, Any]:
        """The file, and which service each node is."""
        return {"compose": self.kafka.in_words()}

    def versions(self) -> Mapping[str, str]:
        """None: the images contain what runs Kafka."""
        return {}

    def settings(self, scenario: Scenario) -> KafkaSettings:
        """The scenario's, then the file's; see :class:`harness.targets.kafka.source.KafkaSource`."""
        wanted, written, file = scenario.cluster.brokers, scenario.cluster.settings, self.kafka.file
        if len(file.brokers) != wanted:
            names = ", ".join(broker.name for broker in file.brokers)
            raise UsageError(
                f"scenario {scenario.id!r} is about {wanted} brokers, and {file.path} has "
                f"{len(file.brokers)}: {names}.",
                _remedy(len(file.brokers), wanted),
            )
        own = agreed(file, alike(self.release).difference(written))
        settings = understood({**own, **written}, self.release, wanted)
        if len(settings.log_dirs) > 1:
            raise UsageError(
                f"scenario {scenario.id!r} has {len(settings.log_dirs)} log directories for each broker, "
                "and a broker in a container has one volume.",
                "Run it with --target process:.",
            )
        return settings

    def target(self, directory: Path, brokers: int, settings: KafkaSettings, journal: StartJournal) -> ComposeTarget:
        """See :class:`harness.targets.kafka.source.KafkaSource`; the file has the number of brokers."""
        return ComposeTarget(directory, self.kafka, settings, partial(journal.leftover_coming, NAME))


def _remedy(there: int, wanted: int) -> str:
    """The remedy for a file whose number of brokers differs from the scenario's."""
    if there > wanted:
        return "Choose another file, or the brokers that are meant with --service-pattern."
    missing = wanted - there
    more = "one more service" if missing == 1 else f"{missing} more services"
    alone = " Of one broker alone nothing is replicated." if there == 1 else ""
    return (
        f"Give it {more} with an id, a name and listeners of its own, in the quorum or at the ZooKeeper of the others: "
        f"compose/kafka-kraft.yml and compose/kafka-zookeeper.yml have three.{alone}"
    )
