"""A node's configuration, which the harness writes to one JSON file.

Names of Kafka settings are Kafka's; those of the environment are ours. Also holds the state of the faults that
a node must keep across restarts, so that killing a node does not heal its partition.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.model import CONTROLLER, Link, NodeId
from harness.replication.knobs import Knobs

Address = tuple[str, int]

NEVER = (1 << 63) - 1
"""Kafka's default for what is flushed by number or by time: not at all, replication is what makes records durable."""

NO_LIMIT = "-1"
"""The value of a retention setting that deletes nothing."""

MAX_LOG_DIRS = 16
"""Of one broker; inclusive."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Kafka's settings, with the dots spelled as underscores. Times in milliseconds, sizes in bytes.

    ``log.dirs.count`` is ours, for Kafka's ``log.dirs``: how many log directories a broker has. A single one is its
    data directory itself, several are ``log-0``, ``log-1`` ... below it.
    """

    min_insync_replicas: int = 1
    default_replication_factor: int = 1
    num_partitions: int = 1
    auto_create_topics_enable: bool = False
    unclean_leader_election_enable: bool = False
    replica_lag_time_max_ms: int = 2_000
    replica_fetch_wait_max_ms: int = 500
    replica_fetch_max_bytes: int = 1_048_576
    replica_fetch_backoff_ms: int = 50
    replica_socket_timeout_ms: int = 3_000
    replica_high_watermark_checkpoint_interval_ms: int = 5_000
    broker_session_timeout_ms: int = 1_500
    broker_heartbeat_interval_ms: int = 150
    log_segment_bytes: int = 64 * 1_048_576
    log_roll_ms: int = 604_800_000
    log_flush_interval_messages: int = NEVER
    log_flush_interval_ms: int = NEVER
    log_flush_offset_checkpoint_interval_ms: int = 60_000
    log_flush_start_offset_checkpoint_interval_ms: int = 60_000
    log_retention_ms: int = 604_800_000
    log_retention_check_interval_ms: int = 300_000
    log_message_timestamp_after_max_ms: int = NEVER
    producer_id_expiration_ms: int = 86_400_000
    producer_id_expiration_check_interval_ms: int = 600_000
    log_cleaner_backoff_ms: int = 15_000
    log_cleaner_delete_retention_ms: int = 86_400_000
    log_cleaner_min_compaction_lag_ms: int = 0
    log_cleaner_max_compaction_lag_ms: int = NEVER
    log_dirs_count: int = 1
    message_max_bytes: int = 1_048_588
    offsets_topic_num_partitions: int = 1
    offsets_topic_replication_factor: int = 3
    offsets_topic_segment_bytes: int = 104_857_600
    offsets_commit_timeout_ms: int = 5_000
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    group_initial_rebalance_delay_ms: int = 100
    group_min_session_timeout_ms: int = 500
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 1_000
    group_consumer_session_timeout_ms: int = 3_000
    group_consumer_heartbeat_interval_ms: int = 300
    group_consumer_max_size: int = 1_000
    transaction_state_log_num_partitions: int = 1
    transaction_state_log_replication_factor: int = 3
    transaction_state_log_segment_bytes: int = 104_857_600
    transaction_max_timeout_ms: int = 900_000

    @classmethod
    def names(cls) -> frozenset[str]:
        """What Kafka calls them (``min.insync.replicas``)."""
        return frozenset(one.name.replace("_", ".") for one in fields(cls))

    @classmethod
    def known_of(cls, values: Mapping[str, object]) -> Settings:
        """What a cluster of another make has of these settings; others of its, and limits that are none, are left out.

        Raises:
            UsageError: a value of the wrong type.
        """
        known = cls.names()
        return cls.parse({name: one for name, one in values.items() if name in known and one != NO_LIMIT})

    @classmethod
    def parse(cls, values: dict[str, object]) -> Settings:
        """From Kafka's own spelling (``{"min.insync.replicas": 2}``); values may be text.

        Raises:
            UsageError: an unknown setting or a value of the wrong type.
        """
        known = {f.name.replace("_", "."): f for f in fields(cls)}
        parsed: dict[str, Any] = {}
        for name, value in values.items():
            if name not in known:
                raise UsageError(f"broker setting {name!r} is not known.", f"Settings: {', '.join(known)}.")
            parsed[known[name].name] = _typed(name, value, boolean=known[name].type == "bool")
        settings = cls(**parsed)
        if not 1 <= settings.log_dirs_count <= MAX_LOG_DIRS:
            raise UsageError(f"broker setting log.dirs.count: {settings.log_dirs_count} is not 1 to {MAX_LOG_DIRS}.")
        return settings


def _typed(name: str, value: object, *, boolean: bool) -> int | bool:
    text = str(value).lower()
    if boolean and text in ("true", "false"):
        return text == "true"
    if not boolean and text.isdecimal():
        return int(text)
    expected = "true or false" if boolean else "a whole number, 0 or more"
    raise UsageError(f"broker setting {name}: {value!r} is not {expected}.")


@dataclass(frozen=True, slots=True)
class NodeFaults:
    """The faults a node is born with.

    Attributes:
        cut: directed links of this node over which no byte may pass.
        free_bytes: how much its storage still takes before ENOSPC; None: no limit.
        wall_offset_ms: its wall clock minus true time.
        dies_while_loading: whether it dies after it has opened its logs, and before anything else.
        free_within: as ``free_bytes``, of single log directories, by their names.
    """

    cut: tuple[Link, ...] = ()
    free_bytes: int | None = None
    wall_offset_ms: int = 0
    dies_while_loading: bool = False
    free_within: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """Everything one node of the built-in cluster needs to start.

    Attributes:
        listener: where it speaks Kafka; also the local address it connects from, by which peers know it.
        control: where it answers the harness's control channel; never subject to link faults.
        controller: the controller's ``listener``.
        names: which link end each address of the cluster is (``{"127.3.4.10": "0"}``); others are clients.
        incarnation: how often this node had been started before.
        wire: the file to which its wire tap appends; empty: it has none.
    """

    node_id: NodeId
    cluster_id: str
    listener: Address
    control: Address
    controller: Address
    names: dict[str, str]
    data_dir: str
    timeline: str
    incarnation: int
    knobs: Knobs
    settings: Settings = field(default_factory=Settings)
    faults: NodeFaults = field(default_factory=NodeFaults)
    wire: str = ""

    def address_of(self, node: str) -> Address:
        """The listener of another node; brokers of one cluster all listen at the same port.

        Raises:
            ValueError: there is no such node.
        """
        if node == CONTROLLER:
            return self.controller
        for host, name in self.names.items():
            if name == node:
                return host, self.listener[1]
        raise ValueError(f"there is no node {node!r}")

    def write(self, path: Path) -> None:
        """Write the JSON file that :meth:`read` understands."""
        path.write_text(json.dumps(asdict(self), indent=1))

    @classmethod
    def read(cls, path: Path) -> NodeConfig:
        """The configuration in the JSON file ``path``."""
        raw = json.loads(path.read_text())
        faults = raw["faults"]
        return cls(
            **{
                **raw,
                **{name: (raw[name][0], raw[name][1]) for name in ("listener", "control", "controller")},
                "knobs": Knobs(**{**raw["knobs"], "bugs": tuple(raw["knobs"]["bugs"])}),
                "settings": Settings(**raw["settings"]),
                "faults": NodeFaults(**{**faults, "cut": tuple(Link(*link) for link in faults["cut"])}),
            }
        )
