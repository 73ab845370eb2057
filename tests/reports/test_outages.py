"""When a broker did not run, and what the strip says it was then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.checker import Outcome, RunVerdict
from reports import run
from reports.outages import outages
from tests.reports.conftest import Recording, at, manifest

HEALED = (1.0, 2.0, 2.1, 6.0, 6.1)


def recording(*, sampled: bool = False) -> Recording:
    """A run in which three brokers start at once and say something."""
    r = Recording(manifest("outages-7", "outages"))
    if sampled:
        r.manifest = replace(r.manifest, guarantees={**r.manifest.guarantees, "timeline": "sampled"})
    for node in (0, 1, 2):
        r.say(0.0, node, "started")
        r.state(0.3, node, (0, 0), (0, 0), (0, 1, 2))
    return r


def seen(r: Recording, path: Path) -> Sequence[tuple[int, float, float, str]]:
    """The outages, in seconds since the start of the run."""
    found = outages(run.read(r.write(path / "run", RunVerdict("", Outcome.PASS, "python"))))
    return [(o.node, (o.start_ns - at(0)) / 1e9, (o.end_ns - at(0)) / 1e9, o.word) for o in found]


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("kill", "killed"),
        ("stop", "shut down"),
        ("power_loss", "lost power"),
        ("wipe_disk", "down, disk wiped"),
        ("corrupt_log", "down, log damaged"),
    ],
)
def test_a_broker_that_a_fault_took_down_is_away_until_it_is_started(tmp_path: Path, kind: str, word: str) -> None:
    r = recording()
    r.fault("f", kind, ["1"], HEALED, "it is gone")
    r.say(5.0, 1, "started")
    assert seen(r, tmp_path) == [(1, 2.0, 5.0, word)]


@pytest.mark.parametrize(("looked", "up"), [(5.5, 5.5), (7.0, 6.0)])
def test_a_broker_that_is_looked_at_is_starting_until_a_look_shows_something_or_it_is_healed(
    tmp_path: Path, looked: float, up: float
) -> None:
    r = recording(sampled=True)
    r.fault("f", "power_loss", ["1"], HEALED, "it is gone")
    r.say(3.0, 1, "started")
    r.state(looked, 1, (0, 0), (0, 0), (0, 1, 2))
    assert seen(r, tmp_path) == [(1, 2.0, 3.0, "lost power"), (1, 3.0, up, "starting")]


def test_a_start_that_was_to_be_cut_short_ends_no_outage(tmp_path: Path) -> None:
    r = recording()
    r.fault("f", "corrupt_log", ["1"], HEALED, "it is gone")
    r.say(2.05, 1, "started")
    r.say(5.0, 1, "started")
    assert seen(r, tmp_path) == [(1, 2.0, 5.0, "down, log damaged")]


def test_a_broker_that_is_started_in_the_instant_of_its_kill_was_away_for_that_instant_alone(tmp_path: Path) -> None:
    r = recording()
    r.fault("f", "kill", ["1"], (1.0, 2.0, 2.0, 2.0, 2.0), "it is gone")
    r.say(2.0, 1, "started")
    r.fault("g", "kill", ["1"], (3.0, 3.0, 3.0, 4.0, 4.0), "it is gone")
    r.say(4.0, 1, "started")
    assert seen(r, tmp_path) == [(1, 2.0, 2.0, "killed"), (1, 3.0, 4.0, "killed")]


@pytest.mark.parametrize(("kind", "times"), [("clock", HEALED), ("kill", (1.0, 2.0, None, 6.0, 6.1))])
def test_what_takes_no_broker_down_and_what_is_not_proven_is_no_outage(tmp_path: Path, kind: str, times: Any) -> None:
    r = recording()
    r.fault("f", kind, ["1"], times, "it is gone")
    assert not seen(r, tmp_path)
