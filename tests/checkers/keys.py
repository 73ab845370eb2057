"""What clients do to the topic whose log is compacted, for :class:`~tests.checkers.story.Story`."""

from __future__ import annotations

import random
from collections.abc import Iterable

from harness.compacted import SLOTS, TOPIC
from tests.checkers.story import CONTROLLER, NODES, Row, Story

WRITER, READER = 60, 70
"""The processes."""

_PLACE: Row = {"topic": TOPIC, "partition": 0}


def value_of(number: int, key: int, *, deletes: bool = False) -> int:
    """The value of record ``number``, of that key."""
    return number * SLOTS + 2 * key + deletes


def put(story: Story, value: int, offset: int | None, result: str = "ok") -> None:
    """A record is sent to the topic, and acknowledged at ``offset`` unless its ``result`` is another."""
    about: Row = {"process": WRITER, "op": next(story.ops), "f": "put", "value": value, "acks": -1, **_PLACE}
    story.row(**about, type="invoke")
    story.row(**about, type=result, offset=offset, error=None if result == "ok" else "timeout")


def scan(
    story: Story, end: int, given: Iterable[tuple[int, int | None]], result: str = "ok", *, final: bool = False,
    process: int = READER, lasts_ms: int = 0,
) -> None:  # fmt: skip
    """A reader reads up to ``end`` and is ``given`` records, each by its offset and value."""
    about: Row = {"process": process, "op": next(story.ops), "f": "scan", "final": final, **_PLACE}
    story.row(**about, type="invoke", offset=end)
    story.now += lasts_ms * 1_000_000
    rows = [story.row(**about, type=result, offset=at, value=value, intact=value is not None) for at, value in given]
    if not rows:
        story.row(**about, type=result, error=None if result == "ok" else "timeout")


def keep(story: Story, node: int, *held: tuple[int, int | None], intact: bool = True) -> None:
    """What a broker's replica of the topic has on its disk in the end, each record by its offset and value."""
    for at, value in held:
        about = {"leader_epoch": 0, "batch_base_offset": at, "batch_crc": value or 0, "intact": intact}
        story.logs.append({"run": story.run, "node": node, **_PLACE, "offset": at, "value": value, **about})


def in_sync(story: Story, *isr: int, epoch: int = 0) -> None:
    """The controller decides what the ISR of the topic is."""
    said = {"clean": True, "elected_from_isr": True, "previous_leader": -1, "controller_epoch": 1}
    about: Row = {**_PLACE, "leader": isr[0], "leader_epoch": epoch, "isr": list(isr)}
    story.say(CONTROLLER, "isr", 0, said, **{**about, "partition_epoch": 10 + next(story.ops)})


def lead(story: Story) -> None:
    """Broker 0 leads the topic, and the others follow it."""
    for node in NODES:
        role = "follower" if node else "leader"
        about: Row = {"role": role, "leader": 0, "leader_epoch": 0, "partition_epoch": 0, "isr": list(NODES), **_PLACE}
        bounds = dict.fromkeys(("high_watermark", "log_end_offset", "log_start_offset"), 0)
        story.say(node, "state", 0, **{**about, **bounds})


def elect_uncleanly(story: Story) -> None:
    """Another broker leads the topic, which need not have had all of it."""
    said = {"clean": False, "elected_from_isr": False, "previous_leader": 0, "controller_epoch": 1}
    about: Row = {**_PLACE, "leader": 1, "leader_epoch": 1, "isr": [1]}
    story.say(CONTROLLER, "election", 0, said, **{**about, "partition_epoch": 3})


def plant_keys(story: Story, rng: random.Random) -> None:
    """Now and then there is a compacted topic, of which readers are given more or less than there is."""
    if rng.random() >= 0.25:
        return
    log: list[tuple[int, int]] = []
    for number in range(rng.randrange(1, 12)):
        value = value_of(number, rng.randrange(3), deletes=rng.random() < 0.2)
        at = number if rng.random() < 0.9 else rng.randrange(number + 1)
        put(story, value, at, rng.choice(("ok", "ok", "ok", "info")))
        log.append((at, value))
        if rng.random() < 0.1:
            elect_uncleanly(story)
        if rng.random() < 0.4:
            newest = {value % SLOTS // 2: (at, value) for at, value in log}
            kept = [one for one in log if one in newest.values() or rng.random() < 0.5]
            given = [one for one in kept if rng.random() < 0.85]
            end = len(log) if rng.random() < 0.8 else rng.randrange(len(log) + 1)
            result = "ok" if rng.random() < 0.9 else "info"
            seen = [(at, value if rng.random() < 0.97 else None) for at, value in given]
            lasts_ms = rng.choice((0, 0, 0, 30))
            scan(story, end, seen, result, final=rng.random() < 0.2, lasts_ms=lasts_ms)
    if rng.random() < 0.8:
        in_sync(story, *rng.sample(NODES, rng.randrange(1, len(NODES) + 1)))
    newest = {value % SLOTS // 2: (at, value) for at, value in log}
    for node in NODES:
        kept = [one for one in log if one in newest.values() or rng.random() < 0.3]
        for at, value in kept:
            if rng.random() < 0.9:
                keep(story, node, (at, value if rng.random() < 0.97 else None), intact=rng.random() < 0.97)
