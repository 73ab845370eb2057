"""Who leads: clean elections as pure functions of a partition's state and the brokers that are alive."""

from __future__ import annotations

from collections.abc import Collection

from harness.model import NO_LEADER, NodeId
from harness.replication.controller_messages import PartitionState


def settle(partition: PartitionState, live: Collection[NodeId]) -> PartitionState:
    """``partition`` as it has to be when exactly the brokers ``live`` are alive; unchanged when it is so already.

    The dead leave the ISR, unless nobody would be left: then the ISR keeps its last members, and only one of
    those may lead later. A leader that is alive and in the ISR stays; otherwise the first live ISR member in
    replica order leads, or nobody.
    """
    living = tuple(node for node in partition.isr if node in live)
    isr = living or partition.isr
    leader = partition.leader if partition.leader in living else _first(partition.replicas, living)
    if leader == partition.leader and isr == partition.isr:
        return partition
    return partition._replace(
        leader=leader,
        leader_epoch=partition.leader_epoch + (leader != partition.leader),
        partition_epoch=partition.partition_epoch + 1,
        isr=isr,
    )


def _first(replicas: tuple[NodeId, ...], electable: tuple[NodeId, ...]) -> NodeId:
    return next((node for node in replicas if node in electable), NO_LEADER)
