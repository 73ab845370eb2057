"""Simulated clients: producers that do not retry, and a consumer that tails the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from harness.error_codes import NO_ERROR, ErrorCode
from harness.model import NO_LEADER, NodeId, Offset
from harness.replication.replica import Replica
from harness.simulation.core.configuration import MS, Configuration
from harness.simulation.core.network import Network
from harness.simulation.core.process import Process, Receiver
from harness.simulation.core.scheduler import Scheduler
from harness.simulation.load import Load
from harness.simulation.run_observers import ClientObservers


class Server(Receiver, Protocol):
    """What a client sends to a broker; ``replica`` is None while it is dead."""

    replica: Replica | None

    def produce_arrived(self, produce: Produce) -> None:
        """A producer's records."""
        ...

    def poll_arrived(self, poll: Poll) -> None:
        """A consumer's fetch."""
        ...


class ClientEnvironment(NamedTuple):
    """What a client acts with; ``random`` is what its rests and its guesses are drawn from."""

    configuration: Configuration
    scheduler: Scheduler
    network: Network
    random: Callable[[], float]
    load: Load
    observers: ClientObservers


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
    """What producers and consumers have in common: a guess at the leader."""

    __slots__ = ("_brokers", "_environment", "_leader")

    def __init__(self, environment: ClientEnvironment, brokers: Sequence[Server], index: int, name: str) -> None:
        super().__init__(index, name)
        self._environment = environment
        self._brokers = brokers
        self._leader: NodeId = NodeId(0)

    def _ask_somebody(self) -> None:
        """Take the leader that some broker names; it may be outdated."""
        alive = [broker.replica for broker in self._brokers if broker.replica is not None and not broker.paused]
        if alive:
            leader = alive[int(self._environment.random() * len(alive))].leader
            self._leader = leader if leader != NO_LEADER else self._leader


class Producer(Client):
    """Sends one batch after the other; what is not answered in time is given up, its fate unknown."""

    __slots__ = ("_sent", "acks", "number")

    def __init__(
        self, environment: ClientEnvironment, brokers: Sequence[Server], index: int, number: int, acks: int
    ) -> None:
        super().__init__(environment, brokers, index, f"p{number}")
        self.number = number
        self.acks = acks
        self._sent = 0

    def go_on(self, _: object = None) -> None:
        """Send the next batch."""
        configuration, scheduler, network, _, load, observers = self._environment
        if not load.goes_on:
            return
        self._sent += 1
        produce = Produce(self, self._sent, self.acks, load.next_values())
        observers.sending(produce)
        broker = self._brokers[self._leader]
        network.send(self.index, broker, broker.life, broker.produce_arrived, produce)
        if self.acks:
            scheduler.after(self, configuration.send_timeout_ms * MS, self._give_up, produce)
        else:
            produce.done = True
            observers.sent(produce, NO_ERROR, -1)
            self._rest()

    def answered(self, answer: tuple[Produce, ErrorCode, Offset]) -> None:
        """A broker's answer; the producer ignores one that comes after it gave up."""
        produce, error, base_offset = answer
        if produce.done:
            return
        produce.done = True
        self._environment.observers.sent(produce, error, base_offset)
        if error is not NO_ERROR:
            self._ask_somebody()
        self._rest()

    def _give_up(self, produce: Produce) -> None:
        if not produce.done:
            produce.done = True
            self._environment.observers.sent(produce, ErrorCode.REQUEST_TIMED_OUT, -1)
            self._ask_somebody()
            self._rest()

    def _rest(self) -> None:
        environment = self._environment
        rest_ns = int(environment.configuration.send_every_ms * MS * (0.5 + environment.random()))
        environment.scheduler.after(self, rest_ns, self.go_on, None)


class Consumer(Client):
    """Reads on from its position, for ever."""

    __slots__ = ("_polled", "position")

    def __init__(self, environment: ClientEnvironment, brokers: Sequence[Server], index: int) -> None:
        super().__init__(environment, brokers, index, "con")
        self.position: Offset = 0
        self._polled = 0

    def poll(self, number: int = 0) -> None:
        """Ask for what comes next, unless the last poll has been answered meanwhile and has done so."""
        if number != self._polled:
            return
        configuration, scheduler, network, *_ = self._environment
        self._polled += 1
        poll = Poll(self, self._polled, self.position)
        broker = self._brokers[self._leader]
        network.send(self.index, broker, broker.life, broker.poll_arrived, poll)
        # An answer asks for the next poll after the same time; this one is for when none comes.
        scheduler.after(self, 2 * configuration.poll_every_ms * MS, self.poll, self._polled)

    def answered(self, answer: tuple[Poll, ErrorCode, list[tuple[Offset, int, int]]]) -> None:
        """Records, or that the broker does not lead."""
        poll, error, found = answer
        if poll.number != self._polled:
            return
        if error is not NO_ERROR:
            self._ask_somebody()
        elif found:
            self.position = found[-1][0] + 1
            self._environment.observers.polled(found)
        wait_ns = self._environment.configuration.poll_every_ms * MS
        self._environment.scheduler.after(self, wait_ns, self.poll, self._polled)
