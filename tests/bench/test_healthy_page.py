"""The page of healthy runs, and what runs beside them."""

from __future__ import annotations

from multiprocessing import active_children

import pytest

from tests.bench.healthy_page import Judged, document
from tests.bench.healthy_runs import beside, cells


def judged(seed: int, outcome: str = "pass", why: str = "") -> Judged:
    return Judged(seed, "2.1", 1, (), outcome, (), why, faults=3, sends=1000, acknowledged=990)


def test_a_section_is_written_again_and_the_other_one_stays() -> None:
    before = document("", "simulated", [judged(0)], "Once.")
    page = document(before, "builtin", [judged(1)], "Twice.")
    assert page.index("## Real processes\n\nTwice.") < page.index("## Virtual time\n\nOnce.")
    assert document(page, "builtin", [judged(1)], "Twice.") == page


def test_what_was_not_judged_is_counted_and_named_and_is_no_alarm() -> None:
    page = document("", "builtin", [judged(1), judged(2, "invalid", "f001 was not proven."), judged(3, "crash")], "")
    assert "| all |  | 3 | 9 | 3,000 | 2,970 | 1 | 1 |" in page
    assert "invalid, seed 2 (2.1, `min.insync.replicas=1`): f001 was not proven." in page


def test_a_seed_stands_for_the_same_run_wherever_the_draw_begins() -> None:
    drawn = cells("simulated", 0, "promised")
    assert [next(drawn) for _ in range(20)][17] == next(cells("simulated", 17, "promised"))


def test_busy_loops_are_ended_when_a_run_fails() -> None:
    before = set(active_children())

    def fail() -> None:
        with beside(1):
            assert set(active_children()) - before
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not set(active_children()) - before
