"""Random members of a group: they are given partitions in some generation, read, and commit in it or in another.

The generations mostly rise, as those of a group do.
"""

from __future__ import annotations

import random

from tests.checkers.clients import deliver, poll
from tests.checkers.resets import be_refused
from tests.checkers.story import NODES, Row, Story

_MEMBERS = (70, 71, 72)

Generations = tuple[int | None, int | None]
"""Those in which an operation begins and ends."""


def act_in_groups(story: Story, rng: random.Random) -> None:
    """Now and then a story has members, and seldom all brokers lose their power meanwhile."""
    if rng.random() < 0.5:
        return
    generation, protocol = 1, rng.choice((None, "classic", "consumer", "consumer"))
    _subscribe(story, rng)
    for _ in range(rng.randrange(3, 12)):
        generation = max(0, generation + rng.choice((0, 0, 1, 1, -1)))
        p = rng.choice(list(story.partitions))
        match rng.randrange(7):
            case 0 | 1:
                _be_given(story, rng, p, generation, protocol)
            case 2:
                _read(story, rng, p)
            case 3 | 4:
                _commit(story, rng, p, generation, protocol)
            case 5:
                _begin(story, rng, p, generation)
            case 6:
                _poll_in(story, rng, generation, protocol)
        if rng.random() < 0.03:
            times = {"injected_ns": story.now + 1, "healed_ns": story.now + 3, "heal_proven_ns": story.now + 4}
            story.fault(f"dark-{story.now}", kind="power_loss", nodes=[str(node) for node in NODES], **times)
            story.now += 1_000_000


def _subscribe(story: Story, rng: random.Random) -> None:
    """Some members subscribe, and the client of one of them may commit by itself."""
    for process in rng.sample(_MEMBERS, rng.randrange(4)):
        _two_rows(story, {"process": process, "f": "subscribe", "partition": 0})
    if rng.random() < 0.3:
        p = rng.choice(list(story.partitions))
        _two_rows(story, {"process": 84, "f": "auto_commit", "partition": p}, ends="info")


def _be_given(story: Story, rng: random.Random, p: int, generation: int, protocol: str | None) -> None:
    process = rng.choice(_MEMBERS)
    op = poll(story, process, [], group="m")
    known = rng.choice((generation, generation, generation, -1, None))
    about: Row = {"process": process, "op": op, "f": rng.choice((*["assigned"] * 6, "revoked", "lost"))}
    story.row(**about, type="info", group=rng.choice((*["m"] * 8, "h", None)), topic="ledger", partition=p,
              generation=known, group_protocol=protocol)  # fmt: skip


def _poll_in(story: Story, rng: random.Random, generation: int, protocol: str | None) -> None:
    about: Row = {"process": rng.choice(_MEMBERS), "op": next(story.ops), "f": "poll", "group": "m"}
    story.row(**about, type="invoke", generation=rng.choice((generation, generation, -1)), group_protocol=protocol)
    story.row(**about, type="ok")


def _read(story: Story, rng: random.Random, p: int) -> None:
    end = len(story.partitions[p].logs[story.partitions[p].leader])
    first = rng.randrange(end + 1)
    offsets = [offset for offset in range(first, min(end, first + 3)) if rng.random() < 0.8]
    poll(story, rng.choice(_MEMBERS), offsets, p, rng.choice(("ok", "ok", "info")), group="m",
         isolation=rng.choice((None, "read_uncommitted")))  # fmt: skip


def _begin(story: Story, rng: random.Random, p: int, generation: int) -> None:
    """A member is given a partition, is told what its group has committed, and begins there or elsewhere."""
    process, end = rng.choice(_MEMBERS), len(story.partitions[p].logs[story.partitions[p].leader])
    op = next(story.ops)
    about: Row = {"process": process, "op": op, "group": "m"}
    place: Row = {"topic": "ledger", "partition": p}
    story.row(**about, f="poll", type="invoke")
    story.row(**about, **place, f="assigned", type="info", generation=rng.choice((generation, None)))
    for _ in range(rng.choice((0, 1, 1, 1, 2))):
        told = rng.choice((None, end, rng.randrange(end + 1), rng.randrange(end + 1)))
        asked: Row = {"process": 83, "op": next(story.ops), "f": "committed", "group": "m", **place}
        story.row(**asked, type="invoke")
        story.row(**asked, type=rng.choice(("ok", "ok", "ok", "fail")), offset=told)
    given = range(rng.randrange(end + 1), end)
    at_once = rng.random() < 0.5
    deliver(story, about | {"f": "poll"}, "ok", given if at_once else (), p)
    if rng.random() < 0.1:
        be_refused(story, process, end, group="m")
    if not at_once:
        poll(story, process, given, p, group="m")


def _commit(story: Story, rng: random.Random, p: int, generation: int, protocol: str | None) -> None:
    begun = rng.choice((generation, generation, *[max(0, generation - 1)] * 3, -1, None))
    ended = begun if rng.random() < 0.8 else generation
    end = len(story.partitions[p].logs[story.partitions[p].leader])
    offset = rng.choice((end, rng.randrange(end + 2)))
    about: Row = {"process": 80 + rng.randrange(2), "f": "commit", "partition": p, "offset": offset,
                  "group_protocol": protocol, "error": rng.choice((None, "ILLEGAL_GENERATION"))}  # fmt: skip
    _two_rows(story, about, (begun, ended), rng.choice(("ok", "ok", "ok", "info")))


def _two_rows(story: Story, about: Row, generations: Generations = (None, None), ends: str = "ok") -> None:
    op = next(story.ops)
    for kind, generation in zip(("invoke", ends), generations, strict=True):
        story.row(op=op, type=kind, group="m", generation=generation, topic="ledger", **about)
