"""Sends requests to one other node over one connection, opened when needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.broker.ports import Connection, Network, Timer
from harness.broker.settings import Address
from harness.wire.declaration import Message
from harness.wire.errors import WireError
from harness.wire.frames import RequestHeader, decode_response, encode_request
from harness.wire.keys import ApiKey

Answered = Callable[[Message | None], None]
"""Takes the answer, or None when there will be none. Byte fields are views that only live during the call."""


@dataclass(slots=True, eq=False)
class _Call:
    header: RequestHeader
    body: Message
    answered: Answered
    timer: Timer


class Caller:
    """Calls node ``peer`` at ``address``, keeping one connection; answers arrive in the order of the requests.

    A request that is not answered in time takes the connection and every other request on it down, as in Kafka's
    ``NetworkClient``: the stream behind a lost answer is of no use. The next request opens a new one.
    """

    def __init__(self, network: Network, address: Address, peer: str, client_id: str) -> None:
        self.address = address
        self._network = network
        self._peer = peer
        self._client_id = client_id
        self._connection: Connection | None = None
        self._line: _Line | None = None
        self._waiting: dict[int, _Call] = {}
        self._next_correlation_id = 0

    def call(self, key: ApiKey, version: int, body: Message, timeout_s: float, answered: Answered) -> None:
        """Send ``body``; ``answered`` is called exactly once, later."""
        correlation_id = self._next_correlation_id
        self._next_correlation_id += 1
        header = RequestHeader(key, version, correlation_id, self._client_id)
        timer = self._network.call_later(timeout_s, self.close)
        self._waiting[correlation_id] = call = _Call(header, body, answered, timer)
        if self._connection is not None:
            self._connection.send(encode_request(call.header, call.body))
        elif self._line is None:
            self._line = line = _Line(self)
            self._network.connect(self.address, self._peer, line.connected, line.on_lost)

    def close(self) -> None:
        """Hang up; every request that waits gets None as its answer."""
        connection, self._connection, self._line = self._connection, None, None
        if connection is not None:
            connection.close()
        abandoned, self._waiting = self._waiting, {}
        for call in abandoned.values():
            call.timer.cancel()
        for call in abandoned.values():
            call.answered(None)

    def is_current(self, line: _Line) -> bool:
        """Whether ``line`` is the connection in use or being opened, and not one already given up."""
        return line is self._line

    def opened(self, connection: Connection) -> None:
        """The connection stands: send what has been waiting for it."""
        self._connection = connection
        for call in self._waiting.values():
            connection.send(encode_request(call.header, call.body))

    def received(self, frame: memoryview) -> None:
        """One answer arrived; nonsense costs the peer the connection."""
        call = next(iter(self._waiting.values()), None)
        try:
            if call is None:
                raise WireError("an answer to no request")
            correlation_id, body = decode_response(call.header.api_key, call.header.api_version, frame)
            if correlation_id != call.header.correlation_id:
                raise WireError(f"answer {correlation_id} to request {call.header.correlation_id}")
        except WireError:
            self.close()
            return
        del self._waiting[correlation_id]
        call.timer.cancel()
        call.answered(body)


class _Line:
    """One attempt to connect, and the connection that came of it; deaf once its caller has given it up."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def connected(self, connection: Connection) -> _Line:
        if self._caller.is_current(self):
            self._caller.opened(connection)
        else:
            connection.close()
        return self

    def on_frame(self, frame: memoryview) -> None:
        if self._caller.is_current(self):
            self._caller.received(frame)

    def on_lost(self) -> None:
        if self._caller.is_current(self):
            self._caller.close()
