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
from tests.by_night import seeds
from tests.harness.replication.chaos import Chaos, run
from tests.harness.replication.world import World

CURRENT = GENERATIONS["4.1"]
SOUND = ["2.0.1", "2.1", "2.8", "3.7", "4.1"]
"""In these worlds: 2.0.1 has its hole (KAFKA-6880), but chance does not find it."""

STEPS = 300


def harm(world: World) -> list[object]:
    """What went wrong by the end: lost values, diverged offsets, or no rest."""
    found: list[object] = list(world.diverged())
    rest = world.heal()
    return [*found, *world.diverged(), *world.lost(), *([] if rest else ["no rest"])]


@seeds(day=25, night=200)
@pytest.mark.parametrize("generation", SOUND)
def test_no_schedule_loses_an_acknowledged_record_with_sound_epochs(generation: str, seeds: range) -> None:
    assert not [seed for seed in seeds if harm(run(seed, GENERATIONS[generation], STEPS))]


@settings(max_examples=60)
@given(st.data())
def test_no_schedule_that_can_be_thought_of_loses_an_acknowledged_record(data: st.DataObject) -> None:
    choices = iter(data.draw(st.lists(st.integers(0, 2**16), max_size=600)))
    chaos = Chaos(CURRENT, lambda options: next(choices, 0) % options)
    for _ in range(150):
        chaos.step()
        assert not chaos.world.diverged()
    assert not harm(chaos.world)


def first_loss(knobs: Knobs, seeds: range) -> int | None:
    for seed in seeds:
        world = run(seed, knobs, STEPS)
        world.heal()
        if world.lost() or world.diverged():
            return seed
    return None


@pytest.mark.parametrize(
    ("generation", "first"), [(name, 90 if name == "0.10" else 42) for name in GENERATIONS if name not in SOUND]
)
def test_the_generations_before_lose_or_differ(generation: str, first: int) -> None:
    assert first_loss(GENERATIONS[generation], range(first, 400)) is not None


FLAWED = {
    "joining the ISR at a stale watermark": (replace(CURRENT, isr_join="hw"), 280),
    "counting fetches that diverge": (replace(CURRENT, diverging_fetch_is_progress=True), 5),
    "wiping a log on a spurious answer": (replace(CURRENT, out_of_range="wipe", spurious_out_of_range=True), 9),
    "cutting to the leader's watermark": (replace(CURRENT, truncation="leader_hw"), 11),
    "cutting to the watermark as the first answer raised it": (replace(CURRENT, truncation="hw_after_first_fetch"), 11),
}
"""Rules, and the first seed that loses or differs with them."""


@pytest.mark.parametrize(("knobs", "first"), FLAWED.values(), ids=FLAWED)
def test_one_flaw_loses_acknowledged_records(knobs: Knobs, first: int) -> None:
    assert first_loss(knobs, range(first, 800)) is not None


@seeds(day=20, night=100)
def test_a_watermark_that_waits_for_the_followers_watermarks_is_safe(seeds: range) -> None:
    careful = replace(CURRENT, hw_advance="after_followers")
    assert not [seed for seed in seeds if harm(run(seed, careful, STEPS))]


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
