"""What can be done to a cluster: one protocol for each kind of control, of which a target supports some.

A fault names the protocol that it needs. Each pair of methods that does and undoes something is idempotent; a probe
changes nothing, but may send a request of its own. Methods raise ``EnvironmentFault`` when the target cannot do what
was asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from harness.model import Link, NodeId, TopicPartition
from harness.observations import NodeStates
from harness.target import LogDamage, Receipt, Target


@runtime_checkable
class Restarts(NodeStates, Protocol):
    """A node that has ended can be started again."""

    def restart(self, node: str) -> None:
        """Start a node that does not run again on its own data, and wait until it answers."""
        ...


@runtime_checkable
class Kills(Restarts, Protocol):
    """A node's process can be ended at once, and started again on its own data."""

    def kill(self, node: str) -> None:
        """SIGKILL."""
        ...

    def is_dead(self, node: str) -> Receipt:
        """Whether SIGKILL has ended the node's process; one that is slow, stopped or has ended itself is not dead."""
        ...


@runtime_checkable
class Pauses(NodeStates, Protocol):
    """A node's process can be stopped for a while."""

    def pause(self, node: str) -> None:
        """SIGSTOP."""
        ...

    def resume(self, node: str) -> None:
        """SIGCONT."""
        ...

    def is_paused(self, node: str) -> Receipt:
        """Whether the node's process is stopped by a signal."""
        ...


@runtime_checkable
class Shutdowns(Restarts, Protocol):
    """A node can be asked to end, and started again on its own data."""

    def shut_down(self, node: str) -> None:
        """SIGTERM, and wait until the node has ended: a clean shutdown, everything flushed."""
        ...

    def is_shut_down(self, node: str) -> Receipt:
        """Whether the node has ended by itself, with success, because it was asked to."""
        ...


@runtime_checkable
class Processes(Kills, Pauses, Shutdowns, Protocol):
    """All of that, and a node can be had to die while it starts."""

    def start_and_die(self, node: str) -> None:
        """Start a node that is not running, and have it die, by a crash, while it loads its logs."""
        ...


@runtime_checkable
class Links(Target, Protocol):
    """The network between nodes, and between clients and nodes, can be cut link by link."""

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


@runtime_checkable
class ConnectionStalls(Target, Protocol):
    """The connections that there are on a link can be held up, while new ones get through."""

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


@runtime_checkable
class DiskSpace(Shutdowns, Protocol):
    """A node's disk can be filled."""

    def limit_disk(self, node: str, free_bytes: int | None, log_dir: int | None = None) -> None:
        """Let the node's storage take ``free_bytes`` more and then answer ENOSPC; None lifts the limit.

        With ``log_dir`` only that one of the broker's log directories, as if it had a volume of its own.
        """
        ...

    def is_disk_full(self, node: str, log_dir: int | None = None) -> Receipt:
        """Whether writes of the node's storage are refused with ENOSPC now; with ``log_dir`` there and nowhere else."""
        ...


@runtime_checkable
class DiskContents(Processes, Protocol):
    """What is on the disk of a node that is down can be damaged or removed."""

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


@runtime_checkable
class LogDirectories(Processes, Protocol):
    """One of a broker's log directories can fail, as if its volume did."""

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


@runtime_checkable
class Power(Processes, Protocol):
    """A node can lose what its operating system has not written to the disk."""

    def lose_power(self, node: str) -> None:
        """SIGKILL the node, unless it is dead already, and drop from its files what had not reached the disk."""
        ...

    def has_lost_power(self, node: str) -> Receipt:
        """Whether the node is dead and its files hold only what had reached the disk; names what was dropped."""
        ...

    def sync_disk(self, node: str) -> None:
        """Let everything that a running node has written reach the disk."""
        ...


@runtime_checkable
class WallClocks(Target, Protocol):
    """A node's wall clock can be moved."""

    def offset_clock(self, node: str, offset_ms: int) -> None:
        """Move the node's wall clock to true time + ``offset_ms``; 0 heals. Monotonic time is untouched."""
        ...

    def clock_offset_ms(self, node: str) -> int:
        """The node's wall clock minus this process's, read back from the node, in milliseconds."""
        ...


@runtime_checkable
class Elections(Target, Protocol):
    """The controller can be asked for an election."""

    def elect(self, partition: TopicPartition, leader: NodeId | None, *, unclean: bool) -> None:
        """Ask the controller for an election: of ``leader`` or, where that is None, of the preferred leader.

        Raises:
            EnvironmentFault: the controller refuses, or does not answer.
        """
        ...


@runtime_checkable
class WireTaps(Target, Protocol):
    """Requests and responses can be recorded where they come to a node, or on their way to it."""

    def tap(self) -> None:
        """Record them; called before the target is started, or never."""
        ...

    def wire(self) -> Iterator[Mapping[str, Any]]:
        """The rows of ``schema.WIRE``, minus ``run``; none unless :meth:`tap` was called. The target has stopped."""
        ...


CONTROLS: frozenset[type[Target]] = frozenset(
    {
        Processes,
        Links,
        ConnectionStalls,
        DiskSpace,
        DiskContents,
        LogDirectories,
        Power,
        WallClocks,
        Elections,
        WireTaps,
    }
)
"""All protocols of this module. A target lists those that it supports."""
