import asyncio
import socket
import struct

import pytest

from harness.broker.network import AsyncioNetwork
from harness.broker.ports import Connection
from harness.broker.secret import INTRODUCTION_BYTES, Secret
from harness.broker.stream import MAX_UNSENT_BYTES
from harness.model import Link
from tests.harness.broker.node_pair import (
    ADDRESS,
    NAMES,
    OTHER,
    SECRET,
    Echo,
    Pair,
    pair,
    run,
    settle,
    until,
)


def test_frames_arrive_whole_and_in_order_whatever_their_size() -> None:
    async def story(nodes: Pair) -> None:
        sizes = [1, 5, 70_000, 3, 2_500_000, 65_532, 65_536, 2]
        end = await nodes.connect()
        for number, size in enumerate(sizes):
            end.connection.send([bytes([number]) * size])
        await until(lambda: len(end.frames) == len(sizes))
        assert nodes.accepted[0].frames == [bytes([number]) * size for number, size in enumerate(sizes)]
        assert [len(frame) - 3 for frame in end.frames] == sizes

    run(story)


def test_peers_are_known_by_the_address_they_call_from() -> None:
    async def story(nodes: Pair) -> None:
        end = await nodes.connect()
        assert (end.connection.peer, nodes.accepted[0].connection.peer) == ("0", "1")
        with socket.create_connection(ADDRESS):
            await until(lambda: len(nodes.accepted) == 2)
            assert nodes.accepted[1].connection.peer == "clients"

    run(story)


def test_a_refused_connection_is_reported_once() -> None:
    async def story(nodes: Pair) -> None:
        nodes.client.connect((ADDRESS[0], 1), "0", nodes.open, nodes.fail)
        await until(lambda: nodes.failures == 1)
        assert not nodes.opened

    run(story)


def test_bytes_over_a_cut_link_wait_and_arrive_in_order_after_mending() -> None:
    async def story(nodes: Pair) -> None:
        end = await nodes.connect()
        end.connection.send([b"first"])
        await until(lambda: len(end.frames) == 1)
        nodes.server.cut([Link("1", "0")])
        for text in (b"a", b"b", b"c"):
            end.connection.send([text])
        await settle()
        assert nodes.accepted[0].frames == [b"first"]
        assert nodes.server.held_bytes() == {"1->0": 15}
        nodes.server.cut([])
        await until(lambda: len(end.frames) == 4)
        assert nodes.accepted[0].frames == [b"first", b"a", b"b", b"c"]
        assert nodes.server.held_bytes() == {}

    run(story)


def test_cutting_the_answers_lets_requests_through() -> None:
    async def story(nodes: Pair) -> None:
        end = await nodes.connect()
        nodes.client.cut([Link("0", "1")])
        end.connection.send([b"a"])
        await until(lambda: nodes.accepted[0].frames == [b"a"])
        await settle()
        assert end.frames == []
        nodes.client.cut([])
        await until(lambda: end.frames == [b"re:a"])

    run(story)


def test_a_connection_made_over_a_cut_link_delivers_nothing() -> None:
    async def story(nodes: Pair) -> None:
        nodes.server.cut([Link("1", "0")])
        end = await nodes.connect()
        end.connection.send([b"a"])
        await settle()
        assert [echo.frames for echo in nodes.accepted] == [[]]
        nodes.server.cut([])
        await until(lambda: end.frames == [b"re:a"])

    run(story)


def test_a_connection_closed_behind_a_cut_link_is_noticed_after_its_bytes_have_arrived() -> None:
    async def story(nodes: Pair) -> None:
        end = await nodes.connect()
        nodes.server.cut([Link("1", "0")])
        end.connection.send([b"a"])
        end.connection.close()
        await settle()
        assert (nodes.accepted[0].frames, nodes.accepted[0].lost) == ([], 0)
        nodes.server.cut([])
        await until(lambda: nodes.accepted[0].lost == 1)
        assert nodes.accepted[0].frames == [b"a"]

    run(story)


