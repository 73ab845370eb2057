"""Two real networks in one process: node 0 listens and echoes, node 1 connects to it."""

import asyncio
import atexit
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from harness.broker.network import AsyncioNetwork
from harness.broker.ports import Connection
from harness.broker.secret import Secret
from tests.harness.broker.cluster import claim_network

PREFIX, CLAIM = claim_network()
atexit.register(CLAIM.close)
ADDRESS = (f"{PREFIX}.10", 19092)
OTHER = f"{PREFIX}.11"
NAMES = {ADDRESS[0]: "0", OTHER: "1"}
SECRET = Secret.draw()


class Echo:
    """Keeps what it receives; echoes it when told to."""

    def __init__(self, connection: Connection, *, echo: bool = False) -> None:
        self.connection = connection
        self.frames: list[bytes] = []
        self.lost = 0
        self.echo = echo

    def on_frame(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))
        if self.echo:
            self.connection.send([b"re:", bytes(frame)])

    def on_lost(self) -> None:
        self.lost += 1


class Pair:
    """Node 0 that listens, node 1 that connects to it."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self.server = AsyncioNetwork("0", ADDRESS[0], NAMES, SECRET, self.complaints.append)
        self.client = AsyncioNetwork("1", OTHER, NAMES, SECRET)
        self.accepted: list[Echo] = []
        self.opened: list[Echo] = []
        self.failures = 0
        self.server.listen(ADDRESS, self.accept)

    def accept(self, connection: Connection) -> Echo:
        self.accepted.append(Echo(connection, echo=True))
        return self.accepted[-1]

    def open(self, connection: Connection) -> Echo:
        self.opened.append(Echo(connection))
        return self.opened[-1]

    def fail(self) -> None:
        self.failures += 1

    async def connect(self) -> Echo:
        count = len(self.opened)
        self.client.connect(ADDRESS, "0", self.open, self.fail)
        await until(lambda: len(self.opened) > count)
        return self.opened[-1]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 (what is waited for has no event)
            await asyncio.sleep(0.002)


async def settle() -> None:
    """Give bytes that should not arrive every chance to arrive."""
    await asyncio.sleep(0.05)


@asynccontextmanager
async def pair() -> AsyncIterator[Pair]:
    nodes = Pair()
    await asyncio.sleep(0)
    try:
        yield nodes
    finally:
        await nodes.client.close()
        await nodes.server.close()
        await asyncio.sleep(0.01)


def run(story: Callable[[Pair], Awaitable[None]]) -> None:
    async def live() -> None:
        async with pair() as nodes:
            await story(nodes)

    asyncio.run(live())
