"""What a user's program does between an input and an output, for :class:`~tests.checkers.story.Story`."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable

from harness.identity import KEYS
from tests.checkers.story import Row, Story

LIFE = 50
"""The process that stands for the first life of the program."""


def of_one_key(story: Story) -> None:
    """From now on every record has the same key."""
    story.values = itertools.count(0, KEYS)


def put(
    story: Story, values: Iterable[int | None], lane: int = LIFE, *, p: int | None = None, first: int = 0,
    final: bool = True, topic: str = "done",
) -> None:  # fmt: skip
    """Records of the output: in partition ``p`` of a topic, or of the life ``lane``."""
    about: Row = {"process": lane, "op": next(story.ops), "f": "output", "final": final}
    place: Row = {} if p is None else {"topic": topic, "partition": p}
    story.row(**about, type="invoke")
    for at, value in enumerate(values, first):
        story.row(**about, **place, type="ok", offset=at, value=value)


def reach(story: Story, *offsets: int | None, group: str | None = "program") -> None:
    """The program says how far it is done with each partition; None: the coordinator does not answer."""
    about: Row = {"process": LIFE + 20, "op": next(story.ops), "f": "reached", "group": group, "topic": "ledger"}
    for p, _ in enumerate(offsets):
        story.row(**about, partition=p, type="invoke")
    for p, offset in enumerate(offsets):
        ended: Row = {"type": "info", "error": "_TIMED_OUT"} if offset is None else {"type": "ok", "offset": offset}
        story.row(**about, partition=p, **ended)


def plant_a_program(story: Story, rng: random.Random) -> None:
    """Now and then a program has processed the input, more or less, and says how far it is done with it."""
    if rng.random() >= 0.25:
        return
    before, story.values = story.values, itertools.count(1000 * KEYS, KEYS)
    for _ in range(rng.randrange(4)):
        story.send(rng.choice(list(story.partitions)))
    story.values = before
    sent = [row["value"] for row in story.history if (row["f"], row["type"]) == ("send", "invoke")]
    for lane in range(rng.randrange(3)):
        values = [value for value in sent if rng.random() < 0.8]
        more = [rng.choice((None, 999, *sent)) for _ in range(rng.randrange(3))]
        if rng.random() < 0.4:
            rng.shuffle(values)
        into = rng.choice((None, None, 0, 1))
        put(story, [*values, *more], LIFE + lane, p=into, first=rng.randrange(2), final=rng.random() < 0.8)
    ends = [len(part.logs[part.leader]) for part in story.partitions.values()]
    reach(story, *(rng.choice((None, end, end, end + 1, rng.randrange(end + 1))) for end in ends))
