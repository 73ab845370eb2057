"""The part of a plan for real Kafka: the source of the release, and its brokers' configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.broker.settings import Settings
from harness.errors import UsageError
from harness.fault import Fault, nodes_named_by
from harness.model import CONTROLLER
from harness.payload import Carried
from harness.scenario import Scenario
from harness.share_ports import ShareBounds, share_bounds
from harness.spelling import as_text
from harness.target import Target, includes
from harness.targets.kafka.layout import Control
from harness.targets.kafka.releases import Release, numbers
from harness.targets.kafka.server_properties import DEFAULTS, KafkaSettings, understood
from harness.targets.kafka.setting_names import LOG_DIRS_COUNT
from harness.targets.kafka.source import KafkaSource
from harness.targets.leftovers import StartJournal
from harness.targets.system import SpokenProtocol, System, Unsupported

_FIRST_IDEMPOTENT = numbers("0.11")

_MESSAGE_FORMAT, _TIMESTAMP_TYPE = "log.message.format.version", "log.message.timestamp.type"
_FORMAT_VERSION = re.compile(r"\d+\.\d+")
_FIRST_TIMESTAMPS, _FIRST_HEADERS = numbers("0.10"), numbers("0.11")
"""Message formats v1 (KIP-32) and v2 (KIP-98, KIP-82)."""


@dataclass(frozen=True, slots=True)
class RealKafka(System):
    """A release of Kafka.

    Attributes:
        spelling: see :class:`harness.targets.system.System`.
        protocol: see :class:`harness.targets.system.System`.
        source: the release, and the way in which it is run.
        brokers: how many.
        settings: of every broker.
    """

    spelling: str
    protocol: SpokenProtocol
    source: KafkaSource
    brokers: int
    settings: KafkaSettings

    @property
    def name(self) -> str:
        """See :class:`harness.targets.system.System`."""
        return f"Kafka {self.release}"

    @property
    def release(self) -> str:
        """See :class:`harness.targets.system.System`."""
        return self.source.release.version

    @property
    def control(self) -> Control:
        """See :class:`harness.targets.system.System`."""
        return self.source.control

    @property
    def controls(self) -> frozenset[type[Target]]:
        """See :class:`harness.targets.system.System`."""
        return self.source.controls

    @property
    def carried(self) -> Carried:
        """See :class:`harness.targets.system.System`.

        From 3.0 on Kafka may write newer records than ``log.message.format.version`` asks for (KIP-724): then less is
        sent than it would store.
        """
        known, release = self.settings.properties, self.source.release
        asked = _FORMAT_VERSION.match(known.get(_MESSAGE_FORMAT, ""))
        written = min(release.numbers, numbers(asked[0]) if asked else release.numbers)
        stamped_by_client = known.get(_TIMESTAMP_TYPE, "CreateTime") == "CreateTime"
        return Carried(written >= _FIRST_HEADERS, written >= _FIRST_TIMESTAMPS and stamped_by_client)

    @property
    def share_bounds(self) -> ShareBounds | None:
        """See :class:`harness.targets.system.System`."""
        return share_bounds(self.settings.properties)

    @property
    def leaves_faults_out(self) -> bool:
        """See :class:`harness.targets.system.System`."""
        return self.source.leaves_faults_out

    @property
    def is_sampled(self) -> bool:
        """See :class:`harness.targets.system.System`."""
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
        return True

    def known_settings(self) -> Settings:
        """See :class:`harness.targets.system.System`."""
        return Settings.known_of({**DEFAULTS, **self.settings.properties, LOG_DIRS_COUNT: len(self.settings.log_dirs)})

    def properties(self) -> Mapping[str, Any]:
        """See :class:`harness.targets.system.System`."""
        return self.settings.properties

    def unsupported(self, fault: Fault) -> Unsupported | None:
        """See :class:`harness.targets.system.System`."""
        if not includes(self.controls, fault.needs):
            why = self.source.why_not(fault.needs)
            return Unsupported(f"target {self.spelling!r} cannot do {fault.kind!r}.", why)
        if CONTROLLER in nodes_named_by(fault, self.source.never_the_controller):
            return Unsupported(
                f"{fault.kind!r} at the controller, and in {self.spelling!r} brokers are the controllers.",
                "Choose a target whose controllers are nodes of their own.",
            )
        return None

    def configuration(self) -> Mapping[str, Any]:
        """See :class:`harness.targets.system.System`."""
        settings = {**self.settings.properties, LOG_DIRS_COUNT: len(self.settings.log_dirs)}
        return {"settings": settings, **self.source.in_words()}

    def versions(self) -> Mapping[str, str]:
        """See :class:`harness.targets.system.System`."""
        return {"kafka": self.release, **self.source.versions()}

    def evidence(self) -> Mapping[str, str]:
        """See :class:`harness.targets.system.System`."""
        return {"timeline": "sampled"}

    def target(self, directory: Path, seed: int, journal: StartJournal) -> Target:
        """See :class:`harness.targets.system.System`. Chance decides nothing that a seed could fix."""
        return self.source.target(directory, self.brokers, self.settings, journal)


def knows_idempotence(version: str) -> bool:
    """Whether a release, or the generation of that name, has idempotent producers (KIP-98)."""
    return numbers(version) >= _FIRST_IDEMPOTENT


def configured(target: str, source: KafkaSource, protocol: SpokenProtocol, scenario: Scenario) -> RealKafka:
    """The Kafka to run for a scenario, whose ``overrides`` have been applied.

    Raises:
        UsageError: the scenario needs a feature of the built-in cluster that this release lacks.
        EnvironmentFault: there is no Java to run it.
    """
    _refuse_foreign(source.release, scenario)
    return RealKafka(target, protocol, source, scenario.cluster.brokers, source.settings(scenario))


def beyond(release: Release, scenario: Scenario) -> UsageError | None:
    """The error for what ``scenario`` needs of the built-in cluster and ``release`` lacks; None: nothing."""
    try:
        _refuse_foreign(release, scenario)
        understood(scenario.cluster.settings, release, scenario.cluster.brokers)
    except UsageError as error:
        return error
    return None


def _refuse_foreign(release: Release, scenario: Scenario) -> None:
    """Refuse needs beside settings."""
    name = f"scenario {scenario.id!r}"
    for knob, value in scenario.replication.items():
        if release.family.knobs.get(knob) != as_text(value):
            raise UsageError(
                f"{name} switches {knob} to {as_text(value)}, which Kafka {release.version} cannot.",
                "Run it on the built-in target.",
            )
    idempotent = any(step.send is not None and step.send.idempotent for step in scenario.schedule or ())
    if idempotent and not knows_idempotence(release.version):
        raise UsageError(f"{name} numbers its batches, which Kafka {release.version} does not know yet.")