def test_a_stalled_link_holds_the_connections_of_now_and_lets_new_ones_through() -> None:
    async def story(nodes: Pair) -> None:
        old = await nodes.connect()
        old.connection.send([b"first"])
        await until(lambda: old.frames == [b"re:first"])
        nodes.server.stall([Link("1", "0")], stalled=True)
        old.connection.send([b"late"])
        old.connection.close()
        new = await nodes.connect()
        new.connection.send([b"again"])
        await until(lambda: new.frames == [b"re:again"])
        assert [echo.frames for echo in nodes.accepted] == [[b"first"], [b"again"]]
        assert nodes.server.stalled_bytes() == {"1->0": 8}
        assert nodes.server.held_bytes() == {}
        nodes.server.stall([Link("1", "0")], stalled=False)
        await until(lambda: nodes.accepted[0].lost == 1)
        assert nodes.accepted[0].frames == [b"first", b"late"]
        assert nodes.server.stalled_bytes() == {}

    run(story)


def test_answers_to_a_cut_off_client_are_withheld_and_sent_in_order_after_mending() -> None:
    async def story(nodes: Pair) -> None:
        reader, writer = await asyncio.open_connection(*ADDRESS)
        nodes.server.cut([Link("0", "clients")])
        for text in (b"a", b"b"):
            writer.write(struct.pack(">i", 1) + text)
        await until(lambda: bool(nodes.accepted) and len(nodes.accepted[0].frames) == 2)
        await settle()
        assert nodes.server.held_bytes() == {"0->clients": 16}
        nodes.server.cut([])
        assert await reader.readexactly(16) == b"\0\0\0\4re:a\0\0\0\4re:b"
        writer.close()

    run(story)


def test_a_node_does_not_hang_up_on_a_client_over_a_cut_link() -> None:
    async def story(nodes: Pair) -> None:
        reader, writer = await asyncio.open_connection(*ADDRESS)
        await until(lambda: bool(nodes.accepted))
        nodes.server.cut([Link("0", "clients")])
        nodes.accepted[0].connection.send([b"bye"])
        nodes.accepted[0].connection.close()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await reader.read(1)
        nodes.server.cut([])
        assert await reader.read() == b"\0\0\0\3bye"
        writer.close()

    run(story)


def test_an_announced_frame_of_two_gigabytes_costs_the_peer_its_connection() -> None:
    async def story(nodes: Pair) -> None:
        for prefix in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\0"):
            reader, writer = await asyncio.open_connection(*ADDRESS)
            writer.write(prefix + b"x" * 100)
            assert await reader.read() == b""
            writer.close()
        assert (await nodes.connect()).lost == 0

    run(story)


def test_a_peer_that_does_not_read_its_answers_is_not_read_from_either() -> None:
    async def story(nodes: Pair) -> None:
        reader, writer = await asyncio.open_connection(*ADDRESS)
        sent = 3 * MAX_UNSENT_BYTES // 1_000_000
        for _ in range(sent):
            writer.write(struct.pack(">i", 1_000_000) + bytes(1_000_000))
        await settle()
        await until(lambda: bool(nodes.accepted))
        unsent = nodes.accepted[0].connection.outbound_bytes()  # type: ignore[attr-defined]
        assert unsent <= MAX_UNSENT_BYTES + 1_000_007
        assert len(nodes.accepted[0].frames) < sent
        for _ in range(sent):
            assert len(await reader.readexactly(1_000_007)) == 1_000_007
        assert len(nodes.accepted[0].frames) == sent
        writer.close()

    run(story)


def test_a_paused_connection_delivers_nothing_until_it_is_resumed() -> None:
    async def story(nodes: Pair) -> None:
        end = await nodes.connect()
        end.connection.send([b"a"])
        await until(lambda: len(nodes.accepted[0].frames) == 1)
        nodes.accepted[0].connection.pause()
        end.connection.send([b"b"])
        await settle()
        assert nodes.accepted[0].frames == [b"a"]
        nodes.accepted[0].connection.resume()
        await until(lambda: nodes.accepted[0].frames == [b"a", b"b"])

    run(story)


def test_sending_on_a_lost_connection_does_nothing() -> None:
    async def story(nodes: Pair) -> None:
        end = await nodes.connect()
        await until(lambda: bool(nodes.accepted))
        nodes.accepted[0].connection.close()
        await until(lambda: end.lost == 1)
        end.connection.send([b"a"])
        end.connection.close()
        await settle()
        assert end.lost == 1

    run(story)


