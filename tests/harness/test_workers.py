from __future__ import annotations

import time
from concurrent.futures import Future
from multiprocessing import active_children

import pytest

from harness.workers import workers


def prepare() -> None:
    """Nothing."""


def interrupted(sleeping: list[Future[None]]) -> None:
    """Is interrupted while one worker sleeps, and has more to do."""
    with workers(1, prepare) as pool:
        assert pool.submit(abs, -1).result() == 1
        sleeping += [pool.submit(time.sleep, 120) for _ in range(4)]
        raise KeyboardInterrupt


def test_an_interruption_ends_workers_in_the_middle_of_their_work_and_cancels_the_rest() -> None:
    sleeping: list[Future[None]] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(sleeping)
    assert not active_children()
    assert all(one.cancelled() or one.exception() is not None for one in sleeping)


def test_what_is_not_interrupted_is_done() -> None:
    with workers(2, prepare) as pool:
        running = [pool.submit(abs, -number) for number in range(5)]
        assert [one.result() for one in running] == [0, 1, 2, 3, 4]
