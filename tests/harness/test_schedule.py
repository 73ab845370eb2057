from __future__ import annotations

from collections import Counter
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from harness.schedule import shuffled_rounds

WEIGHTS = st.lists(st.integers(1, 4), min_size=1, max_size=6)
SEEDS = st.integers(0, 2**63 - 1)


@given(WEIGHTS, SEEDS, st.integers(0, 3))
def test_every_fault_comes_up_in_every_round_as_often_as_it_weighs(weights: list[int], seed: int, rounds: int) -> None:
    size = sum(weights)
    drawn = list(islice(shuffled_rounds(weights, seed), size * (rounds + 1)))
    assert Counter(drawn[size * rounds :]) == dict(enumerate(weights))


@given(WEIGHTS, SEEDS)
def test_the_same_seed_draws_the_same_rounds(weights: list[int], seed: int) -> None:
    first, second = (list(islice(shuffled_rounds(weights, seed), 40)) for _ in range(2))
    assert first == second


def test_another_seed_draws_other_rounds() -> None:
    assert len({tuple(islice(shuffled_rounds([1] * 6, seed), 6)) for seed in range(20)}) > 10
