"""Thinning may drop what a pixel cannot show, and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reports.scale import Window
from reports.thinning import binned, thinned

WINDOW = Window(0, 0, 1000)
POINTS = st.lists(st.tuples(st.integers(0, 1000), st.integers(-9, 9)), min_size=1, max_size=200).map(
    lambda points: sorted(points, key=lambda point: point[0])
)


def test_a_dip_of_one_point_among_thousands_survives() -> None:
    points = [(i, 100 if i != 577 else 3) for i in range(1000)]
    assert (577, 3) in thinned(points, WINDOW, 10)


@given(POINTS, st.integers(1, 40))
def test_a_thinned_line_keeps_its_ends_and_extremes_within_four_points_a_bin(
    points: list[tuple[int, int]], bins: int
) -> None:
    kept = thinned(points, WINDOW, bins)
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    assert {min(v for _, v in kept), max(v for _, v in kept)} == {min(v for _, v in points), max(v for _, v in points)}
    assert len(kept) <= 4 * bins
    assert kept == sorted(kept, key=lambda point: point[0])


@given(POINTS, st.integers(1, 40))
def test_bins_hold_every_item_once_and_in_order(points: list[tuple[int, int]], bins: int) -> None:
    filled = list(binned(points, lambda point: point[0], WINDOW, bins))
    assert [item for b in filled for item in b.items] == points
    assert len(filled) <= bins


def test_a_line_that_began_before_the_window_enters_it_with_its_value() -> None:
    assert thinned([(1, 5), (2, 7), (600, 8)], Window(0, 500, 1000), 10) == [(500, 7), (600, 8)]


def test_what_lies_outside_the_window_is_left_out() -> None:
    assert not list(binned([(5, 0), (995, 0)], lambda point: point[0], Window(0, 100, 900), 10))
