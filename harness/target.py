"""The system under test, as the runner and the faults see it.

A target does what it is told and says what it sees; it decides nothing. Every method is synchronous and may be
called from one thread at a time. Methods raise ``EnvironmentFault`` when the target cannot do what was asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from harness.errors import UsageError
from harness.model import CONTROLLER, NodeId, Offset, TopicPartition

MAX_PARTITIONS = 10_000
"""Of one topic; inclusive."""

_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to create. ``assignment[p]`` are the replicas of partition p, preferred leader first, or None.

    Raises:
        UsageError: Kafka allows no such name, or there are not 1 to :data:`MAX_PARTITIONS` partitions.
    """

    name: str
    partitions: int
    replication_factor: int
    assignment: tuple[tuple[NodeId, ...], ...] | None = None
    configs: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        if not _TOPIC_NAME.fullmatch(self.name) or self.name in (".", ".."):
            raise UsageError(
                f"topic {self.name!r} is not a legal name.",
                "Topic names are 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-', but not '.' or '..'.",
            )
        if not 1 <= self.partitions <= MAX_PARTITIONS:
            raise UsageError(f"topic {self.name!r}: {self.partitions} partitions are not 1 to {MAX_PARTITIONS}.")


@dataclass(frozen=True, slots=True)
class PartitionView:
    """What the controller says about a partition."""

    leader: NodeId
    leader_epoch: int
    isr: tuple[NodeId, ...]
    replicas: tuple[NodeId, ...]
    elr: tuple[NodeId, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """What a broker says about its own replica. ``remote_log_end_offsets`` is empty unless it leads."""

    role: str
    leader: NodeId
    leader_epoch: int
    high_watermark: Offset
    log_end_offset: Offset
    log_start_offset: Offset
    isr: tuple[NodeId, ...]
    remote_log_end_offsets: Mapping[NodeId, Offset]


@dataclass(frozen=True, slots=True)
class QuorumView:
    """What the active controller of KRaft says of the quorum.

    Attributes:
        leader_epoch: its own.
        high_watermark: of the metadata log, exclusive: what is below has been decided.
        log_end_offsets: by the node of each voter, how far its log goes as the active one knows; -1: it does not know.
    """

    leader_epoch: int
    high_watermark: Offset
    log_end_offsets: Mapping[str, Offset]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The cluster as observed just now.

    Attributes:
        live: the brokers with a session.
        partitions: the controller's word; empty when it cannot be reached.
        controller: the node that controls; None: none does, or none that can be reached.
        controllers: the nodes one of which controls.
        quorum: what that one says of the others; None where nobody is asked.
    """

    time_ns: int
    live: tuple[NodeId, ...]
    partitions: Mapping[TopicPartition, PartitionView]
    controller: str | None = CONTROLLER
    controllers: tuple[str, ...] = (CONTROLLER,)
    quorum: QuorumView | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a life of a node ended that the harness had not ordered to end.

    Attributes:
        node: the id of a broker or a controller.
        incarnation: how often the node had been started before that life.
        time_ns: when it ended (``CLOCK_MONOTONIC``).
        status: the exit status; negative: the number of the signal that ended it.
        said: why, by the last words in its log.
        blames: what in its environment is to blame for it, in a clause; empty: nothing is known to be.
    """

    node: NodeId
    incarnation: int
    time_ns: int
    status: int
    said: str
    blames: str = ""


@dataclass(frozen=True, slots=True)
class LogDamage:
    """Harm done to the bytes of a replica's log while its broker is down.

    Attributes:
        offset: whose batch is harmed: the one that holds this offset.
        how: ``flip``: one bit of its last byte is inverted; ``cut``: the file ends in the middle of the batch;
            ``foreign``: a batch that is sound and that nobody here has sent is in its place.
    """

    partition: TopicPartition
    offset: Offset
    how: Literal["flip", "cut", "foreign"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a probe saw. ``holds`` says whether the fault is in effect; ``seen`` is the evidence in words."""

    holds: bool
    seen: str

    @classmethod
    def of_all(cls, receipts: Iterable[Receipt]) -> Receipt:
        """What several probes saw: holds when each of them does."""
        several = list(receipts)
        return cls(all(one.holds for one in several), "; ".join(one.seen for one in several))


class Cluster(Protocol):
    """A cluster that can be started, used by clients, and stopped."""

    def start(self) -> None:
        """Start every node and wait until each has registered."""
        ...

    def stop(self) -> None:
        """Stop every node, whatever state it is in; idempotent; leaves no process behind."""
        ...

    def remains(self) -> Sequence[str]:
        """What of the target is still on this machine, in words: processes, containers, volumes, networks.

        Found by looking, not by what :meth:`stop` has done; empty after it has done all.

        Raises:
            EnvironmentFault: it cannot be known.
        """
        ...

    def create_topic(self, topic: TopicSpec) -> None:
        """Create a topic and wait until every partition has a leader and a full ISR."""
        ...

    def bootstrap(self) -> str:
        """``host:port,...`` for clients."""
        ...

    def nodes(self) -> Sequence[str]:
        """The names of all nodes: the brokers in order, then the controllers that are processes of their own."""
        ...


class Observable(Protocol):
    """A cluster that says what state it is in."""

    def view(self) -> ClusterView:
        """The cluster as observed now."""
        ...

    def replica(self, node: str, partition: TopicPartition) -> ReplicaView | None:
        """A replica as its broker sees it now; None when the broker does not answer or does not hold it."""
        ...

    def committed(self, group: str) -> Mapping[TopicPartition, Offset]:
        """The offsets that a consumer group has committed, as the cluster has stored them; empty when unknown."""
        ...


class NodeStates(Protocol):
    """A cluster whose nodes can be asked, one by one, how they are."""

    def is_running(self, node: str) -> Receipt:
        """Whether the node's process exists and answers."""
        ...

    def has_exited(self, node: str) -> Receipt:
        """Whether the node, since it was last started, has ended itself: its protocol or its storage made it.

        One that a signal has ended, or that was asked to shut down, has not.
        """
        ...

    def endings(self) -> Sequence[Ending]:
        """Every life of a node that has ended without having been ordered to, until :meth:`stop`; oldest first."""
        ...

    def takes_writes(self, node: str) -> Receipt:
        """Whether writes of the node's storage work now, in each of its log directories."""
        ...

    def has_refused_write(self, node: str, log_dir: int | None = None) -> Receipt:
        """Whether storage has refused, with ENOSPC, a write of the node's own since the node was last started.

        With ``log_dir`` one to that log directory.
        """
        ...

    def offline_log_dirs(self, node: str) -> Sequence[int]:
        """The log directories that the broker itself has given up.

        Raises:
            EnvironmentFault: it does not answer, so nobody knows.
        """
        ...


class Evidence(Protocol):
    """What a cluster leaves for the checkers."""

    def timeline(self, run: str) -> Iterable[dict[str, Any]]:
        """Rows of ``schema.TIMELINE`` from every node, dead ones included. Call after :meth:`stop`."""
        ...

    def replica_logs(self, run: str) -> Iterable[dict[str, Any]]:
        """Rows of ``schema.REPLICA_LOGS`` of every replica, read from its disk. Call after :meth:`stop`."""
        ...

    def copy_logs(self, directory: Path) -> None:
        """Copy the nodes' own log output into ``directory``."""
        ...


class Target(Cluster, Observable, NodeStates, Evidence, Protocol):
    """What the runner needs of every cluster. What can be done to it besides is in :mod:`harness.controls`.

    Attributes:
        name: as the timeline and messages call it.
        controls: the protocols of :mod:`harness.controls` that it supports on this machine.
    """

    name: str
    controls: frozenset[type[Any]]
