"""The system under test, as the runner and the faults see it.

A target does what it is told and says what it sees; it decides nothing. Every method is synchronous and may be
called from one thread at a time. Methods raise ``EnvironmentFault`` when the target cannot do what was asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol

from harness.errors import UsageError
from harness.model import CONTROLLER, Link, NodeId, Offset, TopicPartition

MAX_PARTITIONS = 10_000
"""Of one topic; inclusive."""

_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class Capability(StrEnum):
    """What a target can do to itself: one per kind of fault."""

    KILL = "kill"
    PAUSE = "pause"
    PARTITION = "partition"
    STALL = "stall"
    DISK_FULL = "disk_full"
    CLOCK = "clock"
    STOP = "stop"
    POWER_LOSS = "power_loss"
    WIPE_DISK = "wipe_disk"
    CORRUPT_LOG = "corrupt_log"
    LOG_DIR_FAILURE = "log_dir_failure"


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


class Target(Protocol):
    """A cluster that can be started, broken, healed, looked at and stopped."""

    name: str
    capabilities: frozenset[Capability]

    def start(self) -> None:
        """Start every node and wait until each has registered."""
        ...

    def stop(self) -> None:
        """Stop every node, whatever state it is in; idempotent; leaves no process behind."""
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

    def view(self) -> ClusterView:
        """The cluster as observed now."""
        ...

    def replica(self, node: str, partition: TopicPartition) -> ReplicaView | None:
        """A replica as its broker sees it now; None when the broker does not answer or does not hold it."""
        ...

    # Faults. Each pair is idempotent; ``probe_*`` never changes anything but may send a request of its own.

    def kill(self, node: str) -> None:
        """SIGKILL."""
        ...

    def restart(self, node: str) -> None:
        """Start a killed node again on its own data, and wait until it answers."""
        ...

    def start_and_die(self, node: str) -> None:
        """Start a node that is not running, and have it die, by a crash, while it loads its logs."""
        ...

    def is_running(self, node: str) -> Receipt:
        """Whether the node's process exists and answers."""
        ...

    def is_dead(self, node: str) -> Receipt:
        """Whether SIGKILL has ended the node's process; one that is slow, stopped or has ended itself is not dead."""
        ...

    def pause(self, node: str) -> None:
        """SIGSTOP."""
        ...

    def resume(self, node: str) -> None:
        """SIGCONT."""
        ...

    def is_paused(self, node: str) -> Receipt:
        """Whether the node's process is stopped by a signal."""
        ...

    def cut(self, links: Sequence[Link]) -> None:
        """Let no byte pass on these directed links until they are mended, across restarts too."""
        ...

    def mend(self, links: Sequence[Link]) -> None:
        """Undo :meth:`cut` for these links."""
        ...

    def is_cut(self, link: Link) -> Receipt:
        """Send a request over the link and see whether it gets through."""
        ...

    def carries(self, link: Link) -> Receipt:
        """Whether a request sent over the link gets through: one that merely got lost proves nothing."""
        ...

    def stall(self, links: Sequence[Link]) -> None:
        """Let no byte pass on these directed links, in the connections that there are now, until they are let go on."""
        ...

    def resume_links(self, links: Sequence[Link]) -> None:
        """Undo :meth:`stall` for these links."""
        ...

    def is_stalled(self, link: Link) -> Receipt:
        """Whether a request in a connection from before gets stuck on the link, and none in a new connection."""
        ...

    def has_gone_on(self, link: Link) -> Receipt:
        """Whether what was stalled on the link has got through."""
        ...

    def limit_disk(self, node: str, free_bytes: int | None, log_dir: int | None = None) -> None:
        """Let the node's storage take ``free_bytes`` more and then answer ENOSPC; None lifts the limit.

        With ``log_dir`` only that one of the broker's log directories, as if it had a volume of its own.
        """
        ...

    def is_disk_full(self, node: str, log_dir: int | None = None) -> Receipt:
        """Whether writes of the node's storage are refused with ENOSPC now; with ``log_dir`` there and nowhere else."""
        ...

    def takes_writes(self, node: str) -> Receipt:
        """Whether writes of the node's storage work now, in each of its log directories."""
        ...

    def has_refused_write(self, node: str, log_dir: int | None = None) -> Receipt:
        """Whether storage has refused, with ENOSPC, a write of the node's own since the node was last started.

        With ``log_dir`` one to that log directory.
        """
        ...

    def fail_log_dir(self, node: str, log_dir: int) -> None:
        """Let one of the broker's log directories be none any more: whatever names a file in it is refused.

        What the broker has open already stays open. What is in the directory is kept for :meth:`mend_log_dir`.
        """
        ...

    def mend_log_dir(self, node: str, log_dir: int, *, empty: bool) -> None:
        """Put a log directory that has failed back, or with ``empty`` a new one; harmless when it has not failed.

        Raises:
            EnvironmentFault: it was to be a new one, and the broker, which has the old one open, is not at rest.
        """
        ...

    def is_log_dir_failed(self, node: str, log_dir: int) -> Receipt:
        """Whether no file can be created in the log directory because it is none (``ENOTDIR``)."""
        ...

    def is_log_dir_new(self, node: str, log_dir: int) -> Receipt:
        """Whether, since it last failed, an empty log directory was put in, and the broker was started after that."""
        ...

    def offline_log_dirs(self, node: str) -> Sequence[int]:
        """The log directories that the broker itself has given up.

        Raises:
            EnvironmentFault: it does not answer, so nobody knows.
        """
        ...

    def offset_clock(self, node: str, offset_ms: int) -> None:
        """Move the node's wall clock to true time + ``offset_ms``; 0 heals. Monotonic time is untouched."""
        ...

    def clock_offset_ms(self, node: str) -> int:
        """The node's wall clock minus this process's, read back from the node, in milliseconds."""
        ...

    def shut_down(self, node: str) -> None:
        """SIGTERM, and wait until the node has ended: a clean shutdown, everything flushed."""
        ...

    def is_shut_down(self, node: str) -> Receipt:
        """Whether the node has ended by itself, with success, because it was asked to."""
        ...

    def lose_power(self, node: str) -> None:
        """SIGKILL the node, unless it is dead already, and drop from its files what had not reached the disk."""
        ...

    def has_lost_power(self, node: str) -> Receipt:
        """Whether the node is dead and its files hold only what had reached the disk; says what was dropped."""
        ...

    def sync_disk(self, node: str) -> None:
        """Let everything that a running node has written reach the disk."""
        ...

    def wipe_disk(self, node: str) -> None:
        """Replace the disk of a node that is not running by an empty one."""
        ...

    def is_disk_empty(self, node: str) -> Receipt:
        """Whether there is nothing on the node's disk."""
        ...

    def damage_log(self, node: str, damage: LogDamage) -> None:
        """Harm the log of a node that is not running."""
        ...

    def is_log_damaged(self, node: str, damage: LogDamage) -> Receipt:
        """Whether the batch of the damage, as it is on the disk now, is no whole batch with the right checksum."""
        ...

    # Administration.

    def elect(self, partition: TopicPartition, leader: NodeId | None, *, unclean: bool) -> None:
        """Ask the controller for an election: of ``leader`` or, where that is None, of the preferred leader.

        Raises:
            EnvironmentFault: the controller refuses, or does not answer.
        """
        ...

    def committed(self, group: str) -> Mapping[TopicPartition, Offset]:
        """The offsets that a consumer group has committed, as the cluster has stored them; empty when unknown."""
        ...

    def has_exited(self, node: str) -> Receipt:
        """Whether the node, since it was last started, has ended itself: its protocol or its storage made it.

        One that a signal has ended, or that was asked to shut down, has not.
        """
        ...

    def endings(self) -> Sequence[Ending]:
        """Every life of a node that has ended without having been ordered to, until :meth:`stop`; oldest first."""
        ...

    def remains(self) -> Sequence[str]:
        """What of the target is still on this machine, in words: processes, containers, volumes, networks.

        Found by looking, not by what :meth:`stop` has done; empty after it has done all.

        Raises:
            EnvironmentFault: it cannot be known.
        """
        ...

    # Evidence.

    def timeline(self, run: str) -> Iterable[dict[str, Any]]:
        """Rows of ``schema.TIMELINE`` from every node, dead ones included. Call after :meth:`stop`."""
        ...

    def replica_logs(self, run: str) -> Iterable[dict[str, Any]]:
        """Rows of ``schema.REPLICA_LOGS`` of every replica, read from its disk. Call after :meth:`stop`."""
        ...

    def copy_logs(self, directory: Path) -> None:
        """Copy the nodes' own log output into ``directory``."""
        ...
