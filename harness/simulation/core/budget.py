"""The fault budget: how many brokers may be at fault at one time, so that replication must still keep its promises.

It promises to survive crashes, however many there are, and as for power that ``lossy_budget`` brokers are without what
they had not flushed. A broker that stops uncleanly for another reason meanwhile may not be elected either, with
eligible leader replicas, and so counts as well; and one whose disk is full may stop at any moment.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.model import Offset
from harness.simulation.witnessed import Broker, Cluster, vouched_for


class Budget:
    """See the module. It sets ``Broker.dirty`` and ``Broker.lossy`` back when a broker has caught up.

    Args:
        cluster: whose brokers they are.
        missing: the first committed offset that a broker's log lacks; None: it lacks none.
    """

    __slots__ = ("_cluster", "_missing")

    def __init__(self, cluster: Cluster, missing: Callable[[Broker], Offset | None]) -> None:
        self._cluster = cluster
        self._missing = missing

    def affords(self, broker: Broker, *, lossy: bool) -> bool:
        """Whether this broker may stop uncleanly now, or its disk be full, which may make it do so.

        Without any power loss that is always affordable. ``lossy``: it would be one.
        """
        self.review()
        brokers = self._cluster.brokers
        if not lossy and not any(other.lossy for other in brokers):
            return True
        unclean = {other.node for other in brokers if other.dirty or other.disk.full} | {broker.node}
        return len(unclean) <= self._cluster.configuration.lossy_budget

    def review(self) -> None:
        """Note which brokers have caught up: those in the ISR again that hold everything committed."""
        for broker in self._cluster.brokers:
            if broker.dirty and vouched_for(self._cluster.controller, broker) and self._missing(broker) is None:
                broker.dirty = broker.lossy = False
