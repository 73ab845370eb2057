"""Sends hostile frames to live nodes for a while, and looks whether they stay well and keep what they acknowledged.

``python -m tests.fuzz.live --minutes 10 --seed 7``: three brokers and a controller; the clients' port of each gets
requests made up from the declared messages (:mod:`grammar`), captured ones (:mod:`corpus`), both also mutated
(:mod:`mutations`), and junk, several to a connection, which is then read from or not, and closed in one way or
another. The seed decides the frames of each client, and their order; how those of several clients meet, it does not.

Every few seconds each node must do its work in time, must be the process that was started, and must not have grown too
much; and every partition of the known load (:mod:`load`), one for each broker, must have been acknowledged more since
the last look (:mod:`watch`). In the end every record of the load that was acknowledged must be where it was
acknowledged. When a node dies or falls silent, the last frames that it got are added to ``harmful.txt``:
each later run sends those first. Exit code 1: something was not well, and the lines say what.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, defaultdict, deque
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from harness.model import CONTROLLER_ID, NodeId
from tests.fuzz import corpus
from tests.fuzz.grammar import TOPICS, Grammar
from tests.fuzz.load import KnownLoad
from tests.fuzz.mutations import mutated
from tests.fuzz.watch import WATCHED_TOPIC, Unwell, Watch
from tests.harness.broker.cluster import Cluster

LOOK_EVERY_S = 3.0
TELL_EVERY_S = 30.0
LAST_ANSWERS_S = 120.0
REMEMBERED = 40
"""How many of the last frames to a node are kept when it dies."""

_KNOWN_TOPIC = "acknowledged-records-are-kept-here"
_ONE_FOR_EACH = ((0, 1, 2), (1, 2, 0), (2, 0, 1))
"""The replicas of a topic that has a partition for each broker to lead."""
_SILENCE_S = 0.05


class Campaign:
    """What is sent to one cluster.

    Attributes:
        sent: how many frames of each kind.
        last: the last frames that each node got.
    """

    def __init__(self, cluster: Cluster, seed: int, clients: int) -> None:
        self.sent: Counter[str] = Counter()
        self.last: dict[int, deque[bytes]] = defaultdict(lambda: deque(maxlen=REMEMBERED))
        self._cluster = cluster
        self._seed = seed
        self._clients = clients
        self._captured = corpus.read(corpus.CAPTURED)
        self._until = 0.0

    async def run(self, minutes: float, watch: Watch) -> None:
        """Send for so long, and look now and then.

        Raises:
            Unwell: a node is not.
        """
        for frame in corpus.read(corpus.HARMFUL):
            for node in self._cluster.configs:
                await self._connect(node, [frame], Random(0))
        self._until = time.monotonic() + 60 * minutes
        async with asyncio.TaskGroup() as clients:
            for number in range(self._clients):
                clients.create_task(self._client(Random(f"{self._seed} {number}")))
            told_s = 0.0
            while time.monotonic() < self._until:
                await asyncio.sleep(LOOK_EVERY_S)
                await asyncio.to_thread(watch.look)
                if time.monotonic() - told_s > TELL_EVERY_S:
                    told_s = time.monotonic()
                    typer.echo(f"{self._until - told_s:.0f} s to go, {self.sent.total()} frames; {watch}.")

    async def _client(self, rng: Random) -> None:
        grammar = Grammar(rng)
        nodes = [*self._cluster.ids, *self._cluster.ids, CONTROLLER_ID]
        while time.monotonic() < self._until:
            frames = [self._frame(grammar, rng) for _ in range(rng.randint(1, 12))]
            await self._connect(rng.choice(nodes), frames, rng)

    def _frame(self, grammar: Grammar, rng: Random) -> bytes:
        kind = rng.choices(["declared", "declared, mutated", "captured, mutated", "captured", "junk"], [8, 5, 5, 1, 1])
        self.sent[kind[0]] += 1
        match kind[0]:
            case "declared":
                return grammar.frame()
            case "declared, mutated":
                return mutated(grammar.frame(), self._captured, rng)
            case "captured, mutated":
                return mutated(rng.choice(self._captured), self._captured, rng)
            case "captured":
                return rng.choice(self._captured)
            case _:
                return rng.randbytes(rng.randint(1, 200))

    async def _connect(self, node: int, frames: list[bytes], rng: Random) -> None:
        """One connection: send, perhaps read, and hang up in one of several ways."""
        behaviour, truth = rng.random(), rng.random()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(20):
                address = self._cluster.configs[NodeId(node)].listener
                reader, writer = await asyncio.open_connection(*address)
                try:
                    for frame in frames:
                        if writer.is_closing():
                            break
                        self.last[node].append(frame)
                        length = len(frame) if truth < 0.97 else rng.choice([0, -1, 1 << 30, len(frame) + 1])
                        writer.write((length & 0xFFFFFFFF).to_bytes(4, "big") + frame)
                        await asyncio.sleep(0)
                    if behaviour < 0.7:
                        await writer.drain()
                        await self._listen(reader)
                finally:
                    if behaviour < 0.9:
                        writer.close()
                    else:
                        writer.transport.abort()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_SILENCE_S):
                while await reader.read(65_536):
                    pass


def told(cluster: Cluster, node: int) -> str:
    """The end of a node's log."""
    return "\n".join(cluster.log(node).splitlines()[-25:])


def fuzz(cluster: Cluster, campaign: Campaign, minutes: float, answers_within_s: float) -> bool:
    """Whether everything was well; says what was not, and how it was."""
    for topic in TOPICS:
        cluster.create_topic(topic)
    for topic in (_KNOWN_TOPIC, WATCHED_TOPIC):
        cluster.create_topic(topic, _ONE_FOR_EACH)
    load, well = KnownLoad(cluster, _KNOWN_TOPIC, len(_ONE_FOR_EACH)), True
    watch = Watch(cluster, load, answers_within_s)
    load.start()
    try:
        asyncio.run(campaign.run(minutes, watch))
        watch.look()
    except* Unwell as group:
        well = False
        for unwell in group.exceptions:
            assert isinstance(unwell, Unwell)
            typer.echo(f"{unwell}\n{told(cluster, unwell.node)}")
            corpus.write(corpus.HARMFUL, [*corpus.read(corpus.HARMFUL), *campaign.last[unwell.node]])
    finally:
        load.stop(LAST_ANSWERS_S if well else 0.0)
    missing = load.missing() if well else []
    typer.echo(
        f"Sent {campaign.sent.total()} frames: {dict(campaign.sent)}; {watch}; missing: {missing[:20] or 'none'}."
    )
    return well and not missing and not load.failed


def main(
    minutes: Annotated[float, typer.Option(help="How long frames are sent.")] = 10.0,
    seed: Annotated[int | None, typer.Option(help="Decides the frames; random when not given.")] = None,
    clients: Annotated[int, typer.Option(help="How many send at a time.")] = 16,
    answers_within_s: Annotated[
        float, typer.Option(help="How soon a node has to answer, and the load to get on.")
    ] = 10.0,
) -> None:
    """Fuzz live nodes; see the module."""
    chosen = random.SystemRandom().randrange(1 << 31) if seed is None else seed
    typer.echo(f"Fuzzing for {minutes:g} minutes with seed {chosen}.")
    with TemporaryDirectory() as directory:
        cluster = Cluster(Path(directory))
        try:
            cluster.start()
            well = fuzz(cluster, Campaign(cluster, chosen, clients), minutes, answers_within_s)
        finally:
            cluster.stop()
    if not well:
        typer.echo(f"Again: python -m tests.fuzz.live --minutes {minutes:g} --seed {chosen} --clients {clients}")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
