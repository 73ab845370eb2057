"""The scenarios' predictions against what is known from elsewhere."""

from __future__ import annotations

from collections import Counter

import pytest

from harness import scenario
from harness.runner.expectation import expectations
from tests.harness.scenarios import known

ENTRIES = {
    *("A01", "A02", "A03", "A04", "A05", "A06", "A07", "A08", "A11", "A13", "A14", "A17", "A18"),
    *("B01", "B03", "B05", "B07", "B08", "B11", "B18", "B21", "C02", "E02"),
}


def test_every_prediction_is_the_known_outcome_or_a_listed_deviation() -> None:
    wrong = []
    for row, generation, replay in known.cells():
        words = known.predicted(replay, generation)
        listed = [one.predicted for one in known.deviations_of(row, generation)]
        if not (listed == [words] or (not listed and known.agrees(row.cells[generation], replay, generation))):
            wrong.append((row.name, generation, replay.id, row.cells[generation], sorted(words)))
    assert wrong == []


def test_no_listed_deviation_is_superfluous() -> None:
    superfluous = [
        (row.name, generation, replay.id)
        for row, generation, replay in known.cells()
        if known.deviations_of(row, generation) and known.agrees(row.cells[generation], replay, generation)
    ]
    assert superfluous == []
    assert {one.row for one in known.deviations()} <= {row.name for row in known.rows()}


def test_every_deviation_has_a_reason_in_one_sentence() -> None:
    reasons = [one.reason for one in known.deviations()]
    assert not [text for text in reasons if len(text) < 40 or not text.endswith(".") or ". " in text]


def test_the_matrix_has_every_entry_and_each_row_and_scenario_once() -> None:
    rows = known.rows()
    assert {row.entry for row in rows} == ENTRIES
    assert max(Counter(row.name for row in rows).values()) == 1
    assert max(Counter(name for row in rows for name in row.scenarios).values()) == 1


def test_the_scenarios_of_a_row_replay_its_entry() -> None:
    wrong = [
        (row.name, replay.id)
        for row, _, replay in known.cells()
        if (replay.catalogue or "").partition("/")[0] != row.entry
    ]
    assert wrong == []


def test_logs_diverge_at_the_offsets_at_which_they_are_known_to() -> None:
    found = {
        (replay.id, generation): known.differing_offsets(expectations(replay)[generation])
        for row, generation, replay in known.cells()
        if row.diverged_at
    }
    assert found == {
        (replay.id, generation): row.diverged_at.get(generation, [])
        for row, generation, replay in known.cells()
        if row.diverged_at
    }
    assert any(found.values())


@pytest.mark.parametrize(
    ("cell", "name", "generation", "agrees"),
    [
        ("L", "kip-101-double-failover", "0.10", False),
        ("L+D", "kip-101-double-failover", "0.10", True),
        ("S", "kip-101-double-failover", "0.11", True),
        ("-", "kip-101-double-failover", "0.11", True),
        ("-", "kip-101-double-failover", "0.10", False),
        ("w", "acks-1-leader-dies", "4.1", True),
        ("w", "all-page-caches-lost", "4.1", True),
        ("L", "all-page-caches-lost", "4.1", False),
        ("S", "all-page-caches-lost", "4.1", False),
        ("-", "stale-request-readmits-emptied-replica", "2.1", True),
        ("S", "stale-request-readmits-emptied-replica", "2.1", False),
        ("S", "watermark-regress-after-clean-failover", "2.1", True),
        ("regress", "watermark-regress-after-clean-failover", "2.1", True),
        ("regress", "full-disks-last-dead-first", "2.1", False),
        ("found", "regrown-and-found-out", "2.1", True),
        ("found", "full-disks-wrong-restart-order", "2.1", False),
        ("found", "regrown-past-the-committed-offset", "2.1", False),
    ],
)
def test_a_cell_agrees_with_exactly_what_its_letters_mean(
    cell: str, name: str, generation: str, *, agrees: bool
) -> None:
    assert known.agrees(cell, scenario.load(name), generation) is agrees


def test_the_document_shows_the_matrix_and_its_deviations(request: pytest.FixtureRequest) -> None:
    document = known.DOCUMENT.read_text()
    if request.config.getoption("--rewrite"):
        shown = known.section_of(document)
        document = document.replace(shown, known.section()) if shown else f"{document}\n{known.section()}"
        known.DOCUMENT.write_text(document)
    assert known.section_of(document) == known.section()
