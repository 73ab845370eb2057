"""The configuration that a replica obeys: its topic's, and for the rest the cluster's settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from harness.broker.settings import Settings
from harness.replication.topic_configs import COMPACT, DELETE, TOPIC_CONFIGS, Value, parsed

Configs = tuple[tuple[str, str], ...]
"""The configurations of a topic that are not the cluster's, as text, by ascending name."""

DEFAULT_DIRTY_RATIO = 0.5
"""Kafka's ``log.cleaner.min.cleanable.ratio``; here a topic may have another, and the cluster may not."""

_DEFAULTS: Mapping[str, Callable[[Settings], Value]] = MappingProxyType(
    {
        "cleanup.policy": lambda _: (DELETE,),
        "delete.retention.ms": lambda settings: settings.log_cleaner_delete_retention_ms,
        "flush.messages": lambda settings: settings.log_flush_interval_messages,
        "flush.ms": lambda settings: settings.log_flush_interval_ms,
        "max.compaction.lag.ms": lambda settings: settings.log_cleaner_max_compaction_lag_ms,
        "max.message.bytes": lambda settings: settings.message_max_bytes,
        "message.timestamp.after.max.ms": lambda settings: settings.log_message_timestamp_after_max_ms,
        "min.cleanable.dirty.ratio": lambda _: DEFAULT_DIRTY_RATIO,
        "min.compaction.lag.ms": lambda settings: settings.log_cleaner_min_compaction_lag_ms,
        "min.insync.replicas": lambda settings: settings.min_insync_replicas,
        "retention.ms": lambda settings: settings.log_retention_ms,
        "segment.bytes": lambda settings: settings.log_segment_bytes,
        "segment.ms": lambda settings: settings.log_roll_ms,
        "unclean.leader.election.enable": lambda settings: settings.unclean_leader_election_enable,
    }
)


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """Kafka's ``LogConfig``. Times in milliseconds, sizes in bytes; ``retention_ms`` is -1 for "for ever"."""

    cleanup_policy: tuple[str, ...]
    delete_retention_ms: int
    flush_messages: int
    flush_ms: int
    max_compaction_lag_ms: int
    max_message_bytes: int
    message_timestamp_after_max_ms: int
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    retention_ms: int
    segment_bytes: int
    segment_ms: int
    unclean_leader_election_enable: bool

    @property
    def compacts(self) -> bool:
        """Whether older values of a key may be removed."""
        return COMPACT in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        """Whether old segments may be deleted."""
        return DELETE in self.cleanup_policy


def topic_config(settings: Settings, configs: Iterable[tuple[str, str]] = ()) -> TopicConfig:
    """What a topic with ``configs`` obeys in a cluster with ``settings``."""
    own: dict[str, Any] = {name: parsed(name, text) for name, text in configs}
    values: dict[str, Any] = {name: own.get(name, default(settings)) for name, default in _DEFAULTS.items()}
    return TopicConfig(**{name.replace(".", "_"): value for name, value in values.items()})


def written_default(settings: Settings, name: str) -> str:
    """The value of configuration ``name`` where a topic has none, as Kafka writes it."""
    value = _DEFAULTS[name](settings)
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if TOPIC_CONFIGS[name].type == "boolean" else str(value)


def is_set_for_the_cluster(settings: Settings, name: str) -> bool:
    """Whether ``settings`` say something else than Kafka's default, or seawall's."""
    return written_default(settings, name) != written_default(Settings(), name)
