"""The wire tap of a node: records every request that comes to its socket port, and every response.

:class:`TappedNetwork` stands between a built-in node and its network, real or simulated, so that neither knows of it;
:class:`StreamTap` looks at the bytes that a relay forwards to any other. What they record is one JSON line for each
frame, written before a request is served and before a response is sent on: a response that is not recorded has not
reached its client, however the node has ended. :func:`exchanges` makes rows of the lines.

A frame that is not understood is recorded as such, and passes like any other.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from harness.broker.ports import Buffer, Connection, FrameHandler, Network, Timer
from harness.history.schema import WIRE
from harness.wire.splitting import FrameSplitter
from harness.wire.summary import Summaries, correlation_id, merged

Row = dict[str, Any]

_MOST_UNANSWERED = 10_000
"""How many requests of a connection may wait for their responses until the oldest is forgotten."""


class _Asked(NamedTuple):
    api: str
    version: int


class WireTap:
    """Records what goes over the connections that one node has accepted.

    Args:
        prefix: of the names of its connections; another one for each life of the node.
        monotonic_ns: the time, in nanoseconds of the run's clock.
        write: takes one whole line, newline included, and must not buffer.
        summaries: shared by the taps of several nodes, where one process has them all.
    """

    def __init__(
        self,
        prefix: str,
        monotonic_ns: Callable[[], int],
        write: Callable[[bytes], object],
        summaries: Summaries | None = None,
    ) -> None:
        self.summaries = summaries or Summaries()
        self._prefix = prefix
        self._monotonic_ns = monotonic_ns
        self._write = write
        self._connections = 0

    def connection(self, peer: str) -> ConnectionTap:
        """The tap of a new connection, which ``peer`` has opened: a broker's id, ``controller`` or ``clients``."""
        self._connections += 1
        return ConnectionTap(self, f"{self._prefix}{self._connections}", peer)

    def record(self, event: str, connection: str, **said: Any) -> None:
        """Write a line."""
        row = {"event": event, "connection": connection, "time_ns": self._monotonic_ns(), **said}
        self._write(_encode({name: value for name, value in row.items() if value is not None}).encode() + b"\n")


class ConnectionTap:
    """Records what goes over one connection, which a client or another node has opened."""

    def __init__(self, tap: WireTap, name: str, peer: str) -> None:
        self._tap = tap
        self._name = name
        self._peer = peer
        self._unanswered: deque[tuple[int, _Asked]] = deque(maxlen=_MOST_UNANSWERED)

    def requested(self, frame: Buffer) -> None:
        """A whole request, without its length prefix."""
        one = self._tap.summaries.request(frame)
        if one.is_answered and one.api is not None and one.version is not None and one.correlation_id is not None:
            self._unanswered.append((one.correlation_id, _Asked(one.api, one.version)))
        said = one._asdict()
        del said["is_answered"]
        self._tap.record("request", self._name, peer=self._peer, **said)

    def answered(self, frame: Buffer) -> None:
        """A whole response, without its length prefix."""
        number = correlation_id(frame)
        asked = self._taken(number)
        if asked is None:
            self._tap.record("response", self._name, correlation_id=number, problem="it answers no request")
            return
        one = self._tap.summaries.response(asked.api, asked.version, frame)
        self._tap.record(
            "response", self._name, correlation_id=number, api=asked.api, parts=one.parts, problem=one.problem
        )

    def lost(self) -> None:
        """The stream is none of frames, or not any more."""
        self._tap.record("request", self._name, peer=self._peer, problem="a length that no frame has", parts=[{}])

    def _taken(self, number: int | None) -> _Asked | None:
        """The request that a response answers: as a rule the oldest, for a node answers in order."""
        found = next((one for one in self._unanswered if one[0] == number), None)
        if found is None:
            return None
        self._unanswered.remove(found)
        return found[1]


_NOTHING: Row = dict.fromkeys(column.name for column in WIRE.columns if column.name != "run")
_encode = json.JSONEncoder(separators=(",", ":")).encode


