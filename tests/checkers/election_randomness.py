"""Random transactions with elections between them, which may give up their records or their markers."""

from __future__ import annotations

import random

from tests.checkers.clients import Sent, poll, transact
from tests.checkers.story import NODES, Story

_ENDS = ("ok", "ok", "info", "info", "fail")


def transact_across_elections(story: Story, rng: random.Random, *, often: bool) -> bool:
    """Now and then transactions of one producer, which two consumers read, and elections; whether there were."""
    if rng.random() > (0.6 if often else 0.15):
        return False
    for p in story.partitions:
        story.send(p)
    for _ in range(rng.randrange(2, 5)):
        _transact(story, rng)
        _read_on(story, rng)
        if rng.random() < 0.7:
            _lead_with_less(story, rng)
        if rng.random() < 0.2:
            p = rng.choice(list(story.partitions))
            story.delete(rng.randrange(len(story.partitions[p].logs[story.partitions[p].leader]) + 1), p)
    for p in story.partitions:
        story.send(p)
    return True


def name_markers(story: Story, rng: random.Random) -> None:
    """All is one producer's, what is none of the workload's is a marker, and what markers hide may not be given."""
    said = {(r["partition"], r["offset"]): rng.choice(("commit", "abort")) for r in story.logs if r["value"] is None}
    for row in story.logs:
        row |= {"producer_id": 7, "producer_epoch": 0, "control": said.get((row["partition"], row["offset"]))}
    hidden = set(said)
    for (p, offset), control in said.items():
        hidden |= {(p, offset - 1)} if control == "abort" and rng.random() < 0.7 else set()
    story.forget(*[row for row in story.history if row["final"] and (row["partition"], row["offset"]) in hidden])


def _transact(story: Story, rng: random.Random) -> None:
    steps = [Sent(rng.choice(list(story.partitions)), append=rng.random() < 0.9) for _ in range(rng.randrange(1, 3))]
    transact(story, *steps, result=rng.choice(_ENDS), process=50)
    for p in {step.p for step in steps if rng.random() < 0.8}:
        story.append(p, None, [node for node in NODES if node != story.partitions[p].leader])


def _read_on(story: Story, rng: random.Random) -> None:
    """What is none of the workload's is not given to anybody."""
    p = rng.choice(list(story.partitions))
    log = story.partitions[p].logs[story.partitions[p].leader]
    offsets = [offset for offset, (_, value) in enumerate(log) if value is not None and rng.random() < 0.9]
    process, isolation = rng.choice(((51, None), (51, None), (51, None), (52, "read_uncommitted")))
    poll(story, process, offsets[-rng.randrange(1, 5) :], p, isolation=isolation)


def _lead_with_less(story: Story, rng: random.Random) -> None:
    """Somebody leads who has lost something, by an election of one sort or the other, or because all lost power."""
    p = rng.choice(list(story.partitions))
    part, node = story.partitions[p], rng.choice(NODES)
    end = max(0, len(part.logs[node]) - rng.randrange(4))
    clean, begin = rng.random() < 0.3, len(story.timeline)
    if rng.random() < 0.3:
        times = {"injected_ns": story.now + 1, "healed_ns": story.now + 3, "heal_proven_ns": story.now + 4}
        story.fault("dark", kind="power_loss", nodes=[str(n) for n in NODES], **times)
        for one in NODES:
            del part.logs[one][end:]
            part.marks[one] = min(part.marks[one], end)
            story.restart(one)
    else:
        story.cut(node, end, p)
        for row in story.timeline[begin:]:
            row["leader_epoch"] = part.epoch + (not clean)
    story.elect(node, p, clean=clean)
