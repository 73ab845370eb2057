"""The clients of a random schedule on the whole broker: producers that send in a loop, and a consumer that tails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from harness import payload
from harness.client_ports import BEGINNING, MOVED_ERRORS, Manner
from harness.client_tasks.sending_process import dated
from harness.error_codes import ErrorCode
from harness.model import NodeId, Offset
from harness.simulation.core.configuration import PARTITION, Configuration
from harness.simulation.load import Load
from harness.simulation.run_observers import ClientObservers
from harness.simulation.stack.client import Client
from harness.simulation.stack.cluster import SimulatedCluster, listener
from harness.simulation.stack.producing import Producer as Sender
from harness.simulation.stack.reading import Reader
from harness.simulation.stack.tasks import Task

_AFTER_ERROR_S = 0.02
_POLL_RECORDS = 500
_TOGETHER = Manner(batch=1_000)


class ClientEnvironment(NamedTuple):
    """What a client acts with; ``random`` is what its rests are drawn from."""

    configuration: Configuration
    cluster: SimulatedCluster
    random: Callable[[], float]
    load: Load
    observers: ClientObservers

    def client(self, name: str) -> Client:
        """A client that knows every broker's address."""
        bootstrap = [listener(NodeId(node)) for node in range(self.configuration.nodes)]
        return Client(self.cluster.network(), bootstrap, name)


class Sending:
    """One produce request: a batch of values."""

    __slots__ = ("acks", "producer", "values")

    def __init__(self, producer: Producer, acks: int, values: tuple[int, ...]) -> None:
        self.producer = producer
        self.acks = acks
        self.values = values


class Producer:
    """Sends one batch after the other; what is not answered in time is given up, its fate unknown.

    Attributes:
        number: which of them.
        name: in traces.
    """

    def __init__(self, environment: ClientEnvironment, number: int, acks: int) -> None:
        self.number = number
        self.name = f"p{number}"
        self._environment = environment
        self._acks = acks
        self._client = environment.client(self.name)

    async def send_on(self) -> None:
        """Send as long as there is load."""
        configuration, _, random, load, _ = self._environment
        sender = Sender(self._client, self._acks, configuration.send_timeout_ms / 1000, _TOGETHER)
        await self._client.sleep(random() / 1000)
        while load.goes_on:
            await self._send(sender, self._acks)
            await self._client.sleep(configuration.send_every_ms / 1000 * (0.5 + random()))

    async def send_until(self, enough: Callable[[], bool]) -> None:
        """Send with acks=all until that is enough."""
        configuration, load = self._environment.configuration, self._environment.load
        sender = Sender(self._client, -1, configuration.send_timeout_ms / 1000, _TOGETHER)
        while load.goes_on and not enough():
            await self._send(sender, -1)
            await self._client.sleep(configuration.send_every_ms / 1000)

    async def _send(self, sender: Sender, acks: int) -> None:
        _, cluster, _, load, observers = self._environment
        sending = Sending(self, acks, load.next_values())
        observers.sending(sending)
        times = dated(len(sending.values), cluster.world.wall_ms())
        dates = zip(sending.values, times, strict=True)
        batch = [payload.encode(value, *PARTITION, timestamp_ms=at) for value, at in dates]
        answers = await sender.send_batch(PARTITION, batch)
        first = answers[0]
        offset = -1 if first.offset is None else first.offset
        observers.sent(sending, _error(first.kind, first.error), offset)


class Consumer:
    """Reads on from its position, for ever; from the beginning where it has lost its place."""

    def __init__(self, environment: ClientEnvironment) -> None:
        self._environment = environment

    async def tail(self) -> None:
        """Poll, and poll again."""
        position: Offset = 0
        while True:
            client = self._environment.client("con")
            reader = Reader(client, {PARTITION: position})
            error = await self._poll(reader)
            position = BEGINNING if error in MOVED_ERRORS else reader.positions[PARTITION]
            await client.sleep(_AFTER_ERROR_S)
            client.close()

    async def _poll(self, reader: Reader) -> str:
        """Until there is an error, which is returned."""
        wait_s = self._environment.configuration.poll_every_ms / 1000
        while True:
            records, error, _ = await reader.poll(_POLL_RECORDS, wait_s)
            damaged = [one for one in records if not one.intact]
            assert not damaged, f"the consumer was given damaged records: {damaged}"
            if records:
                found = [(one.offset, _known(one.value), _known(one.leader_epoch)) for one in records]
                self._environment.observers.polled(found)
            if error is not None:
                return error


class Clients:
    """All of them.

    Attributes:
        producers: at least one.
    """

    def __init__(self, environment: ClientEnvironment) -> None:
        acks = environment.configuration.acks
        numbers = range(environment.configuration.producers)
        self.producers = [Producer(environment, number, acks[number % len(acks)]) for number in numbers]
        self._consumer = Consumer(environment)
        self._tasks: list[Task[Any]] = []

    def start(self) -> None:
        """Begin the load."""
        self._tasks = [Task(producer.send_on()) for producer in self.producers]
        self._tasks.append(Task(self._consumer.tail()))

    def send_until(self, enough: Callable[[], bool]) -> None:
        """Have the first producer send until that is enough."""
        self._tasks.append(Task(self.producers[0].send_until(enough)))

    def check(self) -> None:
        """Raise the exception that has ended a client, if any."""
        for task in self._tasks:
            task.result()


def _error(kind: str, name: str | None) -> ErrorCode:
    """The error for the witness: none, one that proves that nothing was appended, or one that proves nothing."""
    if kind == "ok":
        return ErrorCode.NONE
    return ErrorCode.NOT_ENOUGH_REPLICAS if kind == "fail" else ErrorCode.REQUEST_TIMED_OUT


def _known(number: int | None) -> int:
    return -1 if number is None else number
