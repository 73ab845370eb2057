"""The control channel: how the harness looks into a node and moves its faults. JSON lines over TCP.

One request per line, ``{"op": ..., ...}``; one answer line each, in order of completion, with ``"ok"``. It is no
part of the system under test: link faults do not touch it, and it works while the node is cut off.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, cast

Answer = Callable[[Mapping[str, Any]], None]
"""Takes the fields of the answer; call it once, now or later."""

Operation = Callable[[dict[str, Any], Answer], None]
"""Serves one ``op``; raises ``ValueError``, ``TypeError`` or ``KeyError`` when the request makes no sense."""

_MAX_LINE_BYTES = 1_048_576


class ControlConnection(asyncio.Protocol):
    """One connection of the harness."""

    def __init__(self, operations: Mapping[str, Operation]) -> None:
        self._operations = operations
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See :class:`asyncio.BaseProtocol`."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """See :class:`asyncio.Protocol`."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _MAX_LINE_BYTES:
            self._transport.abort()
        for line in lines:
            self._serve(line)

    def _serve(self, line: bytes) -> None:
        try:
            request = json.loads(line)
            operation = self._operations[request["op"]]
            operation(request, lambda fields: self._answer({"ok": True, **fields}))
        except (ValueError, TypeError, KeyError) as error:
            text = line[:200].decode(errors="replace")
            reason = f"control request {text} makes no sense: {type(error).__name__} {error}"
            self._answer({"ok": False, "error": f"{reason}; operations are {', '.join(self._operations)}."})

    def _answer(self, fields: Mapping[str, Any]) -> None:
        if not self._transport.is_closing():
            self._transport.write(json.dumps(fields).encode() + b"\n")


async def serve_control(address: tuple[str, int], operations: Mapping[str, Operation]) -> asyncio.Server:
    """Answer control requests at ``address`` until the returned server is closed.

    Raises:
        OSError: the address is taken or not ours.
    """
    return await asyncio.get_running_loop().create_server(lambda: ControlConnection(operations), *address)
