"""What a release is known to do otherwise is known in so many words: whatever else differs is news."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness import scenario
from harness.outcome import Word
from harness.runner import plan
from harness.runner.expectation import expectations
from harness.runner.known_differences import KNOWN_DIFFERENCES, why_it_differs
from harness.runner.matrix import Cell, unplayed
from harness.targets.kafka.fetching import Distribution
from harness.targets.kafka.local import LocalKafka
from harness.targets.kafka.process_source import ProcessSource
from harness.targets.kafka.releases import release
from harness.targets.kafka.server_properties import KafkaSettings
from harness.targets.kafka.system import RealKafka

ELSEWHERE = tuple(f"the log of ledger-0 on broker {node} is m0@0 b1..b5@1, not m0@0 b1..b5@3." for node in (0, 1))
OTHERWISE = Cell(
    scenario="power-loss-batches-overlap", origin="power-loss-batches-overlap", catalogue="A05", generation="2.0.1",
    release="2.0.1", predicted=(Word.DOCUMENTED,), observed=(Word.DOCUMENTED,), differences=ELSEWHERE, logs=(),
)  # fmt: skip
"""As it was seen on 2.0.1."""
LATE = "schedule[15].until: did not come true within 20 s: ledger-0: the leader is -1, not 1; ledger-0: the ISR is "
BROKEN_OFF = replace(
    OTHERWISE,
    scenario="power-loss-shorter-log-leads",
    observed=(),
    differences=(f"{LATE}[0], not [1]; ledger-0: node 1: process 13255 exists, in state S, and answers.",),
)
"""As it was seen there, too."""


def saying(cell: Cell, *differences: str) -> Cell:
    return replace(cell, differences=differences)


@pytest.mark.parametrize(
    "cell",
    [
        OTHERWISE,
        saying(OTHERWISE, *reversed(ELSEWHERE)),
        BROKEN_OFF,
        saying(BROKEN_OFF, f"{LATE}[0], not [1]; ledger-0: node 1: process 7 exists, in state R, and answers."),
        saying(BROKEN_OFF, f"{BROKEN_OFF.differences[0]} Their logs end with: node 0: [2026-11-22] INFO shut down"),
    ],
)
def test_what_differs_as_is_known_is_no_news_and_the_reason_is_told(cell: Cell) -> None:
    assert not cell.is_news
    assert "of the ISR" in str(cell.known)
    assert cell.to_json()["known"] == cell.known


@pytest.mark.parametrize(
    "cell",
    [
        replace(OTHERWISE, observed=(Word.DIVERGED, Word.DOCUMENTED)),
        replace(OTHERWISE, observed=()),
        saying(OTHERWISE, ELSEWHERE[0]),
        saying(OTHERWISE, *ELSEWHERE, "unexpected vanished-read: it is gone."),
        saying(OTHERWISE, ELSEWHERE[0], "the log of ledger-0 on broker 1 is m0@0, not m0@0 b1..b5@3."),
        replace(OTHERWISE, release="2.1.1"),
        replace(OTHERWISE, release=None),
        replace(OTHERWISE, scenario="power-loss-shorter-log-leads"),
        saying(BROKEN_OFF, BROKEN_OFF.differences[0].replace("schedule[15]", "schedule[11]")),
        saying(BROKEN_OFF, f"{LATE}[0, 1], not [1]; ledger-0: node 1: process 7 exists, in state S, and answers."),
        saying(BROKEN_OFF, f"{LATE}[0], not [1]; ledger-0: node 1: process 7 is gone, exit status 1."),
        saying(BROKEN_OFF, f"{LATE}[0], not [1]; ledger-0: node 1: process 7 exists, in state S, as 8, and answers."),
        saying(BROKEN_OFF, "node 1 has not come up within 60 s."),
    ],
)
def test_what_differs_in_another_way_is_news_also_where_a_difference_is_known(cell: Cell) -> None:
    assert cell.is_news
    assert cell.known is None


def test_a_known_difference_that_does_not_show_is_no_news_and_is_still_told() -> None:
    cell = saying(OTHERWISE)
    assert (cell.agrees, cell.is_news) == (True, False)
    assert cell.known == OTHERWISE.known
    assert saying(replace(OTHERWISE, release=None)).known is None


def test_a_cell_says_of_which_release_it_is(tmp_path: Path) -> None:
    simulated = plan(scenario.load("power-loss-batches-overlap"), "simulated", "2.0.1")
    source = ProcessSource(LocalKafka(Distribution(release("2.0.1"), tmp_path)))
    kafka = RealKafka("process:2.0.1", simulated.system.protocol, source, 3, KafkaSettings(release("2.0.1"), {}, (), 0))
    assert unplayed(simulated, "It did not start.").release is None
    assert unplayed(replace(simulated, system=kafka), "It did not start.").release == "2.0.1"


def test_of_one_cell_only_one_reason_is_found() -> None:
    for one in KNOWN_DIFFERENCES:
        others = [other for other in KNOWN_DIFFERENCES if other is not one and other.scenario == one.scenario]
        assert not [other for other in others if other.is_just(one.observed, one.differences)]


def test_what_is_known_is_known_of_scenarios_and_releases_that_there_are_and_predicts_otherwise() -> None:
    for one in KNOWN_DIFFERENCES:
        for version in one.releases:
            assert release(version).generation in expectations(scenario.load(one.scenario))
            assert why_it_differs(one.scenario, version, one.observed, one.differences) == one.why
