"""The cluster that an audit watches: a running one of which addresses are known, and the audit's topic there."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from harness.audit.ceiling import MOST_PARTITIONS, Load
from harness.audit.journal import State
from harness.audit.load import ANSWERED_WITHIN_S
from harness.broker.settings import NO_LIMIT, Settings
from harness.client_ports import Clients
from harness.clients.threaded_clients import ThreadedClients
from harness.clock import PacedClock, SystemClock
from harness.errors import UsageError
from harness.runner.journal import NothingToUndo
from harness.target import Target, TopicSpec
from harness.targets.bootstrap import spelling
from harness.targets.bootstrap.administration import Administration
from harness.targets.bootstrap.kind import KIND, told_by
from harness.targets.bootstrap.promises import UNTOLD, asked, known_settings, topic_configs
from harness.targets.bootstrap.spelling import Named, named
from harness.targets.bootstrap.target import BootstrapTarget
from workloads.unique_sends import KIND as STEADY

MOST_REPLICAS = 3
_LEAST_SEGMENT_S = 60.0
_NAME = "canary"


@dataclass(frozen=True, slots=True)
class Audited:
    """A cluster as an audit uses it.

    Attributes:
        target: creates the topic, and tells what Metadata says.
        clock: of the audit, in real or virtual time.
        new_clients: makes clients that are stopped together.
        configuration: as in the ``run.json`` of each window.
        guarantees: likewise.
    """

    target: Target
    clock: PacedClock
    new_clients: Callable[[], Clients]
    configuration: Mapping[str, Any]
    guarantees: Mapping[str, Any]


def cluster_named(target: str, prefix: str | None = None) -> Named:
    """The running cluster that ``--target`` names; ``prefix``: of names that were drawn before.

    Raises:
        UsageError: it names no addresses, or gives a topic.
    """
    kind, _, argument = target.partition(":")
    if kind != KIND.name or not argument:
        raise UsageError(f"an audit needs a cluster that runs, and {target!r} names none.", f"Write {KIND.spelling}.")
    cluster = named(argument)
    if cluster.topics:
        raise UsageError(f"an audit writes to a topic of its own, and {target!r} gives it one.", "Leave #topic out.")
    drawn = replace(cluster, prefix=f"{cluster.prefix}audit-{secrets.token_hex(4)}-") if prefix is None else cluster
    return replace(drawn, prefix=drawn.prefix if prefix is None else prefix, keeps_topics=True)


def from_anywhere(target: str) -> str:
    """The same ``--target``, however it is spelled, for a process with another working directory."""
    kind, colon, argument = target.partition(":")
    return f"{kind}{colon}{spelling.from_anywhere(argument)}"


def topic_of(state: State) -> TopicSpec:
    """The canary topic. Its retention is twice the time for which a record is looked for, whatever clocks differ."""
    keep_ms = round(state.keep_s * 1000)
    configs = {
        "retention.ms": str(2 * keep_ms),
        "segment.ms": str(max(keep_ms // 2, round(_LEAST_SEGMENT_S * 1000))),
    }
    return TopicSpec(state.topic, state.partitions, state.replication_factor, configs=configs)


class Wanted(NamedTuple):
    """What is asked of the canary topic; None: a partition for each broker (twenty at most), three replicas."""

    partitions: int | None
    replication_factor: int | None


def begun(target: str, cluster: Named, topic: Wanted, keep_s: float, now_ns: int) -> State:
    """The state of an audit that begins.

    Args:
        target: as ``--target`` spells it.
        cluster: what that names.
        topic: what is asked of the canary topic.
        keep_s: for how many seconds a record is looked for.
        now_ns: the time, nanoseconds since the Unix epoch.

    Raises:
        EnvironmentFault: no broker answers.
    """
    brokers = len(Administration(cluster.access).brokers())
    return State(
        target=target,
        prefix=cluster.prefix,
        topic=f"{cluster.prefix}{_NAME}",
        partitions=topic.partitions or min(brokers, MOST_PARTITIONS),
        replication_factor=topic.replication_factor or min(MOST_REPLICAS, brokers),
        keep_s=keep_s,
        began_ns=now_ns,
    )


def audited(state: State, cluster: Named, load: Load, log: logging.Logger) -> Audited:
    """The cluster of an audit; ``log`` takes what clients have to say.

    Raises:
        EnvironmentFault: no broker answers.
        UsageError: nothing would be acknowledged with acks=all there.
    """
    told = told_by(cluster)
    asked_for = asked({}, UNTOLD if told.withheld else told.settings)
    settings = known_settings(told.settings, asked_for, cluster.promises)
    if settings.min_insync_replicas > state.replication_factor:
        raise UsageError(
            f"min.insync.replicas is {settings.min_insync_replicas}, and the canary topic has "
            f"{state.replication_factor} replica(s): nothing would be acknowledged with acks=all.",
            f"Take --replication {settings.min_insync_replicas}.",
        )
    configuration, guarantees = stated(state, settings, len(told.brokers), load)
    # The audit's own journal has its topic.
    target = BootstrapTarget(cluster, topic_configs(asked_for), NothingToUndo(), None)
    clients = partial(ThreadedClients, cluster.access, log, None, cluster.prefix)
    return Audited(target, SystemClock(), clients, configuration, guarantees)


def stated(state: State, settings: Settings, brokers: int, load: Load) -> tuple[dict[str, Any], dict[str, Any]]:
    """The configuration and the guarantees of each window.

    The audit forgets a record before retention may delete it, so that what a window is judged by has no limit of age.
    """
    topic = {"name": state.topic, "partitions": state.partitions, "replication_factor": state.replication_factor}
    configuration = {
        "target": state.target,
        "scenario": {"id": "audit", "cluster": {"brokers": brokers}, "topics": [topic]},
        "settings": {
            "min.insync.replicas": settings.min_insync_replicas,
            "unclean.leader.election.enable": settings.unclean_leader_election_enable,
            "replica.lag.time.max.ms": settings.replica_lag_time_max_ms,
            "log.retention.ms": NO_LIMIT,
        },
        "workload": {
            "name": STEADY.name,
            "rate": load.rate,
            "producers": state.partitions,
            "idempotent": True,
            "delivery_timeout_s": ANSWERED_WITHIN_S,
            "size": load.size,
        },
    }
    guarantees = {
        "timeline": "none",
        "min_insync_replicas": settings.min_insync_replicas,
        "replication_factor": state.replication_factor,
        "unclean_election": settings.unclean_leader_election_enable,
        "retention": False,
        "idempotent_producers": True,
        "settles": False,
    }
    return configuration, guarantees


def removed(state: State) -> list[str]:
    """Delete the topic of an audit; returns the names of what was deleted.

    Raises:
        EnvironmentFault: it could not be deleted.
    """
    return list(Administration(cluster_named(state.target, state.prefix).access).delete([state.topic]))
