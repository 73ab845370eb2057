"""A Kafka client in virtual time: it keeps connections and finds leaders, and never retries by itself.

To find a leader it asks every broker at once, waits a moment for their answers, and believes the newest leader epoch,
or, where brokers send none, the majority.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple

from harness.broker.ports import Connection, Timer
from harness.model import NO_EPOCH, TopicPartition
from harness.simulation.stack.links import Address
from harness.simulation.stack.network import SimulatedNetwork
from harness.simulation.stack.tasks import Promise, Task
from harness.wire.declaration import Message
from harness.wire.errors import WireError
from harness.wire.frames import ADVERTISED, RequestHeader, decode_response, encode_request
from harness.wire.keys import ApiKey
from harness.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

_METADATA_VERSION = 9
_METADATA_TIMEOUT_S = 0.25
_LISTEN_S = 0.005
"""How long a client waits for others to contradict the first broker that has named a leader."""

_METADATA_MAX_AGE_NS = 1_000_000_000
"""After this long a client looks for a new leader: the old one may not know that it is deposed."""

_BACKOFF_S = 0.02
_BROKER = "broker"
"""What a client calls every broker: it knows addresses, not names."""


_LineName = tuple[Address, str]
"""A broker, and what the connection is for."""


class Silence(Enum):
    """Why there is no answer."""

    REFUSED = auto()
    """The broker does not listen: the request was never sent."""
    LOST = auto()
    """The connection was lost after the request had been sent."""
    TIMED_OUT = auto()
    GIVEN_UP = auto()
    """The client was closed."""


class Leader(NamedTuple):
    """Where a partition is led; ``epoch`` is -1 where the cluster sends none."""

    address: Address
    epoch: int


class Call(NamedTuple):
    """A request. ``has_answer`` is False for a Produce with acks 0."""

    key: ApiKey
    version: int
    body: Message
    timeout_s: float
    has_answer: bool = True


class Client:
    """One client.

    Args:
        network: its own.
        bootstrap: the brokers' addresses.
        client_id: for the brokers.
        served: by request, the versions that the brokers have said that they serve.
    """

    def __init__(
        self, network: SimulatedNetwork, bootstrap: Sequence[Address], client_id: str,
        served: Mapping[ApiKey, tuple[int, int]] = ADVERTISED,
    ) -> None:  # fmt: skip
        self.network = network
        self.world = network.world
        self.client_id = client_id
        self.is_closed = False
        self.correlation_ids = itertools.count()
        self._served = served
        self._bootstrap = bootstrap
        self._reachable: Sequence[Address] = bootstrap
        self._turn = -1
        self._lines: dict[_LineName, _Line] = {}
        self._leaders: dict[TopicPartition, Leader] = {}
        self._newest_epochs: dict[TopicPartition, int] = {}
        self._looked_ns: dict[str, int] = {}

    def version(self, key: ApiKey, newest: int) -> int:
        """In which version to send a request that this client knows up to ``newest``."""
        return min(newest, self._served[key][1])

    async def ask(self, address: Address, call: Call, purpose: str = "") -> Message | Silence:
        """Send a request to the broker at ``address``, over the connection for ``purpose``; see :class:`Silence`.

        A request that is not answered in time takes its connection down: the stream behind it is of no use.
        """
        if self.is_closed:
            return Silence.GIVEN_UP
        name = (address, purpose)
        line = self._lines.get(name)
        if line is None:
            line = self._lines[name] = _Line(self, name)
        return await line.ask(call)

    async def ask_anybody(self, call: Call) -> Message | Silence:
        """Send a request to one of the brokers that have answered lately, in turn."""
        self._turn = (self._turn + 1) % len(self._reachable)
        return await self.ask(self._reachable[self._turn], call)

    async def leader(self, partition: TopicPartition, deadline_ns: int) -> Leader | None:
        """The leader of ``partition``; None when no broker names one until ``deadline_ns``, or the client is closed."""
        while not self.is_closed and self.world.now_ns < deadline_ns:
            age_ns = self.world.now_ns - self._looked_ns.get(partition.topic, -_METADATA_MAX_AGE_NS)
            if partition not in self._leaders or age_ns >= _METADATA_MAX_AGE_NS:
                await self.look(partition.topic)
            if partition in self._leaders:
                return self._leaders[partition]
            await self.sleep(_BACKOFF_S)
        return None

    def forget_leader(self, partition: TopicPartition) -> None:
        """Ask again before the next request."""
        self._leaders.pop(partition, None)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        promise: Promise[None] = Promise()
        self.network.call_later(seconds, lambda: promise.keep(None))
        await promise

    def close(self) -> None:
        """Hang up everywhere; every request that waits ends with ``GIVEN_UP``."""
        self.is_closed = True
        for line in list(self._lines.values()):
            line.end(Silence.GIVEN_UP)

    def line_ended(self, name: _LineName) -> None:
        """The next request opens a new connection."""
        self._lines.pop(name, None)

    async def look(self, topic: str) -> None:
        """Ask every broker who leads the partitions of ``topic``."""
        self._looked_ns[topic] = self.world.now_ns
        poll = _Poll(self.network, len(self._bootstrap))
        asked = [Task(self._look_at(address, topic, poll)) for address in self._bootstrap]
        await poll.over
        for task in asked:
            task.result()
        self._reachable = [address for address in self._bootstrap if address in poll.answers] or self._bootstrap
        self._learn([poll.answers[address] for address in self._reachable if address in poll.answers])

    async def _look_at(self, address: Address, topic: str, poll: _Poll) -> None:
        asked = MetadataRequest([MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        call = Call(ApiKey.METADATA, _METADATA_VERSION, asked, _METADATA_TIMEOUT_S)
        poll.heard(address, await self.ask(address, call, purpose="look"))

    def _learn(self, answers: Sequence[MetadataResponse]) -> None:
        named: dict[TopicPartition, list[Leader]] = {}
        for answer in answers:
            addresses = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
            for topic in answer.topics:
                for one in topic.partitions:
                    if one.leader_id in addresses:
                        name = TopicPartition(topic.name or "", one.partition_index)
                        named.setdefault(name, []).append(Leader(addresses[one.leader_id], one.leader_epoch))
        for name, leaders in named.items():
            newest = max(leader.epoch for leader in leaders)
            if newest >= self._newest_epochs.get(name, NO_EPOCH):
                self._newest_epochs[name] = newest
                current = [leader for leader in leaders if leader.epoch == newest]
                self._leaders[name] = max(current, key=current.count)


class _Poll:
    """The answers of all brokers to the same request.

    Attributes:
        answers: by broker.
        over: kept when all have answered, or a moment after the first one has.
    """

    def __init__(self, network: SimulatedNetwork, asked: int) -> None:
        self.answers: dict[Address, MetadataResponse] = {}
        self.over: Promise[None] = Promise()
        self._network = network
        self._outstanding = asked

    def heard(self, address: Address, answer: Message | Silence) -> None:
        """One of them has answered, or never will."""
        self._outstanding -= 1
        if isinstance(answer, MetadataResponse):
            if not self.answers:
                self._network.call_later(_LISTEN_S, lambda: self.over.keep(None))
            self.answers[address] = answer
        if not self._outstanding:
            self.over.keep(None)


class _Asked(NamedTuple):
    header: RequestHeader
    call: Call
    promise: Promise[Message | Silence]
    timer: Timer


class _Line:
    """One connection of a client, from the attempt to its end; answers arrive in the order of the requests."""

    def __init__(self, client: Client, name: _LineName) -> None:
        self._client = client
        self._name = name
        self._connection: Connection | None = None
        self._waiting: deque[_Asked] = deque()
        self._over = False
        client.network.connect(name[0], _BROKER, self.connected, lambda: self.end(Silence.REFUSED))

    def ask(self, call: Call) -> Promise[Message | Silence]:
        header = RequestHeader(call.key, call.version, next(self._client.correlation_ids), self._client.client_id)
        promise: Promise[Message | Silence] = Promise()
        asked = _Asked(
            header, call, promise, self._client.network.call_later(call.timeout_s, lambda: self._late(asked))
        )
        self._waiting.append(asked)
        if self._connection is not None:
            self._send(self._connection, asked)
        return promise

    def end(self, why: Silence) -> None:
        if self._over:
            return
        self._over = True
        self._client.line_ended(self._name)
        if self._connection is not None:
            self._connection.close()
        waiting, self._waiting = self._waiting, deque()
        for asked in waiting:
            asked.timer.cancel()
        for asked in waiting:
            asked.promise.keep(why)

    def connected(self, connection: Connection) -> _Line:
        if self._over:
            connection.close()
            return self
        self._connection = connection
        for asked in list(self._waiting):
            self._send(connection, asked)
        return self

    def on_frame(self, frame: memoryview) -> None:
        if self._over:
            return
        asked = self._waiting[0] if self._waiting else None
        try:
            if asked is None:
                raise WireError("an answer to no request")
            correlation_id, body = decode_response(asked.header.api_key, asked.header.api_version, frame)
            if correlation_id != asked.header.correlation_id:
                raise WireError(f"answer {correlation_id} to request {asked.header.correlation_id}")
        except WireError:
            self.end(Silence.LOST)
            return
        self._answered(asked, body)

    def on_lost(self) -> None:
        self.end(Silence.LOST)

    def _send(self, connection: Connection, asked: _Asked) -> None:
        connection.send(encode_request(asked.header, asked.call.body))
        if not asked.call.has_answer:
            self._answered(asked, asked.call.body)

    def _answered(self, asked: _Asked, body: Message) -> None:
        self._waiting.remove(asked)
        asked.timer.cancel()
        asked.promise.keep(body)

    def _late(self, asked: _Asked) -> None:
        self._waiting.remove(asked)
        asked.promise.keep(Silence.TIMED_OUT)
        self.end(Silence.LOST)
