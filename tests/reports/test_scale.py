"""Pixels and round numbers."""

from __future__ import annotations

import pytest

from reports.scale import Scale, Window, label, ticks, whole_ticks


def test_the_ends_of_the_domain_land_on_the_ends_of_the_range() -> None:
    scale = Scale(10, 20, 100, 50)
    assert [scale.at(10), scale.at(15), scale.at(20)] == [100, 75, 50]


def test_what_lies_outside_sits_on_the_edge() -> None:
    assert Scale(10, 20, 0, 100).at(99) == 100


def test_an_empty_domain_lands_midway_instead_of_dividing_by_zero() -> None:
    assert Scale(5, 5, 0, 10).at(5) == 5


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 60, [0, 10, 20, 30, 40, 50, 60]), (2.6, 3.4, [2.6, 2.8, 3.0, 3.2, 3.4]), (7, 7, [7])],
)
def test_ticks_are_round_numbers_inside_the_domain(low: float, high: float, expected: list[float]) -> None:
    assert list(ticks(low, high, 6)) == pytest.approx(expected)


def test_offsets_never_get_a_tick_between_two_records() -> None:
    assert list(whole_ticks(20, 21, 5)) == [20, 21]
    assert list(whole_ticks(3, 3, 5)) == [3]


def test_labels_have_no_needless_zeros() -> None:
    assert [label(12.0), label(12.5), label(12_000), label(0.0)] == ["12", "12.5", "12,000", "0"]


def test_seconds_count_from_the_runs_start_and_not_from_the_windows() -> None:
    assert Window(1_000_000_000, 2_000_000_000, 3_000_000_000).seconds(2_500_000_000) == "1.500 s"
