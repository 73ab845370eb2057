"""New, still failing, flaky, fixed, not run: what a finding is on each night."""

from __future__ import annotations

import pytest

from harness.nightly.result import CellOutcome, CellResult
from harness.nightly.standing import findings
from tests.harness.nightly.cells import cell, lossy

NIGHTS = [f"2026-03-{day:02}" for day in range(1, 20)]


def played(story: str) -> list[CellResult]:
    """A night a letter: F fails, O in another way, P passes, 3 of three cells, I is inconclusive, - does not run."""
    results = []
    for night, letter in zip(NIGHTS, story, strict=False):
        seed = int(night[-2:])
        match letter:
            case "F":
                results.append(lossy(night, seed))
            case "P":
                results.append(cell(night, seed))
            case "3":
                results += [cell(night, seed + 100 * i) for i in range(3)]
            case "I":
                results.append(cell(night, seed, outcome=CellOutcome.INCONCLUSIVE))
            case "O":
                results.append(lossy(night, seed, signature="b2"))
            case _:
                results.append(cell(night, seed, scenario="another"))
    return results


@pytest.mark.parametrize(
    ("story", "standings"),
    [
        ("F", ["new"]),
        ("FF", ["new", "still failing"]),
        ("PF", ["new"]),
        ("FPF", ["new", "flaky", "flaky"]),
        ("FPPP", ["new", "flaky", "flaky", "fixed"]),
        ("F3", ["new", "fixed"]),
        ("F3F", ["new", "fixed", "new"]),
        ("F3FF", ["new", "fixed", "new", "still failing"]),
        ("FI-", ["new", "not run", "not run"]),
        ("FFIF", ["new", "still failing", "not run", "still failing"]),
        ("F3-P", ["new", "fixed", "not run", "fixed"]),
        ("FPFFFFFF", ["new", *["flaky"] * 6, "still failing"]),
        ("FO", ["new", "not run"]),
    ],
)
def test_a_finding_has_a_standing_on_each_night(story: str, standings: list[str]) -> None:
    [found] = [one for one in findings(played(story)) if one.key[1] == "a1" * 8]
    assert list(map(str, found.standings.values())) == standings
    assert found.first_seen == NIGHTS[(story + "F").index("F")]


def test_a_finding_is_fixed_only_when_the_seeds_of_the_bank_have_passed() -> None:
    results = [*played("F33"), cell(NIGHTS[3], seed=1, bank=True)]
    series = results[0].series
    bank = {(series, "a1" * 8): frozenset({1})}
    [found] = findings(results, bank)
    assert list(map(str, found.standings.values())) == ["new", "flaky", "flaky", "fixed"]
    assert found.fixed == NIGHTS[3]


def test_losses_in_different_places_are_different_findings() -> None:
    one, other = findings([lossy(), lossy(seed=8, signature="c3"), lossy(seed=9)])
    assert {one.key[1], other.key[1]} == {"a1" * 8, "c3"}
    assert one.seeds == {7, 9}


def test_a_prediction_that_did_not_come_true_is_a_finding_without_a_signature() -> None:
    [found] = findings([cell(outcome=CellOutcome.NOT_REPRODUCED)])
    assert found.key[1] == "not-reproduced"


def test_nights_are_in_the_order_in_which_they_started() -> None:
    [found] = findings([lossy("zulu", started="2026-03-01T01:00"), cell("alpha", started="2026-03-02T01:00")])
    assert list(found.standings) == ["zulu", "alpha"]
