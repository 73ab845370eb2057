"""What a plan for real Kafka has besides: what is run, and its brokers' configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from harness.broker.settings import Settings
from harness.errors import UsageError
from harness.model import CONTROLLER
from harness.payload import Carried
from harness.scenario import Scenario
from harness.target import Capability
from harness.targets.compose.agreement import agreed
from harness.targets.compose.source import PATTERN_MARK, ComposedKafka
from harness.targets.compose.source import find as composed
from harness.targets.kafka.jvm import refuse_old_java
from harness.targets.kafka.layout import Control
from harness.targets.kafka.local import LocalKafka
from harness.targets.kafka.local import find as local
from harness.targets.kafka.process import capabilities
from harness.targets.kafka.releases import Release, numbers
from harness.targets.kafka.server_properties import DEFAULTS, KafkaSettings, alike, understood

PROCESS, COMPOSE = "process:", "compose:"
"""How the names of these targets begin. What follows is a release, or the path of an unpacked one, and who controls;
or the path of a compose file."""

NO_LIMIT = "-1"
"""Of a retention that deletes nothing."""

_FIRST_IDEMPOTENT = numbers("0.11")

_MESSAGE_FORMAT, _TIMESTAMP_TYPE = "log.message.format.version", "log.message.timestamp.type"
_FORMAT_VERSION = re.compile(r"\d+\.\d+")
_FIRST_TIMESTAMPS, _FIRST_HEADERS = numbers("0.10"), numbers("0.11")
"""Message formats v1 (KIP-32) and v2 (KIP-98, KIP-82)."""


@dataclass(frozen=True, slots=True)
class RealKafka:
    """What is run.

    Attributes:
        source: the release, where its jars are, and who controls it; or the compose file that runs it.
        settings: of every broker.
    """

    source: LocalKafka | ComposedKafka
    settings: KafkaSettings

    @property
    def release(self) -> Release:
        """Which release it is."""
        return self.source.release

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What can be done to it on this machine."""
        return self.source.capabilities if isinstance(self.source, ComposedKafka) else capabilities()

    def why_not(self, capability: Capability) -> str:
        """Why that cannot be done to it, in a sentence."""
        if isinstance(self.source, ComposedKafka):
            return self.source.lacks[capability]
        return "It takes a C compiler: see `seawall doctor`."

    @property
    def control(self) -> Control:
        """Who controls it. All the controllers of a compose file that are no brokers go by one name."""
        if not isinstance(self.source, ComposedKafka):
            return self.source.control
        return Control.ONE if CONTROLLER in self.source.file.nodes else Control.COMBINED

    @property
    def never_the_controller(self) -> tuple[str, ...]:
        """The fields of a fault that cannot be ``controller``, because the brokers are the controllers.

        One of them can be broken like any other node, but not be cut off alone: in a compose file that is a cut from
        every other controller.
        """
        if self.control is not Control.COMBINED or isinstance(self.source, ComposedKafka):
            return ()
        return ("links", "between")

    def in_words(self) -> dict[str, Any]:
        """What ``run.json`` says of it beside the release."""
        return {"compose": self.source.in_words()} if isinstance(self.source, ComposedKafka) else {}

    @property
    def carried(self) -> Carried:
        """What of a record it stores as its client sent it.

        From 3.0 on Kafka may write newer records than ``log.message.format.version`` asks for (KIP-724): then less is
        sent than it would store.
        """
        known = self.settings.properties
        asked = _FORMAT_VERSION.match(known.get(_MESSAGE_FORMAT, ""))
        written = min(self.release.numbers, numbers(asked[0]) if asked else self.release.numbers)
        stamped_by_client = known.get(_TIMESTAMP_TYPE, "CreateTime") == "CreateTime"
        return Carried(written >= _FIRST_HEADERS, written >= _FIRST_TIMESTAMPS and stamped_by_client)

    @property
    def as_built_in(self) -> Settings:
        """As much of the settings as the built-in cluster has, too: what promises are made from."""
        known = {one.name.replace("_", ".") for one in fields(Settings)}
        written = {**DEFAULTS, **self.settings.properties, "log.dirs.count": len(self.settings.log_dirs)}
        return Settings.parse({name: value for name, value in written.items() if name in known and value != NO_LIMIT})


def real_kafka(target: str) -> LocalKafka | ComposedKafka | None:
    """What ``target`` names; None: it is a target of another kind.

    Raises:
        UsageError: it names no release, no distribution, and no compose file that can be understood.
        EnvironmentFault: the release has not been fetched; or there is nothing to run a compose file with.
    """
    if target.startswith(COMPOSE):
        return composed(target.removeprefix(COMPOSE))
    return local(target.removeprefix(PROCESS)) if target.startswith(PROCESS) else None


