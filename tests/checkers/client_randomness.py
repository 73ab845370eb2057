"""Random steps of clients that do more than send and poll, and what may be falsified about them."""

from __future__ import annotations

import random
from typing import Any

from harness.findings import QUIET_NS
from tests.checkers.clients import Polled, Sent, commit, move, poll, transact
from tests.checkers.story import Story

IMPORTED: dict[str, Any] = {"configuration": {"imported": {"from": "jepsen"}}}
"""What ``run.json`` says of a history without brokers."""

_ENDS = ("ok", "ok", "ok", "info", "fail")
_TXN_ENDS = (*["ok"] * 12, "info", "info", "invoke", "fail")


def client_step(story: Story, rng: random.Random) -> None:
    """A transaction, a poll that may fail, a change of partitions, or a commit."""
    p = rng.choice(list(story.partitions))
    part = story.partitions[p]
    end = len(part.logs[part.leader])
    process = rng.randrange(5, 9)
    match rng.randrange(8):
        case 0 | 1 | 2:
            transact(story, *(_part(story, rng) for _ in range(rng.randrange(1, 4))), result=rng.choice(_TXN_ENDS))
        case 3:
            op = poll(story, process, _some(end, rng), p, rng.choice(_ENDS), isolation=_isolation(rng))
            if rng.random() < 0.3:
                move(story, process, rng.choice(("assigned", "revoked", "lost")), p, result="info", op=op)
        case 4:
            named = [q for q in story.partitions if rng.random() < 0.6]
            move(story, process, rng.choice(("assign", "assign", "subscribe")), *named, result=rng.choice(_ENDS))
        case 5 | 6:
            commit(story, rng.randrange(end + 1), result=rng.choice(_ENDS), end=rng.random() < 0.9)
        case 7:
            commit(story, rng.choice((None, rng.randrange(end + 1))), "committed")


def _part(story: Story, rng: random.Random) -> Sent | Polled:
    p = rng.choice(list(story.partitions))
    part = story.partitions[p]
    end = len(part.logs[part.leader])
    if rng.random() < 0.6:
        offset = rng.choice((-1, -1, -1, None, rng.randrange(end + 1)))
        return Sent(p, append=rng.random() < 0.9, offset=offset, knows=rng.random() < 0.3)
    return Polled(_some(end + 2, rng), p, _isolation(rng))


def _some(end: int, rng: random.Random) -> list[int]:
    start = rng.randrange(end + 1)
    return [offset for offset in range(start, end) if rng.random() < 0.9]


def _isolation(rng: random.Random) -> str | None:
    return rng.choice((None, "read_committed", "read_uncommitted"))


def ask_only_clients(story: Story, rng: random.Random) -> None:
    """Nobody asked the brokers; the final read may have gone on until it was given nothing."""
    story.timeline, story.logs = [], []
    closing = [row for row in story.history if row["f"] == "close"]
    story.forget(*closing)
    if rng.random() < 0.6:
        story.now += rng.choice((0, QUIET_NS))
        poll(story, 900, [], final=True)
    for row in closing:
        story.row(**{name: row[name] for name in ("process", "op", "f", "type")})


def read_the_end_again(story: Story, rng: random.Random) -> None:
    """One more process of the final read, which may be given less, and may go on until it is given nothing."""
    if story.history[-1]["f"] != "close":
        return
    closing = next((row for row in story.history if row["f"] == "close"), story.history[-1])
    story.history.remove(closing)
    for p, part in story.partitions.items():
        end = len(part.logs[part.leader])
        given = [offset for offset in range(end - rng.choice((0, 0, 1, 2))) if rng.random() < 0.95]
        poll(story, 901, given, p, final=True)
    if rng.random() < 0.7:
        story.now += rng.choice((0, QUIET_NS, QUIET_NS))
        poll(story, 901, [], final=True)
    story.row(**{name: closing[name] for name in ("process", "op", "f", "type")})


def _forget_how_it_ended(story: Story, rng: random.Random) -> None:
    """An operation has no completion."""
    ended = [row for row in story.history if row["type"] != "invoke" and row["f"] != "close"]
    if ended:
        op = rng.choice(ended)["op"]
        story.forget(*[row for row in ended if row["op"] == op])


def _change_client(story: Story, rng: random.Random) -> None:
    row = rng.choice(story.history)
    name, value = rng.choice(
        (("process", rng.randrange(5, 9)), ("isolation", "read_uncommitted"), ("group", "h"), ("txn", True))
    )  # fmt: skip
    if row["f"] != "close" and (name != "txn" or row["f"] == "poll"):
        for other in story.history:
            if other["op"] == row["op"]:
                other[name] = value


def _damage_a_read(story: Story, rng: random.Random) -> None:
    reads = [row for row in story.history if row["f"] == "poll" and row["topic"] is not None]
    if reads:
        rng.choice(reads)["intact"] = False


def _read_each_other(story: Story, rng: random.Random) -> None:
    """Two transactions were given each other's records."""
    sent = [row for row in story.history if row["txn"] and (row["f"], row["type"]) == ("send", "ok")]
    known = [row for row in sent if row["offset"] is not None]
    if len({row["op"] for row in known}) < 2:
        return
    one = rng.choice(known)
    other = rng.choice([row for row in known if row["op"] != one["op"]])
    for mine, theirs in ((one, other), (other, one)):
        read = {name: theirs[name] for name in ("topic", "partition", "offset", "value")}
        at = next(at for at, row in enumerate(story.history) if row is mine)
        story.history.insert(at + 1, {**mine, **read, "f": "poll", "mop": 9, "acks": None, "intact": True})
    for index, row in enumerate(story.history):
        row["index"] = index


CLIENT_FALSIFICATIONS = (_forget_how_it_ended, _change_client, _damage_a_read, _read_each_other)
