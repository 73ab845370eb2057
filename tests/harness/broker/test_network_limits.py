"""What peers may occupy of a node: connections, and bytes that are held for them; and who is gone without a word."""

import asyncio
import socket
import struct
from contextlib import ExitStack, suppress

import pytest

from harness.broker import network, unproven
from harness.broker.ports import Connection
from harness.model import Link
from tests.harness.broker.node_pair import (
    ADDRESS,
    OTHER,
    Echo,
    Pair,
    run,
    settle,
    until,
)


def test_a_client_beyond_the_limit_is_disconnected_and_the_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "MAX_CLIENT_CONNECTIONS", 2)

    async def story(nodes: Pair) -> None:
        await nodes.connect()  # a node of the cluster counts for itself
        with ExitStack() as sockets:
            clients = [sockets.enter_context(socket.create_connection(ADDRESS)) for _ in range(3)]
            await until(lambda: len(nodes.accepted) == 4)
            await until(lambda: sum(one.lost for one in nodes.accepted) == 1)
            clients[0].close()
            await until(lambda: sum(one.lost for one in nodes.accepted) == 2)
            again = sockets.enter_context(socket.create_connection(ADDRESS))
            again.sendall(struct.pack(">i", 1) + b"x")
            await until(lambda: nodes.accepted[-1].frames == [b"x"])
        assert nodes.complaints == ["Disconnected clients: 2 other connections are open."]

    run(story)


def silent(sockets: ExitStack) -> socket.socket:
    """A connection from the address of node 1 over which nothing is sent."""
    return sockets.enter_context(socket.create_connection(ADDRESS, source_address=(OTHER, 0)))


def lost(nodes: Pair) -> list[int]:
    return [one.lost for one in nodes.accepted]


async def is_served(nodes: Pair) -> bool:
    """Whether node 1 gets an answer over a new connection."""
    end = await nodes.connect()
    end.connection.send([b"x"])
    await until(lambda: bool(end.frames) or bool(end.lost))
    return end.frames == [b"re:x"]


def test_connections_without_an_introduction_do_not_keep_the_node_out_whose_address_they_have() -> None:
    async def story(nodes: Pair) -> None:
        with ExitStack() as sockets:
            for _ in range(network.MAX_NODE_CONNECTIONS + 2):
                silent(sockets)
            await until(lambda: sum(lost(nodes)) == 2)
            assert lost(nodes) == [1, 1] + [0] * network.MAX_NODE_CONNECTIONS
            assert await is_served(nodes)
            assert lost(nodes)[:4] == [1, 1, 1, 0]
            assert lost(nodes)[-1] == 0

    run(story)


def test_a_connection_that_has_introduced_itself_is_not_closed_for_one_that_has_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unproven, "MAX_UNPROVEN_CONNECTIONS", 2)
    monkeypatch.setattr(network, "MAX_NODE_CONNECTIONS", 2)

    async def story(nodes: Pair) -> None:
        with ExitStack() as sockets:
            assert await is_served(nodes)
            for _ in range(5):
                silent(sockets)
            await until(lambda: lost(nodes) == [0, 1, 1, 1, 0, 0])
            assert await is_served(nodes)
            assert not await is_served(nodes)  # the third one of the node itself
            assert nodes.complaints[-1] == "Disconnected 1: 2 other connections are open."
            assert nodes.opened[0].lost == 0

    run(story)


def test_a_connection_without_an_introduction_is_closed_after_a_while_and_one_with_it_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unproven, "INTRODUCTION_TIMEOUT_S", 0.01)

    async def story(nodes: Pair) -> None:
        with ExitStack() as sockets:
            nodes.server.cut([Link("1", "0")])
            node = await nodes.connect()  # its introduction cannot be read before the link is mended
            node.connection.send([b"x"])
            silent(sockets)
            await until(lambda: len(nodes.accepted) == 2)
            await settle()
            assert lost(nodes) == [0, 0]
            nodes.server.cut([])
            await until(lambda: lost(nodes) == [0, 1])
            await until(lambda: node.frames == [b"re:x"])
            await settle()
            assert lost(nodes) == [0, 1]
            assert len(nodes.complaints) == 1

    run(story)


