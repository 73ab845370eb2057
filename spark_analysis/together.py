"""Doing several things at the same time, since Spark plans on one processor what it computes on all of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def together(tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    """What ``tasks`` return, in their order; the first failure of one of them is raised."""
    pool = ThreadPoolExecutor(max(2, os.cpu_count() or 2), thread_name_prefix="spark")
    try:
        return [future.result() for future in [pool.submit(task) for task in tasks]]
    finally:
        # Whoever is interrupted does not wait for what is still running.
        pool.shutdown(wait=False, cancel_futures=True)
