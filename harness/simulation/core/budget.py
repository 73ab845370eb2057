"""The fault budget: how much may happen to the brokers at one time without more being asked than replication promises.

It promises to survive crashes, however many there are, and as for power that ``lossy_budget`` brokers are without what
they had not flushed. A broker that stops uncleanly for another reason meanwhile may not be elected either, with
eligible leader replicas, and so counts as well; and one whose disk is full may stop at any moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.simulation.witnessed import Broker, World


class Budget:
    """See the module. It sets ``Broker.dirty`` and ``Broker.lossy`` back when a broker has caught up."""

    __slots__ = ("_world",)

    def __init__(self, world: World) -> None:
        self._world = world

    def affords(self, broker: Broker, *, lossy: bool) -> bool:
        """Whether this broker may stop uncleanly now, or its disk be full, which may make it do so.

        Without any power loss that is always affordable. ``lossy``: it would be one.
        """
        self.review()
        brokers = self._world.brokers
        if not lossy and not any(other.lossy for other in brokers):
            return True
        unclean = {other.node for other in brokers if other.dirty or other.disk.full} | {broker.node}
        return len(unclean) <= self._world.configuration.lossy_budget

    def review(self) -> None:
        """Take note of who has caught up: who is in the ISR again, and holds everything that is committed."""
        for broker in self._world.brokers:
            if broker.dirty and self.vouched_for(broker) and self._world.witness.missing(broker) is None:
                broker.dirty = broker.lossy = False

    def vouched_for(self, broker: Broker) -> bool:
        """Whether the controller has this very process of the broker in the ISR, and not an earlier one."""
        controller = self._world.controller
        partition = controller.partition
        return partition is not None and broker.node in partition.isr and controller.knows(broker.node)
