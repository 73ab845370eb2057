"""Consumers that learn that their position is out of range, for :class:`~tests.checkers.story.Story`."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.checkers.clients import deliver
from tests.checkers.story import Row, Story


def be_refused(
    story: Story, process: int, position: int | None, given: Sequence[int] = (), *, p: int = 0,
    error: str = "OFFSET_OUT_OF_RANGE", group: str | None = None,
) -> None:  # fmt: skip
    """A poll that ends so; ``position``: None: the client does not say; ``given``: what the poll has delivered."""
    about: Row = {"process": process, "op": next(story.ops), "group": group}
    place: Row = {} if position is None else {"topic": "ledger", "partition": p}
    story.row(**about, f="poll", type="invoke")
    story.row(**about, **place, f="out_of_range", type="info", offset=position, error=error)
    deliver(story, about | {"f": "poll"}, "ok", given, p)


def plant_resets(story: Story, rng: random.Random) -> None:
    """Now and then consumers read, and are then refused at their position or at another one."""
    if rng.random() < 0.6:
        return
    for _ in range(rng.randrange(1, 4)):
        p = rng.choice(list(story.partitions))
        end = len(story.partitions[p].logs[story.partitions[p].leader])
        position = rng.choice((None, end, end, rng.randrange(end + 1), end + 1))
        given = range(rng.randrange(end + 1), end)
        if rng.random() < 0.5:
            story.poll(rng.randrange(60, 63), given, p)
            given = range(0)
        be_refused(story, rng.randrange(60, 63), position, given, p=p)
