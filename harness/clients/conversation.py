"""One connection of the harness to a broker, for one request of Kafka's protocol at a time.

For what no client library asks: what a replica holds, who decides, or a fetch that claims to be a follower's.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from typing import TypeVar

from harness.errors import NoAnswer
from harness.model import NodeId, node_name
from harness.wire.declaration import Message
from harness.wire.errors import WireError
from harness.wire.frames import SUPPORTED, ApiKey, RequestHeader, decode_response, encode_request
from harness.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

_CLIENT_ID = "seawall"
_LENGTH = struct.Struct(">i")
_MAX_ANSWER_BYTES = 1 << 26

Answer = TypeVar("Answer", bound=Message)


class Conversation:
    """Connects on the first question, and again when the far end has hung up since the last; it asks no more than that.

    Args:
        node: the broker.
        address: where it listens, without a proxy in between.
        timeout_s: how long connecting, and each answer, may take.
    """

    def __init__(self, node: NodeId, address: tuple[str, int], timeout_s: float) -> None:
        self.node = node
        self._address = address
        self._timeout_s = timeout_s
        self._connection: socket.socket | None = None
        self._versions: Mapping[int, tuple[int, int]] = {}
        self._asked = 0

    def ask(self, body: Message, answer: type[Answer], newest: int) -> Answer:
        """Ask in the newest version that both sides speak, and that is not newer than ``newest``.

        Raises:
            NoAnswer: there is none in time, none that can be understood, or no version in common.
        """
        was_connected = self._connection is not None
        try:
            return self._ask(body, answer, newest)
        except (OSError, WireError) as problem:
            self.close()
            if was_connected and isinstance(problem, ConnectionError):
                return self.ask(body, answer, newest)
            raise NoAnswer(f"node {node_name(self.node)} does not answer {body.api_key.name}: {problem}.") from None

    def open(self) -> None:
        """Connect, unless it is connected.

        Raises:
            NoAnswer: the broker does not answer in time.
        """
        try:
            if self._connection is None:
                self._connect()
        except (OSError, WireError) as problem:
            self.close()
            raise NoAnswer(f"node {node_name(self.node)} does not answer: {problem}.") from None

    def _ask(self, body: Message, answer: type[Answer], newest: int) -> Answer:
        if self._connection is None:
            self._connect()
        return self._exchange(body, answer, self.version(body.api_key, newest))

    def version(self, key: ApiKey, newest: int) -> int:
        """In which version a question would be asked; known once something has been answered.

        Raises:
            NoAnswer: there is none in common.
        """
        first, last = self._versions.get(key, (0, -1))
        version = min(last, SUPPORTED[key][1], newest)
        if version < max(first, SUPPORTED[key][0]):
            raise NoAnswer(
                f"node {node_name(self.node)} speaks {key.name} in versions {first} to {last}, "
                f"and {SUPPORTED[key][0]} to {min(SUPPORTED[key][1], newest)} would be understood."
            )
        return version

    def close(self) -> None:
        """Hang up; idempotent."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> None:
        self._connection = socket.create_connection(self._address, self._timeout_s)
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        answer = self._exchange(ApiVersionsRequest(), ApiVersionsResponse, 0)
        self._versions = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}

    def _exchange(self, body: Message, expected: type[Answer], version: int) -> Answer:
        assert self._connection is not None
        self._asked += 1
        header = RequestHeader(body.api_key, version, self._asked, _CLIENT_ID)
        frame = b"".join(encode_request(header, body))
        self._connection.sendall(_LENGTH.pack(len(frame)) + frame)
        (size,) = _LENGTH.unpack(self._receive(_LENGTH.size))
        if not 0 <= size <= _MAX_ANSWER_BYTES:
            raise WireError(f"an answer of {size} bytes")
        asked, answer = decode_response(body.api_key, version, self._receive(size))
        if asked != self._asked:
            raise WireError(f"the answer to question {asked} came instead of that to {self._asked}")
        assert isinstance(answer, expected)
        return answer

    def _receive(self, size: int) -> bytes:
        assert self._connection is not None
        data = bytearray()
        while len(data) < size:
            more = self._connection.recv(size - len(data))
            if not more:
                raise ConnectionError("the connection was closed")
            data += more
        return bytes(data)
