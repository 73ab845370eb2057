"""Tracks the replicas of live brokers that are offline because their log directories have failed (KIP-112).

A broker reports lost directories, not the replicas in them: the controller sends it every state again and learns them
from the answers (``KAFKA_STORAGE_ERROR``). None of this is persisted: a new controller learns it again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from harness.model import NodeId, TopicPartition


class _Replica(NamedTuple):
    broker: NodeId
    partition: TopicPartition


class OfflineReplicas:
    """What the controller knows of failed directories."""

    def __init__(self) -> None:
        self._replicas: set[_Replica] = set()
        self._log_dirs: dict[NodeId, frozenset[str]] = {}

    @property
    def replicas(self) -> tuple[tuple[TopicPartition, NodeId], ...]:
        """Every offline replica of a broker that is alive, or was when it last answered."""
        return tuple(sorted((replica.partition, replica.broker) for replica in self._replicas))

    def heard(self, broker: NodeId, log_dirs: Iterable[str]) -> bool:
        """A heartbeat named the failed directories of ``broker``. Returns whether one of them is new."""
        known, named = self._log_dirs.get(broker, frozenset()), frozenset(log_dirs)
        self._log_dirs[broker] = named
        return bool(named - known)

    def answered(self, broker: NodeId, offline: Iterable[TopicPartition], online: Iterable[TopicPartition]) -> bool:
        """``broker`` has answered which of its replicas it can use. Returns whether that is new."""
        before = set(self._replicas)
        self._replicas -= {_Replica(broker, name) for name in online}
        self._replicas |= {_Replica(broker, name) for name in offline}
        return self._replicas != before

    def restarted(self, broker: NodeId) -> None:
        """A new process of ``broker`` will report its failed directories anew."""
        self._log_dirs.pop(broker, None)
        self._replicas = {replica for replica in self._replicas if replica.broker != broker}

    def live(self, partition: TopicPartition, brokers: Collection[NodeId]) -> Collection[NodeId]:
        """Those of ``brokers`` whose replica of ``partition`` can be used, in their order."""
        if not self._replicas:
            return brokers
        return tuple(broker for broker in brokers if _Replica(broker, partition) not in self._replicas)
