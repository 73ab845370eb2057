"""The control channel: how the harness reads the state of a node and injects its faults. JSON lines over TCP.

One request per line, ``{"op": ..., ...}``; one answer line each, in order of completion, with ``"ok"``. It is no
part of the system under test: link faults do not touch it, and it works while the node is cut off.

It serves the harness of this run alone. The harness sends a line with its introduction before the first request, and
the node one with its reply before the first answer, both in hexadecimal digits; see :mod:`harness.broker.secret`.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast

from harness.broker.control_fields import one_of
from harness.broker.introductions import open_listener
from harness.broker.secret import HARNESS, INTRODUCTION_BYTES, Secret

Answer = Callable[[Mapping[str, Any]], None]
"""Takes the fields of the answer; call it once, now or later."""

Operation = Callable[[dict[str, Any], Answer], None]
"""Serves one ``op``; raises ``ValueError`` when the request makes no sense: see :mod:`.control_fields`."""

_MAX_LINE_BYTES = 1_048_576
_MAX_INTRODUCTION_BYTES = 2 * INTRODUCTION_BYTES
_SHOWN_BYTES = 200
_BACKLOG = 128
_INTRODUCTION_TIMEOUT_S = 5.0


class ControlConnection(asyncio.Protocol):
    """One connection of the harness, or of a stranger.

    Args:
        door: checks introductions.
        operations: what may be asked for.
    """

    def __init__(self, door: Door, operations: Mapping[str, Operation]) -> None:
        self._door = door
        self._operations = operations
        self._rest = b""
        self._is_known = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See :class:`asyncio.BaseProtocol`."""
        self._transport = cast("asyncio.Transport", transport)
        self._patience = asyncio.get_running_loop().call_later(_INTRODUCTION_TIMEOUT_S, transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """See :class:`asyncio.BaseProtocol`."""
        self._patience.cancel()

    def data_received(self, data: bytes) -> None:
        """See :class:`asyncio.Protocol`."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line)
        most = _MAX_LINE_BYTES if self._is_known else _MAX_INTRODUCTION_BYTES
        if len(self._rest) > most:
            self._hang_up(f"a line of more than {most} bytes is not read")

    def _take(self, line: bytes) -> None:
        if self._is_known:
            self._serve(line)
            return
        reply = self._door.reply_to(line)
        if reply is None:
            self._hang_up("this is no introduction by the harness that has started this node")
        else:
            self._is_known = True
            self._patience.cancel()
            self._write(reply)

    def _serve(self, line: bytes) -> None:
        try:
            request = _parsed(line)
            operation = self._operations[one_of(request, "op", self._operations, "")]
            operation(request, lambda fields: self._answer({"ok": True, **fields}))
        except (ValueError, RecursionError) as problem:  # the latter where a request is nested too deeply
            text = line[:_SHOWN_BYTES].decode(errors="replace")
            self._answer({"ok": False, "error": f"control request {text} makes no sense: {problem}"})

    def _hang_up(self, why: str) -> None:
        self._answer({"ok": False, "error": why})
        self._rest = b""
        self._transport.close()

    def _answer(self, fields: Mapping[str, Any]) -> None:
        self._write(json.dumps(fields).encode())

    def _write(self, line: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(line + b"\n")


class Door:
    """Checks introductions of the harness to node ``name``: by ``secret``, and made no earlier than ``since_ns``."""

    def __init__(self, secret: Secret, name: str, since_ns: int) -> None:
        self._secret = secret
        self._name = name
        self._since_ns = since_ns

    def reply_to(self, line: bytes) -> bytes | None:
        """The line that answers an introduction; None: it is none."""
        try:
            introduction = bytes.fromhex(line.decode("ascii"))
        except ValueError:
            return None
        if not self._secret.knows(introduction, HARNESS, self._name, self._since_ns):
            return None
        return self._secret.reply(introduction, HARNESS, self._name).hex().encode()


async def serve_control(
    address: tuple[str, int], secret: Secret, name: str, operations: Mapping[str, Operation]
) -> asyncio.Server:
    """Answer control requests to node ``name`` at ``address`` until the returned server is closed.

    Raises:
        OSError: the address is taken or not ours.
    """
    listener, since_ns = open_listener(address, _BACKLOG)
    return await serve_control_on(listener, Door(secret, name, since_ns), operations)


async def serve_control_on(listener: socket.socket, door: Door, operations: Mapping[str, Operation]) -> asyncio.Server:
    """Answer control requests on a socket that listens already."""
    return await asyncio.get_running_loop().create_server(lambda: ControlConnection(door, operations), sock=listener)


def _parsed(line: bytes) -> dict[str, Any]:
    request = json.loads(line, parse_constant=_refuse_constant)
    if not isinstance(request, dict):
        raise ValueError("it is no object")
    return request


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
