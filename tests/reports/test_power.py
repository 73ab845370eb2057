"""What a run that passed would have noticed, according to the detection matrix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reports
from harness.checker import Outcome, RunVerdict
from reports.power import Power, power, wilson
from reports.run import read
from tests.reports.conftest import manifest


def powered(directory: Path) -> Power:
    found = power(read(directory))
    assert found is not None
    return found


@pytest.fixture
def passed(tmp_path: Path, new_recording: Callable[[Any], Any]) -> Callable[..., Path]:
    """A run of 200 records that passed, with so many kills."""

    def write(kills: int, acks: int = -1, outcome: Outcome = Outcome.PASS) -> Path:
        recording = new_recording(manifest(f"run-{kills}-{acks}", "story"))
        for value in range(20):
            recording.send(0.1 * value, value, value, acks=acks)
        for number in range(kills):
            recording.fault(f"f{number:03d}", "kill", ["1"], (1.0, 1.1, 1.2, 1.5, 1.6), "it is gone")
        verdict = RunVerdict("", outcome, "python", counts={"sends": 200, "sends_ok": 200})
        return Path(recording.write(tmp_path / f"run-{kills}-{acks}-{outcome}", verdict))

    return write


def test_a_run_with_more_faults_would_have_found_more(passed: Callable[..., Path]) -> None:
    chances = [{one.bug: one.low for one in powered(passed(kills)).likely} for kills in (0, 3, 30)]
    assert len(chances[0]) < len(chances[1]) <= len(chances[2])
    assert all(chances[2][bug] >= low for bug, low in chances[1].items())


def test_every_bug_of_brokers_is_either_likely_or_unnoticed(passed: Callable[..., Path]) -> None:
    found = powered(passed(3))
    assert not {one.bug for one in found.likely} & set(found.unnoticed)
    assert len(found.likely) + len(found.unnoticed) > 40
    assert found.exposure == "200 records, 3 of kill"


def test_the_surest_come_first(passed: Callable[..., Path]) -> None:
    lows = [one.low for one in powered(passed(3)).likely]
    assert lows == sorted(lows, reverse=True)


def test_only_a_run_that_passed_has_power(passed: Callable[..., Path]) -> None:
    assert power(read(passed(3, outcome=Outcome.VIOLATION))) is None
    assert "Detection power" not in reports.write(passed(4, outcome=Outcome.INVALID)).read_text()


def test_the_page_says_what_would_have_gone_unnoticed(passed: Callable[..., Path]) -> None:
    html = reports.write(passed(0)).read_text()
    assert "Detection power" in html
    assert "truncates_to_the_watermark" in html.partition("These would probably have gone unnoticed")[2]


def test_other_acks_are_read_from_other_rows(passed: Callable[..., Path]) -> None:
    assert powered(passed(3, acks=1)) != powered(passed(3))


def test_a_share_comes_with_its_interval() -> None:
    assert wilson(0, 10) == pytest.approx((0, 0, 0.2775), abs=1e-4)
    assert wilson(10, 10) == pytest.approx((1, 0.7225, 1), abs=1e-4)
    assert wilson(5, 10) == pytest.approx((0.5, 0.2366, 0.7634), abs=1e-4)
    assert wilson(0, 0) == (0, 0, 1)
