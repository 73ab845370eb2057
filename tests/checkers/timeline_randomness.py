"""Falsifications of what brokers and the controller say: elections, ISRs, epochs, producers."""

from __future__ import annotations

import json
import random

from tests.checkers.story import CONTROLLER, NODES, Row, Story


def decide_anything(story: Story, rng: random.Random) -> None:
    """The controller decides this and that."""
    epoch = 0
    for partition_epoch in range(rng.randrange(1, 5)):
        epoch = max(0, epoch + rng.choice((0, 0, 1, 1, -1)))
        detail: Row = {"controller_epoch": rng.choice((1, 1, 1, 2)), "clean": rng.random() < 0.7}
        if rng.random() < 0.4:
            detail["elr"] = rng.sample(NODES, rng.randrange(1, 3))
        if rng.random() < 0.3:
            story.say(CONTROLLER, "session", None, {"broker": rng.choice(NODES), "change": "expired"})
        row = story.say(
            CONTROLLER, rng.choice(("election", "isr")), 0, detail, leader=rng.choice((-1, 0, 1, 2)),
            leader_epoch=epoch, partition_epoch=20 + partition_epoch, isr=rng.sample(NODES, rng.randrange(4)),
        )  # fmt: skip
        if rng.random() < 0.5:  # before something that a leader did
            row["time_ns"] = rng.choice(story.timeline)["time_ns"]


def forget_the_isr(story: Story, rng: random.Random) -> None:
    """Everybody believes in a smaller ISR from some row on."""
    rows = [row for row in story.timeline if row["kind"] == "state"]
    for row in rows[rng.randrange(len(rows)) :]:
        row["isr"] = [row["leader"]]


def forget_an_isr(story: Story, rng: random.Random) -> None:
    """A leader changes its mind about its ISR without a reason."""
    rows = [row for row in story.timeline if row["kind"] == "state" and row["role"] == "leader"]
    for row in rng.sample(rows, min(len(rows), 3)):
        row["isr"] = rng.sample(NODES, rng.randrange(4))


def say_epochs(story: Story, rng: random.Random) -> None:
    """The disks hold leader epochs, and some are wrong."""
    for row in story.timeline:
        if row["kind"] == "final":
            entries = [[epoch, epoch * rng.randrange(3)] for epoch in range(rng.randrange(3))]
            said = {"epochs_unread": "it is garbled"} if rng.random() < 0.1 else {"epochs": entries}
            row["detail"] = json.dumps({"source": rng.choice(("live", "live", "disk")), **said})


def number_records(story: Story, rng: random.Random) -> None:
    """Records have producers and sequences; some are there twice or not at all, or neighbours have changed places."""
    for row in story.logs:
        sequence = row["offset"] + rng.choice((0, 0, 0, 0, 0, 1))
        row |= {"producer_id": rng.randrange(2), "producer_epoch": 0, "sequence": sequence}
    if len(story.logs) % 3:
        for row in story.logs:
            row |= {"producer_id": 0, "sequence": row["offset"] ^ 1}


def number_transactions(story: Story, rng: random.Random) -> None:
    """Records have producers, whose epochs may fall, and other records are their markers."""
    workload = [row["value"] for row in story.logs if row["value"] is not None]
    ends = {value: rng.choice((None, None, None, "commit", "abort")) for value in sorted({*workload, -1})}
    epochs = {value: rng.randrange(2) for value in ends}
    for row in story.logs:
        value = -1 if row["value"] is None else row["value"]
        control = rng.choice(("commit", "abort")) if value == -1 else ends[value] if rng.random() < 0.2 else None
        known: Row = {"producer_id": value % 2 if rng.random() < 0.9 else None, "producer_epoch": epochs[value]}
        row |= {**known, "sequence": None if control else value // 2, "control": control}


def double_a_record(story: Story, rng: random.Random) -> None:
    """A log holds two records at an offset."""
    if story.logs:
        row = rng.choice(story.logs)
        story.logs.append(row | {"batch_crc": 7, "leader_epoch": row["leader_epoch"] + rng.randrange(2)})


def start_a_log_anew(story: Story, rng: random.Random) -> None:
    """A replica loses its log, and says so."""
    rows = [row for row in story.timeline if row["kind"] == "truncation"]
    if rows:
        row = rng.choice(rows)
        row |= {"kind": "log_start", "log_end_offset": rng.randrange(3)}


TIMELINE_FALSIFICATIONS = (
    decide_anything,
    forget_the_isr,
    forget_an_isr,
    say_epochs,
    number_records,
    number_transactions,
    double_a_record,
    start_a_log_anew,
)
