"""Random schedules: the current protocol survives all of them, and protocols with a known hole do not."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.replication.knobs import GENERATIONS, Knobs
from tests.harness.replication.chaos import Chaos, run
from tests.harness.replication.world import World

CURRENT = GENERATIONS["3.7"]
STEPS = 300


def harm(world: World) -> list[object]:
    """What went wrong by the end: lost values, diverged offsets, or no rest."""
    found: list[object] = list(world.diverged())
    rest = world.heal()
    return [*found, *world.diverged(), *world.lost(), *([] if rest else ["no rest"])]


@pytest.mark.parametrize("generation", ["2.8", "3.7"])
def test_no_schedule_loses_an_acknowledged_record_with_epochs(generation: str) -> None:
    assert not [seed for seed in range(300) if harm(run(seed, GENERATIONS[generation], STEPS))]


@settings(max_examples=60)
@given(st.data())
def test_no_schedule_that_can_be_thought_of_loses_an_acknowledged_record(data: st.DataObject) -> None:
    choices = iter(data.draw(st.lists(st.integers(0, 2**16), max_size=600)))
    chaos = Chaos(CURRENT, lambda options: next(choices, 0) % options)
    for _ in range(150):
        chaos.step()
        assert not chaos.world.diverged()
    assert not harm(chaos.world)


def first_loss(knobs: Knobs, limit: int) -> int | None:
    for seed in range(limit):
        world = run(seed, knobs, STEPS)
        world.heal()
        if world.lost() or world.diverged():
            return seed
    return None


def test_truncating_to_the_high_watermark_loses_acknowledged_records() -> None:
    assert first_loss(GENERATIONS["0.10"], 400) is not None


def test_joining_the_isr_at_a_stale_watermark_loses_acknowledged_records() -> None:
    assert first_loss(replace(CURRENT, isr_join="hw"), 400) is not None


def test_counting_fetches_that_diverge_loses_acknowledged_records() -> None:
    assert first_loss(replace(CURRENT, diverging_fetch_is_progress=True), 800) is not None


def test_the_same_seed_tells_the_same_story_whatever_the_hash_seed() -> None:
    program = "from tests.harness.replication.test_random_worlds import told; print(*map(told, range(5)), sep='\\n')"
    stories = [
        subprocess.run(
            (sys.executable, "-c", program),
            cwd=Path(__file__).parents[3],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1")
    ]
    assert stories[0]
    assert stories[0] == stories[1]


def told(seed: int) -> list[str]:
    """Everything that the world of ``seed`` does while it heals, and its logs."""
    lines: list[str] = []
    world = run(seed, CURRENT, STEPS)
    world._tell = lambda who, effect: lines.append(f"{who} {type(effect).__name__}")
    world.heal()
    return [*lines, *(str(broker.records) for broker in world.brokers.values())]
