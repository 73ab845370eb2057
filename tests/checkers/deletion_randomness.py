"""Random deletions that a client asks for, which a broker obeys or not, and answers or not; and logs that shrink."""

from __future__ import annotations

import random

from harness.history.delete_records_log import GAVE_UP, LOST
from tests.checkers.story import NODES, Story

_ENDS = (
    None,
    None,
    None,
    "OFFSET_OUT_OF_RANGE",
    "REQUEST_TIMED_OUT",
    "NOT_LEADER_OR_FOLLOWER",
    "UNKNOWN_SERVER_ERROR",
    GAVE_UP,
    LOST,
)


def order_a_deletion(story: Story, rng: random.Random) -> None:
    """Now and then there is one DeleteRecords; the log begins where it says, beside that, or where it did."""
    if rng.random() > 0.3:
        return
    part = story.partitions[0]
    if rng.random() < 0.8:
        story.elect(part.leader)
    end = len(part.logs[part.leader])
    before = rng.randrange(end + 1)
    start = rng.choice((before, max(0, before - 1), min(end, before + 1)))
    invoked_ns = story.now + rng.choice((-5_000_000, 1, 1, 1, 1, 5_000_000))
    if rng.random() < 0.7 and start > max(part.starts.values()):
        story.delete(start)
    error = rng.choice(_ENDS)
    story.orders = [
        {
            "topic": "ledger", "partition": 0, "before": rng.choice((before, before, None)), "timeout_ms": 1,
            "node": rng.choice((None, *[part.leader] * 6, *NODES)), "invoked_ns": max(invoked_ns, 0),
            "completed_ns": rng.choice((None, *[max(story.now, invoked_ns + 2_000_000)] * 4)), "error": error,
            "low_watermark": before if error is None else None,
        }
    ]  # fmt: skip


def shrink(story: Story, rng: random.Random) -> None:
    """Now and then a broker starts again, and its log lacks its last record, or the first, until it has it again."""
    if rng.random() > 0.2:
        return
    node = rng.choice(NODES)
    part = story.partitions[0]
    log, start = list(part.logs[node]), part.starts[node]
    if rng.random() < 0.7:
        del part.logs[node][len(log) - 1 :]
    else:
        part.starts[node] = min(start + 1, len(log))
    story.restart(node)
    part.logs[node], part.starts[node] = log, start
    story.state(node)
