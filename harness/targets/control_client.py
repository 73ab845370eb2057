"""Sends requests to a node's control channel: a proof and one JSON line there, a proof and one JSON line back.

Every request opens a new connection, which works whether the node was restarted since the last one or not.
"""

from __future__ import annotations

import json
import socket
from typing import Any

from harness.broker.secret import HARNESS, Secret
from harness.errors import EnvironmentFault, NoAnswer
from harness.targets.addresses import Address

ANSWER_TIMEOUT_S = 5.0


def ask(
    node: str, address: Address, secret: Secret, timeout_s: float = ANSWER_TIMEOUT_S, /, **request: Any
) -> dict[str, Any]:
    """Send ``request`` to ``node`` and return its answer.

    Raises:
        NoAnswer: no node with the secret listens there, or no whole line came back within ``timeout_s``.
        EnvironmentFault: the node answered with an error.
    """
    try:
        line = _exchange(node, address, secret, timeout_s, json.dumps(request).encode() + b"\n")
        answer: dict[str, Any] = json.loads(line)
    except (OSError, ValueError) as problem:
        question = request.get("op")
        raise NoAnswer(f"node {node} does not answer {question!r} on its control channel: {problem}.") from None
    if not answer.get("ok"):
        raise EnvironmentFault(f"node {node} refused {request!r}: {answer.get('error', 'no reason given')}.")
    return answer


def _exchange(node: str, address: Address, secret: Secret, timeout_s: float, line: bytes) -> bytes:
    with socket.create_connection(address, timeout=timeout_s) as connection:
        introduction = secret.introduction(HARNESS, node)
        connection.sendall(introduction.hex().encode() + b"\n" + line)
        with connection.makefile("rb") as stream:
            reply, answer = stream.readline().strip(), stream.readline()
    if reply and reply != secret.reply(introduction, HARNESS, node).hex().encode():
        raise ValueError("what listens there does not know the secret of this run")
    if not answer.endswith(b"\n"):
        raise ValueError("the connection closed before a whole answer came")
    return answer
