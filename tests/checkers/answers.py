"""What a cluster tells a client of a story's partitions: rows of the timeline that no node has written."""

from __future__ import annotations

import random

from harness.model import NO_NODE
from tests.checkers.story import GUARANTEES, Row, Story

TOLD: Row = {**GUARANTEES, "timeline": "metadata"}
"""The guarantees of a run whose brokers are known by such rows alone."""


def answer(
    story: Story,
    p: int = 0,
    *,
    epoch: int | None = None,
    mark: int | None = None,
    start: int | None = None,
    refused: str | None = None,
    start_refused: str | None = None,
) -> None:
    """The leader of a partition answers a client; what is not given is as it is."""
    part = story.partitions[p]
    mark = part.marks[part.leader] if mark is None else mark
    told = {"leader_epoch": part.epoch if epoch is None else epoch, "high_watermark": mark} if refused is None else {}
    told |= {} if start is None else {"log_start_offset": start}
    why = {"refused": refused, "start_refused": start_refused}
    detail = {"asked_ns": story.now} | {key: said for key, said in why.items() if said is not None}
    story.say(NO_NODE, "metadata", p, detail, leader=part.leader, isr=sorted(part.isr), **told)


def by_answers_alone(story: Story) -> None:
    """Nothing else is known of brokers."""
    story.timeline = [row for row in story.timeline if row["kind"] == "metadata"]
    story.logs = []


def plant_answers(story: Story, rng: random.Random) -> None:
    """Now and then clients were told something, which may be stale, and may be wrong."""
    if rng.random() < 0.3:
        for p in story.partitions:
            mark = 0
            for epoch in sorted(rng.choices(range(4), k=rng.randrange(1, 7))):
                mark = max(0, mark + rng.choice((0, 0, 1, 2, 3, 3, -1)))
                start = rng.choice((None, 0, 0, 0, rng.randrange(mark + 1)))
                refused = rng.choice((None, None, None, "no answer"))
                silent = "LEADER_NOT_AVAILABLE" if start is None and refused is None else None
                answer(story, p, epoch=epoch, mark=mark, start=start, refused=refused, start_refused=silent)
