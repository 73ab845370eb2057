"""Random deletions that a client asks for, which a broker obeys or does not, and answers or does not."""

from __future__ import annotations

import random

from harness.history.orders import GAVE_UP, LOST
from tests.checkers.story import NODES, Story

_ENDS = (None, None, "OFFSET_OUT_OF_RANGE", "REQUEST_TIMED_OUT", "NOT_LEADER_OR_FOLLOWER", GAVE_UP, LOST)


def order_a_deletion(story: Story, rng: random.Random) -> None:
    """Now and then there is one DeleteRecords; the log begins where it says, beside that, or where it did."""
    if rng.random() > 0.12:
        return
    end = len(story.partitions[0].logs[story.partitions[0].leader])
    before = rng.randrange(end + 1)
    start = rng.choice((before, max(0, before - 1), min(end, before + 1)))
    invoked_ns = story.now + rng.choice((-5_000_000, 0, 5_000_000))
    if rng.random() < 0.7 and start > max(story.partitions[0].starts.values()):
        story.delete(start)
    error = rng.choice(_ENDS)
    story.orders = [
        {
            "topic": "ledger", "partition": 0, "before": rng.choice((before, before, None)), "timeout_ms": 1,
            "node": rng.choice((None, *NODES)), "invoked_ns": max(invoked_ns, 0),
            "completed_ns": rng.choice((None, story.now, story.now + 1)), "error": error,
            "low_watermark": before if error is None else None,
        }
    ]  # fmt: skip
