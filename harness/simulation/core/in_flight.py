"""The messages between a simulated broker, its peers and the controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from harness.model import NodeId, Offset
from harness.replication.controller_messages import PartitionState
from harness.replication.messages import FetchReceived, NextEpochLookup, NextFetch
from harness.simulation.core.process import Receiver


class Asked:
    """A follower's question on its way, parked, or answered: a fetch, whose token it is for the core, or a lookup.

    Attributes:
        follower: whose it is; ``node``, ``life``, ``broker_epoch`` and ``log_start`` are as they were when it asked.
        answered: what an answer does at the follower.
        closed: whether the follower has an answer, or has stopped waiting: it ignores any other.
    """

    __slots__ = (
        "answered", "broker_epoch", "closed", "event", "follower", "life", "log_start", "node", "parked", "wanted",
    )  # fmt: skip

    def __init__(
        self,
        follower: Receiver,
        node: NodeId,
        broker_epoch: int,
        log_start: Offset,
        wanted: NextFetch | NextEpochLookup,
        *,
        answered: Callable[[Any], object],
    ) -> None:
        self.follower = follower
        self.node = node
        self.life = follower.life
        self.wanted: Any = wanted
        self.answered = answered
        self.broker_epoch = broker_epoch
        self.log_start = log_start
        self.event: FetchReceived | None = None
        self.parked = False
        self.closed = False


class StateUpdate(NamedTuple):
    """A LeaderAndIsr for the broker that registered with ``broker_epoch``; it sends ``number`` back."""

    number: int
    controller_epoch: int
    broker_epoch: int
    state: PartitionState
