from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.broker.secret import HARNESS, Secret
from harness.errors import EnvironmentFault, NoAnswer
from harness.targets.addresses import Address
from harness.targets.control_client import ask

SECRET = Secret.draw()


@contextmanager
def answering(answer: bytes, node: str = "0", secret: Secret = SECRET) -> Iterator[Address]:
    """A node that knows a secret, gives one answer and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                introduction = bytes.fromhex(connection.recv(65536).splitlines()[0].decode())
                connection.sendall(secret.reply(introduction, HARNESS, node).hex().encode() + b"\n" + answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()
        thread.join()


def test_an_answer_is_its_fields() -> None:
    with answering(b'{"ok": true, "pid": 7}\n') as address:
        assert ask("0", address, SECRET, op="status")["pid"] == 7


def test_a_refusal_names_the_node_and_its_reason() -> None:
    refusing = answering(b'{"ok": false, "error": "no such operation"}\n')
    with refusing as address, pytest.raises(EnvironmentFault, match=r"node 0 refused .*no such operation"):
        ask("0", address, SECRET, op="dance")


@pytest.mark.parametrize("answer", [b"", b'{"ok": true', b"nonsense\n"])
def test_half_an_answer_is_none(answer: bytes) -> None:
    with answering(answer, "1") as address, pytest.raises(NoAnswer, match="node 1 does not answer 'status'"):
        ask("1", address, SECRET, op="status")


@pytest.mark.parametrize(("node", "secret"), [("0", Secret.draw()), ("1", SECRET)])
def test_who_does_not_know_the_secret_or_is_another_node_is_not_believed(node: str, secret: Secret) -> None:
    lying = answering(b'{"ok": true, "pid": 7}\n', node, secret)
    with lying as address, pytest.raises(NoAnswer, match="does not know the secret of this run"):
        ask("0", address, SECRET, op="status")


def test_a_node_that_does_not_listen_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    with pytest.raises(NoAnswer):
        ask("2", address, SECRET, op="status")


def test_a_node_that_is_stopped_does_not_answer_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(NoAnswer):
        ask("2", listener.getsockname(), SECRET, 0.05, op="status")
