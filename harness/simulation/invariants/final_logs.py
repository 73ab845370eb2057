"""The logs that decide what is lost: the final leader's, or those of all replicas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.model import NO_LEADER, Offset
from harness.simulation.witnessed import Broker, Cluster


class FinalLogs(NamedTuple):
    """See the module.

    Attributes:
        leader: who leads; None: no broker does.
        brokers: those whose logs count. If no broker leads, only what no log has any more counts as lost or vanished:
            no later leader could have it.
        held: what they hold, by offset and value.
        deleted: below this offset nothing is lost that is missing: the log begins there, and rightly so.
        converged: whether the cluster has come to rest.
    """

    leader: Broker | None
    brokers: Sequence[Broker]
    held: set[tuple[Offset, int]]
    deleted: Offset
    converged: bool

    @property
    def alone(self) -> tuple[int, ...]:
        """Whose log it is that lacks something; no particular one if it is missing everywhere."""
        return (self.brokers[0].node,) if len(self.brokers) == 1 else ()


def final_logs(cluster: Cluster, deleted: Offset, *, converged: bool) -> FinalLogs:
    """Those of ``cluster`` as it is now; below ``deleted`` records have been deleted on purpose."""
    partition = cluster.controller.partition
    leader = None if partition is None or partition.leader == NO_LEADER else cluster.brokers[partition.leader]
    brokers = cluster.brokers if leader is None else [leader]
    disks = [broker.disk for broker in brokers]
    held = {(offset, record.value) for disk in disks for offset, record in enumerate(disk.records, disk.start)}
    return FinalLogs(leader, brokers, held, min(deleted, max(disk.start for disk in disks)), converged)
