"""The whole broker in virtual time: reproducible to the byte, and whole again after whatever happened."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.simulation.stack.chaos_story import PARTITIONS, Chaos

ROOT = Path(__file__).parents[4]


def told(seed: int, generation: str, hash_seed: str) -> str:
    story = [sys.executable, "-m", "tests.harness.simulation.stack.chaos_story", str(seed), generation]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(story, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    "generation", [pytest.param("0.10", marks=pytest.mark.nightly("by day of the newest generation")), "4.1"]
)
def test_one_seed_tells_one_story_to_the_byte_whatever_python_hashes(generation: str) -> None:
    first, second = told(7, generation, "1"), told(7, generation, "2")
    assert first == second
    digest, events, rows, complete = first.split()
    assert (len(digest), complete) == (64, "True")
    assert int(events) > 1000
    assert int(rows) > 50


def test_another_seed_tells_another_story() -> None:
    stories = []
    for seed in (1, 2):
        chaos = Chaos(seed)
        chaos.rage(0.5)
        stories.append(chaos.everything())
    assert stories[0] != stories[1]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("generation", ["2.1", "4.1"])
def test_without_power_losses_every_acknowledged_record_survives_and_the_replicas_agree(
    generation: str, seed: int
) -> None:
    chaos = Chaos(seed, generation, plugged_in=True)
    chaos.rage(2.0)
    chaos.heal()
    for partition in PARTITIONS:
        logs = [node.disk.read_bytes(f"{partition}/{0:020d}.log") for node in chaos.cluster.brokers()]
        assert logs[0] == logs[1] == logs[2]
    assert chaos.clients.final_read.read(10.0)
    history = chaos.history()
    sent = {row["value"] for row in history if (row["f"], row["type"]) == ("send", "ok")}
    read = {row["value"] for row in history if row["f"] == "poll" and row["final"] and row["type"] == "ok"}
    assert sent
    assert sent <= read
