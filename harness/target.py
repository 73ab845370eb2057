"""The interface of the system under test for the runner and the faults: what every cluster has.

What else can be observed of one is in :mod:`harness.observations`, what can be done to one in :mod:`harness.controls`.
A target executes calls and returns observations; it decides nothing. Every method is synchronous and may be called from
one thread at a time. A method raises ``EnvironmentFault`` when the target cannot execute it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeGuard, TypeVar

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
    """The controller's state of a partition."""

    leader: NodeId
    leader_epoch: int
    isr: tuple[NodeId, ...]
    replicas: tuple[NodeId, ...]
    elr: tuple[NodeId, ...] = ()


class Leadership(NamedTuple):
    """The leader of a partition and its ISR, as the controller has last decided."""

    leader: NodeId
    isr: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """A broker's state of its own replica. ``remote_log_end_offsets`` is empty unless it leads."""

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
    """The quorum as the active KRaft controller sees it.

    Attributes:
        leader_epoch: its own.
        high_watermark: of the metadata log, exclusive: records below are committed.
        log_end_offsets: by the node of each voter, its log end offset as the active one knows it; -1: unknown.
    """

    leader_epoch: int
    high_watermark: Offset
    log_end_offsets: Mapping[str, Offset]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The cluster as observed just now.

    Attributes:
        live: the brokers with a session.
        partitions: by the controller; empty when it cannot be reached.
        controller: the active controller; None: there is none, or it cannot be reached.
        controllers: all controllers.
        quorum: as the active one sees it; None on targets without such a probe.
    """

    time_ns: int
    live: tuple[NodeId, ...]
    partitions: Mapping[TopicPartition, PartitionView]
    controller: str | None = CONTROLLER
    controllers: tuple[str, ...] = (CONTROLLER,)
    quorum: QuorumView | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a node ended that the harness had not ended.

    Attributes:
        node: the id of a broker or a controller.
        incarnation: how often the node had been started before that life.
        time_ns: when it ended (``CLOCK_MONOTONIC``).
        status: the exit status; negative: the number of the signal that ended it.
        said: why, by the end of its log.
        blames: the cause in its environment, in a clause; empty: none is known.
    """

    node: NodeId
    incarnation: int
    time_ns: int
    status: int
    said: str
    blames: str = ""


@dataclass(frozen=True, slots=True)
class LogDamage:
    """Damage to the bytes of a replica's log while its broker is down.

    Attributes:
        offset: in the damaged batch.
        how: ``flip``: one bit of its last byte is inverted; ``cut``: the file ends in the middle of the batch;
            ``foreign``: a sound batch that no client of the run has sent is in its place.
    """

    partition: TopicPartition
    offset: Offset
    how: Literal["flip", "cut", "foreign"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """The result of a probe. ``holds``: whether the fault is in effect; ``seen``: the evidence in words."""

    holds: bool
    seen: str

    @classmethod
    def of_all(cls, receipts: Iterable[Receipt]) -> Receipt:
        """The result of several probes: holds when each of them does."""
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
        """What of the target is still on this machine, as text: processes, containers, volumes, networks.

        It searches the machine instead of relying on :meth:`stop`; empty after a complete one.

        Raises:
            EnvironmentFault: that is unknown.
        """
        ...

    def create_topic(self, topic: TopicSpec) -> None:
        """Create a topic and wait until every partition has a leader and a full ISR."""
        ...

    def bootstrap(self) -> str:
        """``host:port,...`` for clients."""
        ...

    def nodes(self) -> Sequence[str]:
        """The names of all nodes: the brokers in order, then the dedicated controllers."""
        ...


class Target(Cluster, Protocol):
    """What the runner needs of every cluster.

    Attributes:
        name: in the timeline and in messages.
        controls: the protocols of :mod:`harness.observations` and :mod:`harness.controls` that it supports on this
            machine.
    """

    name: str
    controls: frozenset[type[Any]]

    def view(self) -> ClusterView:
        """The cluster as observed now."""
        ...


TargetT = TypeVar("TargetT", bound=Target)


def supports(target: Target, protocol: type[TargetT]) -> TypeGuard[TargetT]:
    """Whether it supports a protocol (:mod:`harness.observations`, :mod:`harness.controls`), or one that extends it."""
    return includes(target.controls, protocol)


def includes(controls: Collection[type[Any]], protocol: type[Target]) -> bool:
    """Whether a protocol, or one that extends it, is among those that are supported."""
    return any(protocol in one.__mro__ for one in controls)
