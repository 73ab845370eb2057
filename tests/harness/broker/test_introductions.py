"""When an introduction may be made, and from when on a listener accepts one."""

import asyncio
import socket
import threading
import time
from typing import Any

import pytest

from harness.broker import introductions
from harness.broker.control_channel import Operation, serve_control
from harness.broker.introductions import open_listener
from harness.broker.secret import Secret
from harness.targets.control_client import ask


def test_a_listener_cannot_be_reached_at_the_time_from_which_it_accepts_introductions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = ("127.38.0.1", 9093)
    refused: list[OSError] = []

    def reach() -> int:
        with pytest.raises(ConnectionRefusedError) as problem:
            socket.create_connection(address, timeout=5)
        refused.append(problem.value)
        return time.monotonic_ns()

    monkeypatch.setattr(introductions, "monotonic_ns", reach)
    listener, since_ns = open_listener(address, 8)
    with listener, socket.create_connection(address, timeout=5):
        assert len(refused) == 1
        assert since_ns < time.monotonic_ns()


def test_the_harness_is_heard_by_a_node_that_began_to_listen_after_it_was_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret, address = Secret.draw(), ("127.38.0.2", 9093)
    listens, is_done = threading.Event(), threading.Event()

    async def node() -> None:
        operations: dict[str, Operation] = {"status": lambda _, answer: answer({"lives": 1})}
        server = await serve_control(address, secret, "0", operations)
        listens.set()
        await asyncio.to_thread(is_done.wait, 60)
        server.close()

    connect = socket.create_connection

    def connect_late(*args: Any, **options: Any) -> socket.socket:
        thread.start()
        assert listens.wait(60)
        return connect(*args, **options)

    thread = threading.Thread(target=lambda: asyncio.run(node()))
    monkeypatch.setattr(socket, "create_connection", connect_late)
    try:
        assert ask("0", address, secret, op="status")["lives"] == 1
    finally:
        is_done.set()
        thread.join(60)