class StreamTap:
    """One direction of a connection as a stream of bytes.

    Args:
        take: is given every whole frame.
        lose: is called once when the stream turns out to be none of frames.
    """

    def __init__(self, take: Callable[[bytes], None], lose: Callable[[], None]) -> None:
        self._take = take
        self._lose = lose
        self._splitter = FrameSplitter()

    def feed(self, data: bytes) -> None:
        """Bytes that are about to be forwarded."""
        was_lost = self._splitter.is_lost
        for frame in self._splitter.feed(data):
            self._take(frame)
        if self._splitter.is_lost and not was_lost:
            self._lose()


# ------------------------------------------------------------------------------------------------------- the network


class TappedNetwork:
    """A network whose accepted connections are tapped; implements :class:`harness.broker.ports.Network`."""

    def __init__(self, network: Network, tap: WireTap) -> None:
        self._network = network
        self._tap = tap

    def listen(self, address: tuple[str, int], accept: Callable[[Connection], FrameHandler]) -> None:
        """See :class:`harness.broker.ports.Network`."""

        def accepted(connection: Connection) -> FrameHandler:
            tapped = _TappedConnection(connection, self._tap.connection(connection.peer))
            return _TappedHandler(accept(tapped), tapped.tap)

        self._network.listen(address, accepted)

    def connect(
        self,
        address: tuple[str, int],
        peer: str,
        connected: Callable[[Connection], FrameHandler],
        failed: Callable[[], None],
    ) -> None:
        """See :class:`harness.broker.ports.Network`. The far end records it."""
        self._network.connect(address, peer, connected, failed)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        """See :class:`harness.broker.ports.Network`."""
        return self._network.call_later(delay_s, callback)


class _TappedConnection:
    """Implements :class:`harness.broker.ports.Connection`."""

    def __init__(self, connection: Connection, tap: ConnectionTap) -> None:
        self.tap = tap
        self.peer = connection.peer
        self._connection = connection

    @property
    def host(self) -> str:
        return self._connection.host

    def send(self, segments: list[Buffer]) -> None:
        self.tap.answered(b"".join(segments))
        self._connection.send(segments)

    def close(self) -> None:
        self._connection.close()

    def pause(self) -> None:
        self._connection.pause()

    def resume(self) -> None:
        self._connection.resume()

    def watch_hangup(self, hung_up: Callable[[], None]) -> None:
        self._connection.watch_hangup(hung_up)


class _TappedHandler:
    """Implements :class:`harness.broker.ports.FrameHandler`."""

    def __init__(self, handler: FrameHandler, tap: ConnectionTap) -> None:
        self._handler = handler
        self._tap = tap

    def on_frame(self, frame: memoryview) -> None:
        self._tap.requested(frame)
        self._handler.on_frame(frame)

    def on_lost(self) -> None:
        self._handler.on_lost()


# ---------------------------------------------------------------------------------------------------------- the rows


def exchanges(node: int, lines: Iterable[bytes]) -> Iterator[Row]:
    """Rows of ``schema.WIRE``, minus ``run``, in the order of the responses; what was not answered comes last.

    Holds the requests that are not answered yet. A line that a crash has torn is left out: that of a request was not
    served, and that of a response not sent.
    """
    unanswered: dict[tuple[str, Any], deque[Row]] = defaultdict(deque)
    for line in lines:
        said = _parsed(line)
        if said is None:
            continue
        key = said["connection"], said.get("correlation_id")
        if said["event"] == "request":
            unanswered[key].append(said)
        elif waiting := unanswered.get(key):
            yield from _rows(node, waiting.popleft(), said)
            if not waiting:
                del unanswered[key]
        else:
            yield from _rows(node, {**said, "peer": ""}, said)
    for several in unanswered.values():
        for asked in several:
            yield from _rows(node, asked, None)


def _rows(node: int, asked: Row, answered: Row | None) -> Iterator[Row]:
    shared = {name: asked.get(name) for name in ("connection", "peer", "client_id", "api", "version", "correlation_id")}
    shared |= {"node": node, "request_ns": asked["time_ns"], "problem": asked.get("problem")}
    replies: list[Row] = []
    if answered is not None:
        shared |= {"response_ns": answered["time_ns"], "problem": shared["problem"] or answered.get("problem")}
        replies = answered.get("parts", [])
    for part in merged(asked.get("parts", [{}]), replies):
        yield {**_NOTHING, **shared, **part}


def _parsed(line: bytes) -> Row | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
