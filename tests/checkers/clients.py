"""What clients do besides sending and polling by themselves, for :class:`~tests.checkers.story.Story`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tests.checkers.story import NODES, Row, Story


class Sent(NamedTuple):
    """A step of a transaction: send the next value; ``commit``: it becomes readable."""

    p: int = 0
    append: bool = True
    offset: int | None = -1
    knows: bool = False


class Polled(NamedTuple):
    """A step of a transaction: be delivered these offsets of the leader's log."""

    offsets: Sequence[int] = ()
    p: int = 0
    isolation: str | None = None


def transact(story: Story, *steps: Sent | Polled, result: str = "ok", process: int = 10) -> None:
    """A transaction; the process of a failed one knows no offsets unless a step says that it ``knows``."""
    op = next(story.ops)
    invoked: list[Row] = []
    for mop, step in enumerate(steps):
        about: Row = {"process": process, "op": op, "txn": True, "mop": mop}
        if isinstance(step, Sent):
            about |= {"f": "send", "topic": "ledger", "partition": step.p, "value": next(story.values), "acks": -1}
        else:
            about |= {"f": "poll", "isolation": step.isolation}
        invoked.append(about)
        story.row(**about, type="invoke")
    for about, step in zip(invoked, steps, strict=True):
        if result == "invoke":
            return
        if isinstance(step, Sent):
            at = len(story.partitions[step.p].logs[story.partitions[step.p].leader])
            if step.append:
                story.append(step.p, about["value"], [n for n in NODES if n != story.partitions[step.p].leader])
            known = (at if step.offset == -1 else step.offset) if result == "ok" or step.knows else None
            story.row(**about, type=result, offset=known, error=None if result == "ok" else "timeout")
        else:
            deliver(story, about, result, step.offsets, step.p)


def burst(
    story: Story, *ends: int | str, stored: Sequence[int] | None = None, acks: int = -1,
    meanwhile: Callable[[], object] = lambda: None,
) -> None:  # fmt: skip
    """Sends that a client hands over together, as one operation.

    Args:
        story: of which run.
        ends: by send, the offset at which it is acknowledged, or how else it ends.
        stored: which of them are stored, in this order; None: all, as they were handed over.
        acks: what they ask for.
        meanwhile: happens when the first of them is stored.
    """
    op, process = next(story.ops), 40 + next(story.ops)
    values = [next(story.values) for _ in ends]
    abouts: list[Row] = [
        {"process": process, "op": op, "mop": mop, "f": "send", "topic": "ledger", "partition": 0, "value": value,
         "acks": acks}
        for mop, value in enumerate(values)
    ]  # fmt: skip
    for about in abouts:
        story.row(**about, type="invoke")
        next(story.ops)
    for number, place in enumerate(range(len(values)) if stored is None else stored):
        story.append(0, values[place], (1, 2))
        if not number:
            meanwhile()
    for about, end in zip(abouts, ends, strict=True):
        if isinstance(end, int):
            story.row(**about, type="ok", offset=end)
        else:
            story.row(**about, type=end, error="timeout")


def deliver(story: Story, about: Row, result: str, offsets: Sequence[int], p: int = 0) -> None:
    """The rows of a poll that ends."""
    log = story.partitions[p].logs[story.partitions[p].leader]
    offsets = [offset for offset in offsets if offset < len(log)]
    for offset in offsets:
        place: Row = {"topic": "ledger", "partition": p, "offset": offset}
        story.row(**about, **place, type=result, value=log[offset][1], leader_epoch=log[offset][0], intact=True)
    if not offsets:
        story.row(**about, type=result)


def poll(story: Story, process: int, offsets: Sequence[int], p: int = 0, result: str = "ok", **columns: Any) -> int:
    """A poll that ends with ``result``; returns its operation."""
    op = next(story.ops)
    about: Row = {"process": process, "op": op, "f": "poll", **columns}
    story.row(**about, type="invoke")
    deliver(story, about, result, offsets, p)
    return op


def move(story: Story, process: int, f: str, *partitions: int, result: str = "ok", **columns: Any) -> None:
    """The process is assigned partitions, subscribes to them, or has them moved by a rebalance (``op``)."""
    places: list[Row] = [{"topic": "ledger", "partition": p} for p in partitions] or [{}]
    about: Row = {"process": process, "op": next(story.ops), "f": f, **columns}
    for place in places:
        if f in ("assign", "subscribe"):
            story.row(**about, **place, type="invoke")
    for place in places:
        story.row(**about, **place, type=result)


def commit(story: Story, offset: int | None, f: str = "commit", result: str = "ok", *, end: bool = True) -> Row:
    """The group commits ``offset`` or is told it; returns its first row."""
    about: Row = {"process": 5, "op": next(story.ops), "f": f, "group": "g", "topic": "ledger", "partition": 0}
    begun = story.row(**about, type="invoke", offset=offset if f == "commit" else None)
    if end:
        story.row(**about, type=result, offset=offset)
    return begun
