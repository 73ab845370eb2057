"""What consumers of share groups do, for :class:`~tests.checkers.story.Story`."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from tests.checkers.story import Row, Story

GROUP = "share-0"
LIMIT = 3
LOCK_S = 1
A, B, LAST = 80, 81, 89
"""The processes; the last one drains."""

WORKLOAD: Row = {"name": "share_groups", "lock_s": LOCK_S, "deliveries": LIMIT, "rate": 10.0, "client": "java:4.3.0"}
"""What ``run.json`` says of the load."""


def acquire(
    story: Story, process: int, given: Iterable[tuple[int, int | None]], count: int | None = 1, *,
    p: int = 0, group: str = GROUP,
) -> None:  # fmt: skip
    """A consumer polls and is ``given`` records, each by its offset and value."""
    about: Row = {"process": process, "op": next(story.ops), "f": "acquire", "group": group}
    story.row(**about, type="invoke", delivery_count=LIMIT)
    place: Row = {"topic": "ledger", "partition": p, "delivery_count": count}
    rows = [story.row(**about, type="ok", **place, offset=at, value=value, intact=True) for at, value in given]
    if not rows:
        story.row(**about, type="ok")


def acknowledge(
    story: Story, process: int, said: Sequence[tuple[int, int | None, str]], result: str = "ok", *,
    p: int = 0, group: str = GROUP,
) -> None:  # fmt: skip
    """A consumer says of records, each by its offset and value, what became of them."""
    about: Row = {"process": process, "op": next(story.ops), "f": "acknowledge", "group": group}
    about |= {"topic": "ledger", "partition": p}
    for type_ in ("invoke", result):
        for at, value, what in said:
            story.row(**about, type=type_, offset=at, value=value, acknowledgement=what)


def accept(story: Story, process: int, at: int, value: int, result: str = "ok") -> None:
    """It accepts one record."""
    acknowledge(story, process, [(at, value, "accept")], result)


def drain(
    story: Story, given: Iterable[tuple[int, int]] = (), result: str = "ok", *, p: int = 0, group: str = GROUP
) -> None:  # fmt: skip
    """The group is drained, and given records meanwhile, which it accepts."""
    about: Row = {"process": LAST + 1, "op": next(story.ops), "f": "drain", "group": group}
    about |= {"topic": "ledger", "partition": p}
    story.row(**about, type="invoke")
    known = list(given)
    acquire(story, LAST, known, p=p, group=group)
    if known:
        acknowledge(story, LAST, [(at, value, "accept") for at, value in known], p=p, group=group)
    story.row(**about, type=result)


def plant_shares(story: Story, rng: random.Random) -> None:
    """Now and then there are share groups, which are given more or less than there is."""
    if rng.random() >= 0.25:
        return
    p = rng.choice(list(story.partitions))
    part = story.partitions[p]
    log = [(at, value) for at, (_, value) in enumerate(part.logs[part.leader])]
    process = A
    for group in ("share-0", "share-1")[: rng.choice((1, 1, 2))]:
        for _ in range(rng.randrange(1, 6)):
            given = [(at, value if rng.random() < 0.97 else None) for at, value in log if rng.random() < 0.4]
            acquire(story, process, given, rng.choice((1, 1, 2, 3, 4, None)), p=p, group=group)
            said = [(at, value, rng.choice(("accept", "accept", "release", "reject"))) for at, value in given]
            if said and rng.random() < 0.6:
                acknowledge(story, process, said, rng.choice(("ok", "ok", "ok", "info", "fail")), p=p, group=group)
            process += rng.random() < 0.6
        if rng.random() < 0.8:
            rest = [(at, value) for at, value in log if value is not None and rng.random() < 0.5]
            drain(story, rest, rng.choice(("ok", "ok", "info")), p=p, group=group)
