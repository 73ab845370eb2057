"""Writes ``server.properties`` of real brokers and controllers from a scenario's settings, for each release.

Scenarios use Kafka's names of settings. Most are passed on. A few have another name with ZooKeeper, or came with a
later release. Unset ones have the values of :data:`DEFAULTS`, with which a cluster on a small machine detects a dead
broker in seconds, as the built-in one does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.broker.log_directories import log_dir_names
from harness.broker.settings import MAX_LOG_DIRS, Settings
from harness.errors import UsageError
from harness.model import CLIENTS, CONTROLLER, is_broker, node_id
from harness.spelling import as_text
from harness.targets.kafka.layout import Layout, Listener
from harness.targets.kafka.releases import Metadata, Release, numbers
from harness.targets.kafka.setting_names import (
    HEARTBEAT,
    LOG_DIRS_COUNT,
    SESSION,
    is_known,
    may_be_written,
    refuse_foreign,
)

DEFAULTS: Mapping[str, str] = {
    "min.insync.replicas": "1",
    "default.replication.factor": "1",
    "num.partitions": "1",
    "auto.create.topics.enable": "false",
    "unclean.leader.election.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "num.replica.fetchers": "1",
    "replica.lag.time.max.ms": "4000",
    "replica.fetch.wait.max.ms": "500",
    "replica.fetch.backoff.ms": "100",
    "replica.socket.timeout.ms": "3000",
    "controller.socket.timeout.ms": "3000",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "300",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.segment.bytes": "1048576",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.segment.bytes": "1048576",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.share.min.session.timeout.ms": "500",
    "group.share.session.timeout.ms": "3000",
    "group.share.min.heartbeat.interval.ms": "50",
    "group.share.heartbeat.interval.ms": "300",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.max.delivery.count.limit": "25",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.segment.bytes": "1048576",
    "log.index.size.max.bytes": "1048576",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
}
"""Values where a scenario sets none: those of the built-in cluster, and small sizes."""

_HEEDED = (
    "controlled.shutdown.enable",
    "controlled.shutdown.max.retries",
    "controlled.shutdown.retry.backoff.ms",
    "group.max.session.timeout.ms",
    "group.min.session.timeout.ms",
    "inter.broker.protocol.version",
    "leader.imbalance.check.interval.seconds",
    "log.cleaner.backoff.ms",
    "log.cleanup.policy",
    "log.message.format.version",
    "log.message.timestamp.difference.max.ms",
    "log.message.timestamp.type",
    "log.retention.bytes",
    "log.retention.hours",
    "log.retention.minutes",
    "log.segment.delete.delay.ms",
    "max.incremental.fetch.session.cache.slots",
    "num.recovery.threads.per.data.dir",
    "offsets.retention.check.interval.ms",
    "offsets.retention.minutes",
    "offsets.topic.replication.factor",
    "producer.id.expiration.ms",
    "replica.fetch.min.bytes",
    "replica.fetch.response.max.bytes",
    "request.timeout.ms",
    "transaction.max.timeout.ms",
    "transaction.partition.verification.enable",
    "transaction.state.log.min.isr",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.min.isr",
    "share.coordinator.state.topic.replication.factor",
    "transactional.id.expiration.ms",
    "unclean.leader.election.interval.ms",
    "zookeeper.session.timeout.ms",
)
"""Settings that affect replication, beside those of the built-in cluster and :data:`DEFAULTS`."""

_ZOOKEEPER_SESSION = "zookeeper.session.timeout.ms"
_ZOOKEEPER_TICK_MS = 100
_FETCH_WAIT = "replica.fetch.wait.max.ms"
_REQUEST_TIMEOUT = "request.timeout.ms"
_UNHURRIED = {"zookeeper.connection.timeout.ms": "30000"}
_CLEANUP_POLICY, _DELETE = "log.cleanup.policy", "delete"
_SEGMENT_BYTES = "log.segment.bytes"
_LEAST_SEGMENT_BYTES = 1 << 20
_SINCE_SEGMENTS_ARE_LARGE = numbers("4.0")
"""KIP-1030."""

_CONTROLLERS_ADVERTISE_SINCE = numbers("3.9")
"""KIP-853: the quorum leader sends its endpoints, which would be its real address, without a proxy. Before, the others
use ``controller.quorum.voters``, and a controller need not advertise anything."""

_ANSWER_MS = 1500
"""The request timeout, longer than an idle fetch waits. A controller with ZooKeeper whose request a paused broker has
received hangs that long, and elects no leader; old followers fetch with the same timeout."""


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """A scenario's broker settings, as one release understands them.

    Attributes:
        release: that release.
        properties: the settings that are the same on every broker.
        log_dirs: the names of the log directories below a broker's data directory; a single one is that itself: ``""``.
        session_timeout_ms: after how long without a heartbeat the controller fences a broker.
    """

    release: Release
    properties: Mapping[str, str]
    log_dirs: Sequence[str]
    session_timeout_ms: int


def understood(written: Mapping[str, object], release: Release, brokers: int) -> KafkaSettings:
    """The settings that a scenario has written, as ``release`` understands them.

    Raises:
        UsageError: this release does not know one, a scenario may not set it, or it enables compaction.
    """
    for name in written:
        refuse_foreign(name, release)
    _refuse_small_segments(written, release)
    _refuse_compaction(written)
    merged = {**DEFAULTS, **_internal_topics(brokers), **{name: as_text(value) for name, value in written.items()}}
    count = merged.pop(LOG_DIRS_COUNT, "1")
    if not count.isdecimal() or not 1 <= int(count) <= MAX_LOG_DIRS:
        raise UsageError(f"broker setting {LOG_DIRS_COUNT}: {count!r} is not 1 to {MAX_LOG_DIRS}.")
    session = merged[SESSION]
    if release.metadata is Metadata.ZOOKEEPER:
        session = merged.setdefault(_ZOOKEEPER_SESSION, session)
        del merged[SESSION], merged[HEARTBEAT]  # the ZooKeeper client sends a heartbeat after a third of the timeout
    merged.setdefault(_REQUEST_TIMEOUT, str(int(merged[_FETCH_WAIT]) + _ANSWER_MS))
    known = {name: value for name, value in merged.items() if is_known(name, release)}
    return KafkaSettings(release, known, log_dir_names(int(count)), int(session))


def alike(release: Release) -> frozenset[str]:
    """The names of the settings that a run makes equal in every service of a compose file.

    Other settings of a file stay as they are: they may be for a plugin that not every service has.
    """
    names = {*Settings.names(), *DEFAULTS, *_HEEDED}
    return frozenset(names) & may_be_written(release)


def server_properties(layout: Layout, settings: KafkaSettings, node: str, data_dir: Path) -> str:
    """``server.properties`` of ``node``, a broker or a controller, whose disk is ``data_dir``."""
    log_dirs = [data_dir / name for name in settings.log_dirs] if is_broker(node) else [data_dir]
    is_old = layout.metadata is Metadata.ZOOKEEPER
    own = _with_zookeeper(layout, node) if is_old else _with_kraft(layout, node, data_dir)
    listeners = _listeners(layout, node, settings.release)
    written = {**(_UNHURRIED if is_old else {}), **settings.properties}
    lines = {**written, **own, **listeners, "log.dirs": ",".join(map(str, log_dirs))}
    return "".join(f"{name}={value}\n" for name, value in lines.items())


def metadata_dir(node: str, data_dir: Path) -> Path:
    """The directory of KRaft's metadata log: beside the disk of a combined broker, on that of another controller."""
    return data_dir.with_name("metadata") if is_broker(node) else data_dir


