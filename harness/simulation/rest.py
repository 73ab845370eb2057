"""Whether a simulated cluster that was healed has full ISRs and equal logs."""

from __future__ import annotations

from harness.model import NO_LEADER
from harness.simulation.witnessed import Cluster

SETTLE_MS = 20_000
"""Virtual time in which a healthy cluster must converge; beyond every timeout and back-off that can be drawn."""


def at_rest(cluster: Cluster) -> bool:
    """Whether a leader has all replicas in sync, up to its log end."""
    partition, brokers = cluster.controller.partition, cluster.brokers
    if partition is None or partition.leader == NO_LEADER or len(partition.isr) < len(brokers):
        return False
    end = brokers[partition.leader].disk.end
    for broker in brokers:
        replica = broker.replica
        if replica is None or replica.role == "offline" or replica.leader_epoch != partition.leader_epoch:
            return False
        if not broker.disk.end == replica.high_watermark == end or len(replica.isr) != len(brokers):
            return False
    return True
