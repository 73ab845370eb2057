"""What the witness, the trace and the recording see of a run: the same of the bare core and of the whole broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from harness.model import NodeId
from harness.replication.controller import Controller
from harness.replication.controller_messages import PartitionState
from harness.replication.knobs import Knobs
from harness.replication.replica import Replica
from harness.simulation.core.configuration import Configuration
from harness.simulation.core.disk import Disk


class Process(Protocol):
    """A broker, or the controller."""

    @property
    def node(self) -> NodeId:
        """Its id; a broker's is also its index."""
        ...

    @property
    def name(self) -> str:
        """In traces."""
        ...

    @property
    def life(self) -> int:
        """How often it has been started."""
        ...


class Broker(Process, Protocol):
    """A broker through all its lives.

    Attributes:
        dirty: whether it stopped uncleanly and has not caught up since.
        lossy: the same after it lost power.
    """

    dirty: bool
    lossy: bool

    @property
    def disk(self) -> Disk:
        """Its log."""
        ...

    @property
    def replica(self) -> Replica | None:
        """None while it is dead."""
        ...

    @property
    def broker_epoch(self) -> int:
        """As the controller gave it; -1: not registered."""
        ...

    @property
    def clock_ns(self) -> int:
        """How far its wall clock is off."""
        ...


class ControllerProcess(Process, Protocol):
    """The controller through all its lives."""

    @property
    def core(self) -> Controller | None:
        """None while it is dead."""
        ...

    @property
    def partition(self) -> PartitionState | None:
        """The state of the partition; None while it is dead."""
        ...

    def knows(self, node: NodeId) -> bool:
        """Whether it has registered the present life of broker ``node``."""
        ...


class Sender(Protocol):
    """A producer."""

    @property
    def name(self) -> str:
        """In traces."""
        ...

    @property
    def number(self) -> int:
        """Which of them."""
        ...


class ProduceRequest(Protocol):
    """What a produce request asked for."""

    @property
    def acks(self) -> int:
        """-1: all."""
        ...

    @property
    def values(self) -> tuple[int, ...]:
        """One for each record."""
        ...


class Produce(ProduceRequest, Protocol):
    """One produce request."""

    @property
    def producer(self) -> Sender:
        """Whose it is."""
        ...


class Wanted(Protocol):
    """What a follower asks a leader for."""

    @property
    def leader_epoch(self) -> int:
        """In which it follows."""
        ...


class Cluster(Protocol):
    """The brokers and the controller of a run, and its time."""

    @property
    def knobs(self) -> Knobs:
        """The protocol."""
        ...

    @property
    def configuration(self) -> Configuration:
        """What was drawn."""
        ...

    @property
    def now_ns(self) -> int:
        """Since load and faults began."""
        ...

    @property
    def events(self) -> int:
        """How many things have happened."""
        ...

    @property
    def brokers(self) -> Sequence[Broker]:
        """All of them, by id."""
        ...

    @property
    def controller(self) -> ControllerProcess:
        """The controller."""
        ...


def vouched_for(controller: ControllerProcess, broker: Broker) -> bool:
    """Whether the controller has this very process of the broker in the ISR, and not an earlier one."""
    partition = controller.partition
    return partition is not None and broker.node in partition.isr and controller.knows(broker.node)
