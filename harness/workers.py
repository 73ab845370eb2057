"""A pool of worker processes that ends at once on an interruption."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context


@contextmanager
def workers(jobs: int, prepare: Callable[[], None]) -> Iterator[ProcessPoolExecutor]:
    """``jobs`` worker processes, each of which calls ``prepare`` first.

    When the block raises, the workers are terminated, and what they had not begun is cancelled.
    """
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=prepare)
    try:
        yield pool
    except BaseException:
        for worker in active_children():
            worker.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
