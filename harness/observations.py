"""What can be observed of a cluster beyond its partitions: one protocol each, of which a target supports some.

A cluster of which only addresses are known supports none: its clients see what it answers, and no more. Methods raise
``EnvironmentFault`` when the target cannot answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from harness.model import Offset, TopicPartition
from harness.target import Ending, Leadership, Receipt, ReplicaView, Target

if TYPE_CHECKING:
    from harness.history.blocks import Block


@runtime_checkable
class ReplicaStates(Target, Protocol):
    """A cluster whose brokers say what they hold."""

    def replica(self, node: str, partition: TopicPartition) -> ReplicaView | None:
        """A replica as its broker sees it now; None when the broker does not answer or does not hold it."""
        ...


@runtime_checkable
class CommittedOffsets(Target, Protocol):
    """A cluster that says what a consumer group has committed, whether the group has members or not."""

    def committed(self, group: str) -> Mapping[TopicPartition, Offset]:
        """The committed offsets of a consumer group in the cluster; empty when unknown."""
        ...


@runtime_checkable
class KnowsLeaders(Target, Protocol):
    """A target that learns of elections and ISRs without asking a node."""

    def known_leaders(self) -> Mapping[TopicPartition, Leadership]:
        """What is known now; any thread may call it. It sends no request."""
        ...


@runtime_checkable
class NodeStates(Target, Protocol):
    """A cluster whose single nodes can be observed."""

    def is_running(self, node: str) -> Receipt:
        """Whether the node's process exists and answers."""
        ...

    def has_exited(self, node: str) -> Receipt:
        """Whether the node has exited since its last start because of its protocol or its storage.

        An exit by a signal or a requested shutdown does not count.
        """
        ...

    def endings(self) -> Sequence[Ending]:
        """Every exit of a node that the harness did not order, until :meth:`stop`; oldest first."""
        ...

    def takes_writes(self, node: str) -> Receipt:
        """Whether writes of the node's storage work now, in each of its log directories."""
        ...

    def has_refused_write(self, node: str, log_dir: int | None = None) -> Receipt:
        """Whether a write of the node's own has failed with ENOSPC since its last start.

        With ``log_dir`` one to that log directory.
        """
        ...

    def offline_log_dirs(self, node: str) -> Sequence[int]:
        """The log directories that the broker has taken offline.

        Raises:
            EnvironmentFault: it does not answer.
        """
        ...


@runtime_checkable
class BrokerEvidence(Target, Protocol):
    """A cluster whose nodes leave evidence for the checkers."""

    def timeline(self, run: str) -> Iterable[dict[str, Any]]:
        """Rows of ``schema.TIMELINE`` from every node, dead ones included. Call after :meth:`stop`."""
        ...

    def replica_logs(self) -> Iterable[Block]:
        """Rows of ``schema.REPLICA_LOGS``, minus ``run``, of every replica, read from its disk.

        Call after :meth:`stop`.
        """
        ...

    def copy_logs(self, directory: Path) -> None:
        """Copy the nodes' own log output into ``directory``."""
        ...


@runtime_checkable
class TellsClients(Target, Protocol):
    """A cluster that is asked, as by any client, for its leaders and watermarks while the run goes on."""

    def metadata(self, run: str) -> Iterable[dict[str, Any]]:
        """Rows of ``schema.TIMELINE`` of kind ``metadata``. Call after :meth:`stop`."""
        ...


@runtime_checkable
class ShowsLogs(Target, Protocol):
    """A cluster of whose brokers nothing is seen but the files of their disks in the end."""

    def read_logs(self) -> None:
        """Read the replicas' logs while the brokers run. Call when everything is healed, and before :meth:`stop`.

        Raises:
            EnvironmentFault: those of a broker cannot be read.
        """
        ...

    def replica_logs(self) -> Iterable[Block]:
        """Rows as of :class:`BrokerEvidence`, of what was read."""
        ...


OBSERVATIONS: frozenset[type[Target]] = frozenset({ReplicaStates, CommittedOffsets, NodeStates, BrokerEvidence})
"""The protocols of this module that a target names among its ``controls``.

:class:`KnowsLeaders` is for a live view alone; :class:`TellsClients` and :class:`ShowsLogs` take no control of a node.
"""