def test_the_client_for_which_most_is_held_is_disconnected_when_all_take_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(network, "MAX_HELD_BYTES", 4 << 20)

    async def story(nodes: Pair) -> None:
        with socket.create_connection(ADDRESS) as small, socket.create_connection(ADDRESS) as large:
            for client, size in ((small, 1 << 20), (large, 5 << 20)):
                client.setblocking(False)
                announced = struct.pack(">i", 99 << 20) + bytes(size)
                while announced and not any(one.lost for one in nodes.accepted):
                    with suppress(BlockingIOError, ConnectionError):
                        announced = announced[client.send(announced) :]
                    await asyncio.sleep(0)
            await until(lambda: any(one.lost for one in nodes.accepted))
            assert [one.lost for one in nodes.accepted] == [0, 1]
        await until(lambda: not nodes.server.streams)
        assert nodes.server.bytes_held == 0
        assert len(nodes.complaints) == 1

    run(story)


def test_answers_that_a_client_does_not_read_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "MAX_HELD_BYTES", 2 << 20)

    async def story(nodes: Pair) -> None:
        with socket.create_connection(ADDRESS):
            await until(lambda: bool(nodes.accepted))
            end = nodes.accepted[0]
            for _ in range(20):
                end.connection.send([bytes(1 << 20)])
                await asyncio.sleep(0)
            await until(lambda: end.lost == 1)
        assert nodes.server.bytes_held == 0

    run(story)


def test_the_owner_of_a_paused_connection_hears_once_that_its_client_has_hung_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(network, "HANGUP_INTERVAL_S", 0.01)

    async def story(nodes: Pair) -> None:
        heard: list[int] = []
        with socket.create_connection(ADDRESS) as client:
            await until(lambda: bool(nodes.accepted))
            end = nodes.accepted[0]
            end.connection.watch_hangup(lambda: heard.append(len(end.frames)))
            end.connection.pause()
            client.sendall(struct.pack(">i", 3) + b"abc")
            await settle()
            assert heard == []
        await until(lambda: bool(heard))
        await settle()
        assert (heard, end.lost) == ([0], 0)
        end.connection.resume()
        await until(lambda: end.lost == 1)
        assert end.frames == [b"abc"]

    run(story)


def test_a_client_that_hangs_up_over_a_cut_link_is_not_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "HANGUP_INTERVAL_S", 0.01)

    async def story(nodes: Pair) -> None:
        heard: list[None] = []
        with socket.create_connection(ADDRESS):
            await until(lambda: bool(nodes.accepted))
            nodes.accepted[0].connection.watch_hangup(lambda: heard.append(None))
            nodes.accepted[0].connection.pause()
            nodes.server.cut([Link("clients", "0")])
        await settle()
        assert heard == []
        nodes.server.cut([])
        await until(lambda: len(heard) == 1)

    run(story)


def test_a_connection_that_its_owner_pauses_when_it_accepts_it_delivers_nothing_before_it_is_resumed() -> None:
    async def story(nodes: Pair) -> None:
        accept = nodes.accept

        def paused(connection: Connection) -> Echo:
            connection.pause()
            return accept(connection)

        nodes.server.listen((ADDRESS[0], 19093), paused)
        await asyncio.sleep(0.01)
        with socket.create_connection((ADDRESS[0], 19093)) as client:
            client.sendall((struct.pack(">i", 60_000) + bytes(60_000)) * 3)
            await until(lambda: bool(nodes.accepted))
            await settle()
            assert nodes.accepted[0].frames == []
            nodes.accepted[0].connection.resume()
            await until(lambda: len(nodes.accepted[0].frames) == 3)

    run(story)


def test_connections_share_one_buffer_but_for_what_is_torn() -> None:
    async def story(nodes: Pair) -> None:
        with ExitStack() as sockets:
            clients = [sockets.enter_context(socket.create_connection(ADDRESS)) for _ in range(10)]
            for client in clients:
                client.sendall(struct.pack(">i", 3) + b"abc")
            await until(lambda: [one.frames for one in nodes.accepted] == [[b"abc"]] * 10)
            own = [stream for stream in nodes.server.streams if len(stream._view)]
            assert own == []
            for number, client in enumerate(clients):
                client.sendall(struct.pack(">i", 4) + bytes([number, 1]))
            await settle()
            for client in clients:
                client.sendall(b"\2\3")
            await until(lambda: all(len(one.frames) == 2 for one in nodes.accepted))
            assert [one.frames[1] for one in nodes.accepted] == [bytes([n, 1, 2, 3]) for n in range(10)]

    run(story)
