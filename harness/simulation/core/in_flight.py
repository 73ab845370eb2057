"""What travels between a simulated broker, its peers and the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harness.replication.controller_messages import PartitionState
from harness.replication.messages import FetchReceived, NextEpochLookup, NextFetch

if TYPE_CHECKING:
    from harness.simulation.core.broker import Broker


class Asked:
    """A follower's question on its way, parked, or answered: a fetch, whose token it is for the core, or a lookup.

    Attributes:
        closed: whether an answer has come, or nobody waits for it any more: whatever comes now is not heard.
    """

    __slots__ = ("broker_epoch", "closed", "event", "follower", "life", "log_start", "parked", "wanted")

    def __init__(self, follower: Broker, wanted: NextFetch | NextEpochLookup) -> None:
        self.follower = follower
        self.life = follower.life
        self.wanted: Any = wanted
        self.broker_epoch = follower.broker_epoch
        self.log_start = follower.disk.start
        self.event: FetchReceived | None = None
        self.parked = False
        self.closed = False


class StateUpdate(NamedTuple):
    """The controller's word on its way to a broker; ``number`` is to be sent back. ``broker_epoch``: for whom."""

    number: int
    controller_epoch: int
    broker_epoch: int
    state: PartitionState
