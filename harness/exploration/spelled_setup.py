"""A drawn cluster as a scenario spells it: the settings of its brokers, and the knobs that were turned."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from harness.replication.knobs import GENERATIONS
from harness.simulation.core.configuration import Configuration, Setup


def turned(setup: Setup) -> dict[str, Any]:
    """The knobs of ``setup`` that its generation has otherwise; several names in one text, as scenarios have them."""
    usual = GENERATIONS[setup.generation]
    found = {f.name: getattr(setup.knobs, f.name) for f in fields(setup.knobs)}
    changed = {name: value for name, value in found.items() if value != getattr(usual, name)}
    return {name: ",".join(value) if isinstance(value, tuple) else value for name, value in changed.items()}


def settings_of(configuration: Configuration, scale: int) -> dict[str, Any]:
    """The settings of brokers, by Kafka's names, every time ``scale`` times as long."""
    flushed = {
        "log.flush.interval.messages": configuration.flush_messages,
        "log.flush.interval.ms": configuration.flush_ms * scale,
    }
    return {
        "min.insync.replicas": configuration.min_insync_replicas,
        "unclean.leader.election.enable": configuration.unclean_leader_election_enable,
        "broker.session.timeout.ms": configuration.session_timeout_ms * scale,
        "broker.heartbeat.interval.ms": configuration.heartbeat_ms * scale,
        "replica.lag.time.max.ms": configuration.replica_lag_time_max_ms * scale,
        "replica.fetch.wait.max.ms": configuration.replica_fetch_wait_max_ms * scale,
        "replica.fetch.backoff.ms": configuration.replica_fetch_backoff_ms * scale,
        "replica.socket.timeout.ms": configuration.request_timeout_ms * scale,
        "replica.high.watermark.checkpoint.interval.ms": configuration.checkpoint_ms * scale,
        **{name: value for name, value in flushed.items() if value},
    }
