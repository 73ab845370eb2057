"""The harness's end of a node's control channel: one JSON line there, one JSON line back.

Every request opens a connection of its own: nodes are killed and restarted all the time, and a fresh
connection never inherits the trouble of an old one.
"""

from __future__ import annotations

import json
import socket
from typing import Any

from harness.errors import EnvironmentFault, NoAnswer
from harness.targets.addresses import Address

ANSWER_TIMEOUT_S = 5.0


def ask(node: str, address: Address, timeout_s: float = ANSWER_TIMEOUT_S, /, **request: Any) -> dict[str, Any]:
    """Send ``request`` to ``node`` and return its answer.

    Raises:
        NoAnswer: nothing listens there, or no whole line came back within ``timeout_s``.
        EnvironmentFault: the node answered that it cannot do it.
    """
    try:
        line = _exchange(address, timeout_s, json.dumps(request).encode() + b"\n")
        answer: dict[str, Any] = json.loads(line)
    except (OSError, ValueError) as problem:
        question = request.get("op")
        raise NoAnswer(f"node {node} does not answer {question!r} on its control channel: {problem}.") from None
    if not answer.get("ok"):
        raise EnvironmentFault(f"node {node} refused {request!r}: {answer.get('error', 'no reason given')}.")
    return answer


def _exchange(address: Address, timeout_s: float, line: bytes) -> bytes:
    with socket.create_connection(address, timeout=timeout_s) as connection:
        connection.sendall(line)
        with connection.makefile("rb") as stream:
            answer: bytes = stream.readline()
    if not answer.endswith(b"\n"):
        raise ValueError("the connection closed before a whole answer came")
    return answer