def to_be_formatted(settings: KafkaSettings, node: str, data_dir: Path) -> list[Path]:
    """Every directory of a node that needs a ``meta.properties`` with KRaft."""
    log_dirs = [data_dir / name for name in settings.log_dirs] if is_broker(node) else []
    return [metadata_dir(node, data_dir), *log_dirs]


def zookeeper_properties(layout: Layout, data_dir: Path) -> str:
    """The configuration of ZooKeeper; it accepts any session timeout."""
    host, port = layout.real(CONTROLLER, Listener.ZOOKEEPER)
    return f"""\
dataDir={data_dir}
clientPort={port}
clientPortAddress={host}
tickTime={_ZOOKEEPER_TICK_MS}
minSessionTimeout={_ZOOKEEPER_TICK_MS}
maxSessionTimeout=600000
maxClientCnxns=0
admin.enableServer=false
"""


def _with_zookeeper(layout: Layout, node: str) -> dict[str, str]:
    return {
        "broker.id": str(node_id(node)),
        "zookeeper.connect": f"{layout.hostname(CONTROLLER)}:{layout.port_of(CONTROLLER, Listener.ZOOKEEPER)}",
    }


def _with_kraft(layout: Layout, node: str, data_dir: Path) -> dict[str, str]:
    roles = (*(("broker",) if is_broker(node) else ()), *(("controller",) if node in layout.controllers else ()))
    return {
        "process.roles": ",".join(roles),
        "node.id": str(node_id(node)),
        "controller.quorum.voters": ",".join(_voter(layout, name) for name in layout.controllers),
        "controller.listener.names": Listener.CONTROLLER.name,
        "metadata.log.dir": str(metadata_dir(node, data_dir)),
    }