def with_pattern(target: str, pattern: str) -> str:
    """The target with a pattern of the names of the services that run Kafka.

    Raises:
        UsageError: it is no compose file.
    """
    if not target.startswith(COMPOSE):
        raise UsageError(f"--service-pattern {pattern!r} is for --target compose:FILE, not for {target!r}.")
    return f"{target}{PATTERN_MARK}{pattern}"


def generation_of(target: str) -> str | None:
    """The generation that ``target`` speaks; None: it speaks any. Raises as :func:`real_kafka`."""
    source = real_kafka(target)
    return None if source is None else source.release.generation


def knows_idempotence(version: str) -> bool:
    """Whether a release, or the generation of that name, refuses the second of two equal batches (KIP-98)."""
    return numbers(version) >= _FIRST_IDEMPOTENT


def configured(source: LocalKafka | ComposedKafka, scenario: Scenario, overrides: Mapping[str, str]) -> RealKafka:
    """What is run of a scenario, whose ``overrides`` have been applied.

    Raises:
        UsageError: the scenario wants something of the built-in cluster that this release does not have.
        EnvironmentFault: there is no Java to run it.
    """
    _refuse_foreign(source.release, scenario)
    for key in overrides:
        if key.startswith("replication."):
            raise UsageError(
                f"--set {key}: Kafka {source.release.version} has no such switch, only the built-in cluster has."
            )
    return RealKafka(source, _settings(source, scenario))


def beyond(release: Release, scenario: Scenario) -> UsageError | None:
    """What ``scenario`` wants of the built-in cluster that ``release`` does not have; None: it wants nothing such."""
    try:
        _refuse_foreign(release, scenario)
        understood(scenario.cluster.settings, release, scenario.cluster.brokers)
    except UsageError as error:
        return error
    return None


def _refuse_foreign(release: Release, scenario: Scenario) -> None:
    """Refuse what is wanted beside settings."""
    name = f"scenario {scenario.id!r}"
    for knob, value in scenario.replication.items():
        if release.family.knobs.get(knob) != _text(value):
            raise UsageError(
                f"{name} switches {knob} to {_text(value)}, which Kafka {release.version} cannot.",
                "Run it on the built-in target.",
            )
    idempotent = any(step.send is not None and step.send.idempotent for step in scenario.schedule or ())
    if scenario.transacts and not knows_idempotence(release.version):
        raise UsageError(f"{name} runs transactions, which Kafka {release.version} does not know yet.")
    if idempotent and not knows_idempotence(release.version):
        raise UsageError(f"{name} numbers its batches, which Kafka {release.version} does not know yet.")


def _settings(source: LocalKafka | ComposedKafka, scenario: Scenario) -> KafkaSettings:
    """As the scenario has it, then as the compose file does."""
    wanted, written = scenario.cluster.brokers, scenario.cluster.settings
    if not isinstance(source, ComposedKafka):
        settings = understood(written, source.release, wanted)
        refuse_old_java()
        source.refuse_few(wanted)
        return settings
    if len(source.file.brokers) != wanted:
        names = ", ".join(broker.name for broker in source.file.brokers)
        raise UsageError(
            f"scenario {scenario.id!r} is about {wanted} brokers, and {source.file.path} has "
            f"{len(source.file.brokers)}: {names}.",
            _remedy(len(source.file.brokers), wanted),
        )
    own = agreed(source.file, alike(source.release).difference(written))
    settings = understood({**own, **written}, source.release, wanted)
    if len(settings.log_dirs) > 1:
        raise UsageError(
            f"scenario {scenario.id!r} has {len(settings.log_dirs)} log directories for each broker, "
            "and a broker in a container has one volume.",
            "Run it with --target process:.",
        )
    return settings


def _remedy(there: int, wanted: int) -> str:
    """What to do about a file that has another number of brokers than a scenario is about."""
    if there > wanted:
        return "Choose another file, or the brokers that are meant with --service-pattern."
    missing = wanted - there
    more = "one more service" if missing == 1 else f"{missing} more services"
    alone = " Of one broker alone nothing is replicated." if there == 1 else ""
    return (
        f"Give it {more} with an id, a name and listeners of its own, in the quorum or at the ZooKeeper of the others: "
        f"compose/kafka-kraft.yml and compose/kafka-zookeeper.yml have three.{alone}"
    )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
