"""The invariants of a replica, which it asserts after every event."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from harness.model import NO_EPOCH, NO_OFFSET, NodeId, Offset, TopicPartition


class ReplicaState(Protocol):
    """The checked state of a replica; see :class:`harness.replication.replica.Replica`."""

    @property
    def partition(self) -> TopicPartition:
        """The partition that it is a replica of."""
        ...

    @property
    def node(self) -> NodeId:
        """The broker that holds it."""
        ...

    @property
    def role(self) -> str:
        """``leader``, ``follower`` or ``offline``."""
        ...

    @property
    def leader(self) -> NodeId:
        """The broker that leads the partition, as this replica knows."""
        ...

    @property
    def leader_epoch(self) -> int:
        """The epoch of that leadership."""
        ...

    @property
    def isr(self) -> Collection[NodeId]:
        """The in-sync replicas, as this replica knows."""
        ...

    @property
    def high_watermark(self) -> Offset:
        """Exclusive."""
        ...

    @property
    def log_start_offset(self) -> Offset:
        """Inclusive."""
        ...

    @property
    def log_end_offset(self) -> Offset:
        """Exclusive."""
        ...


class Invariants:
    """The earlier state of one replica, for its checks."""

    __slots__ = ("_led_epoch", "_led_watermark")

    def __init__(self) -> None:
        self._led_epoch, self._led_watermark = NO_EPOCH, NO_OFFSET

    def forget(self) -> None:
        """The log has been cut on purpose."""
        self._led_epoch = NO_EPOCH

    def check(self, replica: ReplicaState, *, may_lead: bool) -> None:
        """Assert the invariants; ``may_lead``: whether the ISR allows it to lead."""
        name, watermark = replica.partition, replica.high_watermark
        assert replica.log_start_offset <= watermark <= replica.log_end_offset, f"{name}: watermark"
        if replica.role != "leader":
            return
        assert replica.leader == replica.node, f"{name}: leads, but the leader is {replica.leader}"
        assert may_lead, f"{name}: leads outside its ISR {replica.isr}"
        fell = self._led_epoch == replica.leader_epoch and watermark < self._led_watermark
        assert not fell, f"{name}: watermark fell to {watermark}"
        self._led_epoch, self._led_watermark = replica.leader_epoch, watermark