def test_a_cancelled_timer_does_not_run() -> None:
    async def story(nodes: Pair) -> None:
        ran: list[str] = []
        nodes.server.call_later(0.005, lambda: ran.append("cancelled")).cancel()
        nodes.server.call_later(0.01, lambda: ran.append("kept"))
        await until(lambda: ran == ["kept"])

    run(story)


@pytest.mark.parametrize("turns", range(6))
def test_a_connection_that_is_being_opened_does_not_outlive_its_network(turns: int) -> None:
    async def story(nodes: Pair) -> None:
        nodes.client.connect(ADDRESS, "0", nodes.open, nodes.fail)
        for _ in range(turns):
            await asyncio.sleep(0)
        await nodes.client.close()
        assert not [task for task in asyncio.all_tasks() if "AsyncioNetwork._open" in repr(task)]

    run(story)


# ------------------------------------------------------------------------------------------------- strangers


async def say(frame: bytes, source: str) -> bytes:
    """What is answered to a first frame from the address ``source`` before the connection is closed."""
    reader, writer = await asyncio.open_connection(*ADDRESS, local_addr=(source, 0))
    writer.write(struct.pack(">i", len(frame)) + frame)
    try:
        async with asyncio.timeout(5):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def test_a_network_that_is_closed_opens_no_connection() -> None:
    async def story(nodes: Pair) -> None:
        await nodes.client.close()
        before = asyncio.all_tasks()
        nodes.client.connect(ADDRESS, "0", nodes.open, nodes.fail)
        assert asyncio.all_tasks() == before

    run(story)


@pytest.mark.parametrize(
    "introduction",
    [
        b"a request",
        bytes(INTRODUCTION_BYTES),
        Secret.draw().introduction("1", "0"),
        SECRET.introduction("1", "2"),
        SECRET.introduction("2", "0"),
        SECRET.introduction("0", "1"),
        SECRET.introduction("1", "0"),
    ],
    ids=["none", "empty", "another run's", "to another", "of another", "to oneself", "from before it listened"],
)
def test_who_calls_from_the_address_of_a_node_without_its_introduction_is_not_heard(introduction: bytes) -> None:
    async def story(nodes: Pair) -> None:
        assert await say(introduction, OTHER) == b""
        await until(lambda: nodes.accepted[0].lost == 1)
        assert nodes.accepted[0].frames == []

    run(story)


def test_an_introduction_that_was_heard_at_the_address_of_a_dead_node_does_not_help_once_that_lives_again() -> None:
    async def story() -> None:
        heard: list[bytes] = []

        async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.append(await reader.readexactly(4 + INTRODUCTION_BYTES))
            writer.close()

        impostor = await asyncio.start_server(listen, *ADDRESS)
        client = AsyncioNetwork("1", OTHER, NAMES, SECRET)
        client.connect(ADDRESS, "0", Echo, lambda: None)
        await until(lambda: bool(heard))
        impostor.close()
        await impostor.wait_closed()
        await client.close()
        async with pair() as nodes:
            assert await say(heard[0][4:], OTHER) == b""
            assert nodes.accepted[0].frames == []

    asyncio.run(story())


@pytest.mark.parametrize("reply", [b"forged data", bytes(32)])
def test_who_answers_at_the_address_of_a_node_and_is_not_that_node_is_not_heard(reply: bytes) -> None:
    async def story() -> None:
        async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readexactly(4 + INTRODUCTION_BYTES)
            for frame in (reply, b"forged data"):
                writer.write(struct.pack(">i", len(frame)) + frame)
            await reader.read()
            writer.close()

        opened: list[Echo] = []

        def open_(connection: Connection) -> Echo:
            opened.append(Echo(connection))
            return opened[0]

        impostor = await asyncio.start_server(listen, *ADDRESS)
        client = AsyncioNetwork("1", OTHER, NAMES, SECRET)
        client.connect(ADDRESS, "0", open_, lambda: None)
        await until(lambda: bool(opened) and opened[0].lost == 1)
        assert opened[0].frames == []
        await client.close()
        impostor.close()
        await impostor.wait_closed()

    asyncio.run(story())
