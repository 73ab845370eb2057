"""Consumers that look offsets up by time, for :class:`~tests.checkers.story.Story`; offset o is of time 1000 + o."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.checkers.story import Row, Story

_FIRST_MS = 1_000


def read(story: Story, process: int, offsets: Sequence[int], p: int = 0) -> None:
    """A poll that delivers these offsets of the leader's log, with their times."""
    for row in story.poll(process, offsets, p):
        row["timestamp_ms"] = None if row["offset"] is None else _FIRST_MS + row["offset"]


def look_up(story: Story, process: int, of: int, answer: int | None, *, error: str | None = None, p: int = 0) -> None:
    """Ask for the first record as young as that at offset ``of``."""
    about: Row = {"process": process, "op": next(story.ops), "f": "offset_for_time", "topic": "ledger", "partition": p}
    about["timestamp_ms"] = _FIRST_MS + of
    story.row(**about, type="invoke")
    story.row(**about, type="ok" if error is None else "info", offset=answer, error=error)


def plant_lookups(story: Story, rng: random.Random) -> None:
    """Now and then consumers read, and then look up what was there, or was not; some of the answers are wrong."""
    if rng.random() < 0.6:
        return
    for _ in range(rng.randrange(1, 4)):
        p = rng.choice(list(story.partitions))
        end = len(story.partitions[p].logs[story.partitions[p].leader])
        read(story, rng.randrange(70, 73), range(rng.randrange(end + 1), end), p)
        of = rng.randrange(end + 2)
        answer = rng.choice((of, of, of + 1, None, max(0, of - 1)))
        look_up(story, rng.randrange(70, 73), of, answer, p=p, error=rng.choice((None, None, None, "_TIMED_OUT")))
