"""Simulated clients: producers that do not retry, and a consumer that tails the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.model import NO_LEADER, NodeId, Offset
from harness.replication.messages import (
    NO_ERROR,
    ErrorCode,
)
from harness.simulation.core.configuration import MS
from harness.simulation.core.process import Process

if TYPE_CHECKING:
    from harness.simulation.core.world import World


class Produce:
    """One produce request: a batch of values.

    Attributes:
        answered: whether the broker has answered; ``done``: whether the client has an answer, or has given up.
    """

    __slots__ = ("acks", "answered", "done", "number", "producer", "values")

    def __init__(self, producer: Producer, number: int, acks: int, values: tuple[int, ...]) -> None:
        self.producer = producer
        self.number = number
        self.acks = acks
        self.values = values
        self.answered = False
        self.done = False


class Poll:
    """One fetch of a consumer."""

    __slots__ = ("consumer", "number", "position")

    def __init__(self, consumer: Consumer, number: int, position: Offset) -> None:
        self.consumer = consumer
        self.number = number
        self.position = position


class Client(Process):
    """What producers and consumers have in common: a guess at who leads."""

    __slots__ = ("_leader", "_world")

    def __init__(self, world: World, index: int, name: str) -> None:
        super().__init__(index, name)
        self._world = world
        self._leader: NodeId = NodeId(0)

    def _ask_somebody(self) -> None:
        """Take any broker's word for who leads; it may be outdated."""
        world = self._world
        alive = [broker for broker in world.brokers if broker.replica is not None and not broker.paused]
        if alive:
            leader = alive[int(world.random() * len(alive))].replica.leader  # type: ignore[union-attr]
            self._leader = leader if leader != NO_LEADER else self._leader


class Producer(Client):
    """Sends one batch after the other; what is not answered in time is given up, its fate unknown."""

    __slots__ = ("_sent", "acks", "number")

    def __init__(self, world: World, index: int, number: int, acks: int) -> None:
        super().__init__(world, index, f"p{number}")
        self.number = number
        self.acks = acks
        self._sent = 0

    def go_on(self, _: object = None) -> None:
        """Send the next batch."""
        world = self._world
        if not world.producing:
            return
        self._sent += 1
        produce = Produce(self, self._sent, self.acks, world.next_values())
        world.sending(produce)
        broker = world.brokers[self._leader]
        world.send(self.index, broker, broker.life, broker.produce_arrived, produce)
        if self.acks:
            world.after(self, world.configuration.send_timeout_ms * MS, self._give_up, produce)
        else:
            produce.done = True
            world.sent(produce, NO_ERROR, -1)
            self._rest()

    def answered(self, told: tuple[Produce, ErrorCode, Offset]) -> None:
        """A broker's answer; one that comes after the client gave up is heard by nobody."""
        produce, error, base_offset = told
        if produce.done:
            return
        produce.done = True
        self._world.sent(produce, error, base_offset)
        if error is not NO_ERROR:
            self._ask_somebody()
        self._rest()

    def _give_up(self, produce: Produce) -> None:
        if not produce.done:
            produce.done = True
            self._world.sent(produce, ErrorCode.REQUEST_TIMED_OUT, -1)
            self._ask_somebody()
            self._rest()

    def _rest(self) -> None:
        world = self._world
        rest_ns = int(world.configuration.send_every_ms * MS * (0.5 + world.random()))
        world.after(self, rest_ns, self.go_on, None)


class Consumer(Client):
    """Reads on from its position, for ever."""

    __slots__ = ("_polled", "position")

    def __init__(self, world: World, index: int, name: str) -> None:
        super().__init__(world, index, name)
        self.position: Offset = 0
        self._polled = 0

    def poll(self, number: int = 0) -> None:
        """Ask for what comes next, unless the last poll has been answered meanwhile and has done so."""
        if number != self._polled:
            return
        world = self._world
        self._polled += 1
        poll = Poll(self, self._polled, self.position)
        broker = world.brokers[self._leader]
        world.send(self.index, broker, broker.life, broker.poll_arrived, poll)
        # An answer asks for the next poll after the same time; this one is for when none comes.
        world.after(self, 2 * world.configuration.poll_every_ms * MS, self.poll, self._polled)

    def answered(self, told: tuple[Poll, ErrorCode, list[tuple[Offset, int, int]]]) -> None:
        """Records, or that the broker does not lead."""
        poll, error, found = told
        if poll.number != self._polled:
            return
        if error is not NO_ERROR:
            self._ask_somebody()
        elif found:
            self.position = found[-1][0] + 1
            self._world.polled(found)
        self._world.after(self, self._world.configuration.poll_every_ms * MS, self.poll, self._polled)