def _voter(layout: Layout, node: str) -> str:
    return f"{node_id(node)}@{layout.hostname(node)}:{layout.port_of(node, Listener.CONTROLLER)}"


def _listeners(layout: Layout, node: str, release: Release) -> dict[str, str]:
    own = [one for one in layout.listeners(node) if one is not Listener.ZOOKEEPER]
    spoken = {*own, *(one for name in layout.controllers for one in layout.listeners(name))} - {Listener.ZOOKEEPER}
    lines = {
        "listeners": ",".join(_endpoint(one, *layout.real(node, one)) for one in own),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in sorted(one.name for one in spoken)),
    }
    advertised = [
        one for one in own if one is not Listener.CONTROLLER or release.numbers >= _CONTROLLERS_ADVERTISE_SINCE
    ]
    if advertised:
        lines["advertised.listeners"] = ",".join(_endpoint(one, *_advertised(layout, node, one)) for one in advertised)
    if Listener.PEERS in own:
        lines["inter.broker.listener.name"] = Listener.PEERS.name
    return lines


def _advertised(layout: Layout, node: str, listener: Listener) -> tuple[str, int]:
    """The host name for nodes, the proxy for clients, the real address for the harness."""
    match listener:
        case Listener.PEERS | Listener.CONTROLLER:
            return layout.hostname(node), layout.port_of(node, listener)
        case Listener.CLIENTS:
            return layout.seen_by(CLIENTS, node, listener)
        case _:
            return layout.real(node, listener)


def _endpoint(listener: Listener, host: str, port: int) -> str:
    return f"{listener.name}://{host}:{port}"


def _internal_topics(brokers: int) -> dict[str, str]:
    replicas = min(3, brokers)
    return {
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(min(2, replicas)),
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": str(min(2, replicas)),
    }


def _refuse_small_segments(written: Mapping[str, object], release: Release) -> None:
    asked = int(str(written.get(_SEGMENT_BYTES, _LEAST_SEGMENT_BYTES)))
    if asked < _LEAST_SEGMENT_BYTES and release.numbers >= _SINCE_SEGMENTS_ARE_LARGE:
        raise UsageError(
            f"broker setting {_SEGMENT_BYTES}: {asked} is less than Kafka {release.version} takes, "
            f"{_LEAST_SEGMENT_BYTES}."
        )


def _refuse_compaction(written: Mapping[str, object]) -> None:
    policy = written.get(_CLEANUP_POLICY, _DELETE)
    if policy != _DELETE:
        raise UsageError(
            f"broker setting {_CLEANUP_POLICY}: {policy!r}: what is compacted is gone, and no checker tells it from "
            "what is lost.",
            f"--set settings.{_CLEANUP_POLICY}={_DELETE} comes before what a scenario or a compose file says.",
        )
