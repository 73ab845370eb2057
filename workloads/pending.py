"""An order carried out by a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

ResultT = TypeVar("ResultT")


class Threaded(Generic[ResultT]):
    """Implements :class:`harness.workload.Pending`: does ``work`` in a thread, which starts at once."""

    def __init__(self, work: Callable[[], ResultT]) -> None:
        self._work = work
        self._results: list[ResultT] = []
        self._failures: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def result(self) -> ResultT | None:
        """See :class:`harness.workload.Pending`."""
        if self._failures:
            raise self._failures[0]
        return self._results[0] if self._results else None

    def wait(self, timeout_s: float) -> None:
        """Wait until it is done, but no longer than ``timeout_s``."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            self._results.append(self._work())
        except BaseException as failure:  # noqa: BLE001 (raised again where the result is looked at)
            self._failures.append(failure)
