from __future__ import annotations

import pytest

from workloads.workers import Workers


def test_threads_end_when_they_are_told_to() -> None:
    crew, ended = Workers(), []

    def work() -> None:
        crew.stopping.wait()
        ended.append(1)

    for _ in range(3):
        crew.start(work)
    crew.stop()
    crew.stop()
    assert ended == [1, 1, 1]


def test_a_thread_that_broke_is_not_forgotten() -> None:
    crew = Workers()
    crew.start(lambda: 1 // 0)  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError):
        crew.stop()


def test_whoever_wants_to_know_hears_at_once_that_a_thread_broke() -> None:
    heard: list[BaseException] = []
    crew = Workers(heard.append)
    crew.start(lambda: 1 // 0)  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError) as broken:
        crew.stop()
    assert heard == [broken.value]
