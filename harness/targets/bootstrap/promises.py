"""What a running cluster promises: what its brokers say, what the user says, and else what Kafka does by default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.broker.settings import NO_LIMIT, Settings
from harness.errors import UsageError
from harness.spelling import as_text, closest

KAFKAS_DEFAULTS: Mapping[str, str] = {
    "min.insync.replicas": "1",
    "unclean.leader.election.enable": "false",
    "replica.lag.time.max.ms": "30000",
    "broker.session.timeout.ms": "9000",
    "log.retention.ms": "604800000",
    "group.min.session.timeout.ms": "6000",
    "group.max.session.timeout.ms": "1800000",
    "group.consumer.session.timeout.ms": "45000",
    "transaction.max.timeout.ms": "900000",
}
"""Kafka's own defaults of the settings that promises are made from."""

OF_TOPICS: Mapping[str, str] = {
    "min.insync.replicas": "min.insync.replicas",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
    "log.retention.ms": "retention.ms",
    "log.retention.bytes": "retention.bytes",
    "log.cleanup.policy": "cleanup.policy",
    "log.segment.bytes": "segment.bytes",
    "log.flush.interval.messages": "flush.messages",
    "log.flush.interval.ms": "flush.ms",
    "message.max.bytes": "max.message.bytes",
}
"""The broker settings that a topic can have for itself, and what they are called there."""

UNTOLD: Mapping[str, str] = {
    **{name: KAFKAS_DEFAULTS[name] for name in ("min.insync.replicas", "unclean.leader.election.enable")},
    "log.retention.ms": "0",
    "log.retention.bytes": "0",
    "log.cleanup.policy": "compact",
}
"""What brokers are taken to have that may not tell: what would spoil a run, so that topics state the contrary."""

_AGE_LIMITS_MS = {"log.retention.ms": 1, "log.retention.minutes": 60_000, "log.retention.hours": 3_600_000}
"""Kafka's settings for the age of records, the strongest first, and the milliseconds that their unit has."""

STATED = ("min.insync.replicas", "unclean.leader.election.enable")
"""What topics state for themselves wherever brokers have a setting for it."""

_WEEK_MS = 604_800_000


def asked(written: Mapping[str, object], told: Mapping[str, str]) -> dict[str, str]:
    """What the topics of a run are created with, by the names of broker settings.

    Beside what the scenario has, no record may be deleted while it is judged: limits of the brokers do not hold. What a
    topic does not state for itself may differ from broker to broker, and the controllers'.
    """
    wanted = {name: told[name] for name in STATED if name in told}
    wanted |= {name: as_text(value) for name, value in written.items() if name in OF_TOPICS}
    age_ms = next((int(told[name]) * unit for name, unit in _AGE_LIMITS_MS.items() if name in told), _WEEK_MS)
    kept = {"log.retention.ms"} if 0 <= age_ms < _WEEK_MS else set()
    kept |= {"log.retention.bytes"} if told.get("log.retention.bytes", NO_LIMIT) != NO_LIMIT else set()
    deletes = {"log.cleanup.policy": "delete"} if told.get("log.cleanup.policy", "delete") != "delete" else {}
    return {**dict.fromkeys(sorted(kept), NO_LIMIT), **deletes, **wanted}


def topic_configs(asked_for: Mapping[str, str]) -> dict[str, str]:
    """The same by the names that topics have for them."""
    return {OF_TOPICS[name]: value for name, value in asked_for.items()}


def refuse_unmet(written: Mapping[str, object], told: Mapping[str, str], target: str) -> None:
    """Refuse a scenario with settings of brokers that these brokers do not have, for seawall does not start them.

    Args:
        written: the scenario's.
        told: the brokers' own; empty: they do not say.
        target: as ``--target`` spells it.

    Raises:
        UsageError: names the first.
    """
    for name, value in written.items():
        if name not in OF_TOPICS and told.get(name, as_text(value)) != as_text(value):
            raise UsageError(
                f"cluster.settings: {name} is {as_text(value)} in the scenario, and {told[name]} on the brokers of "
                f"{target!r}, which are not seawall's to configure.",
                f"Configure them so, or take --set settings.{name}={told[name]}.",
            )


def known_settings(told: Mapping[str, str], asked_for: Mapping[str, str], said: Mapping[str, str]) -> Settings:
    """As much as is known of the settings that the topics of the run are under.

    Args:
        told: what the brokers say; empty: they do not say.
        asked_for: see :func:`asked`.
        said: what the user says they promise.

    Raises:
        UsageError: one of what the user says is not known, or has a value that it cannot have.
    """
    known = Settings.names()
    for name in said:
        if name not in known:
            raise UsageError(f"target option promise={name}: no such setting; {closest(name, known)}")
    return Settings.known_of({**KAFKAS_DEFAULTS, **told, **asked_for, **said})


def unkept(configs: Mapping[str, str], told: Mapping[str, str]) -> Iterator[str]:
    """In what a topic differs from what it was created with, in words; what the cluster does not tell is as asked."""
    for name, value in configs.items():
        if told.get(name, value) != value:
            yield f"{name} is {told[name]}, not {value}"
