"""Random deletions that a schedule asks for, which a broker obeys or does not."""

from __future__ import annotations

import random

from tests.checkers.story import Story


def order_a_deletion(story: Story, rng: random.Random) -> None:
    """Now and then the schedule has one DeleteRecords; the log begins where it says, beside that, or where it did."""
    if rng.random() > 0.12:
        return
    end = len(story.partitions[0].logs[story.partitions[0].leader])
    before = rng.randrange(end + 1)
    start = rng.choice((before, max(0, before - 1), min(end, before + 1)))
    if rng.random() < 0.7 and start > max(story.partitions[0].starts.values()):
        story.delete(start)
    story.scenario["schedule"] = [{"delete_records": {"topic": "ledger", "before": before, "expect": "ok"}}]
