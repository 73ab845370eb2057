"""What a plan for real Kafka has besides: the release that is run, and its brokers' configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from harness.broker.settings import Settings
from harness.errors import UsageError
from harness.scenario import Scenario
from harness.targets.kafka.fetching import Distribution, find
from harness.targets.kafka.jvm import java
from harness.targets.kafka.releases import Release, numbers
from harness.targets.kafka.server_properties import DEFAULTS, KafkaSettings, understood

PREFIX = "process:"
"""How the names of these targets begin; what follows is a release, or the path of an unpacked one."""

_FIRST_IDEMPOTENT = numbers("0.11")


@dataclass(frozen=True, slots=True)
class RealKafka:
    """What is run.

    Attributes:
        distribution: the release, and where it is.
        settings: of every broker.
    """

    distribution: Distribution
    settings: KafkaSettings

    @property
    def release(self) -> Release:
        """Which release it is."""
        return self.distribution.release

    @property
    def as_built_in(self) -> Settings:
        """As much of the settings as the built-in cluster has, too: what promises are made from."""
        known = {one.name.replace("_", ".") for one in fields(Settings)}
        written = {**DEFAULTS, **self.settings.properties, "log.dirs.count": len(self.settings.log_dirs)}
        return Settings.parse({name: value for name, value in written.items() if name in known})


def real_kafka(target: str) -> Distribution | None:
    """The distribution that ``target`` names; None: it is a target of another kind.

    Raises:
        UsageError: it names no release, and no distribution.
        EnvironmentFault: the release has not been fetched.
    """
    return find(target.removeprefix(PREFIX)) if target.startswith(PREFIX) else None


def generation_of(target: str) -> str | None:
    """The generation that ``target`` speaks; None: it speaks any. Raises as :func:`real_kafka`."""
    distribution = real_kafka(target)
    return None if distribution is None else distribution.release.generation


def knows_idempotence(version: str) -> bool:
    """Whether a release, or the generation of that name, refuses the second of two equal batches (KIP-98)."""
    return numbers(version) >= _FIRST_IDEMPOTENT


def configured(distribution: Distribution, scenario: Scenario, overrides: Mapping[str, str]) -> RealKafka:
    """What is run of a scenario, whose ``overrides`` have been applied.

    Raises:
        UsageError: the scenario wants something of the built-in cluster that this release does not have.
        EnvironmentFault: there is no Java to run it.
    """
    java()
    release = distribution.release
    for knob, value in scenario.replication.items():
        if release.family.knobs.get(knob) != _text(value):
            raise UsageError(
                f"scenario {scenario.id!r} switches {knob} to {_text(value)}, which Kafka {release.version} cannot.",
                "Run it on the built-in target.",
            )
    for key in overrides:
        if key.startswith("replication."):
            raise UsageError(f"--set {key}: Kafka {release.version} has no such switch, only the built-in cluster has.")
    if not knows_idempotence(release.version) and any(
        step.send is not None and step.send.idempotent for step in scenario.schedule or ()
    ):
        raise UsageError(
            f"scenario {scenario.id!r} numbers its batches, which Kafka {release.version} does not know yet."
        )
    return RealKafka(distribution, understood(scenario.cluster.settings, release, scenario.cluster.brokers))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
