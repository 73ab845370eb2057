"""Threads of a workload: they end together, their failures are not lost, and their patience is limited."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Workers:
    """Threads that run until :attr:`stopping` is set.

    Args:
        failed: told, in the thread, what has ended it before its time.

    Attributes:
        stopping: set once, by :meth:`stop`; the threads watch it.
    """

    def __init__(self, failed: Callable[[BaseException], None] = lambda failure: None) -> None:
        self.stopping = threading.Event()
        self._failed = failed
        self._threads: list[threading.Thread] = []
        self._failures: list[BaseException] = []

    def start(self, work: Callable[[], None]) -> None:
        """Run ``work`` in a thread of its own."""
        thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        """Ask every thread to end and wait for it; idempotent.

        Raises:
            BaseException: the first exception that ended a thread: it was a bug, and the load was not what it
                should have been.
        """
        self.stopping.set()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        if self._failures:
            raise self._failures.pop(0)

    def join(self, timeout_s: float) -> bool:
        """Wait until every thread has ended by itself, but no longer than ``timeout_s``; whether they have.

        Raises:
            BaseException: the first exception that ended a thread.
        """
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if self._failures:
            raise self._failures.pop(0)
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as failure:  # noqa: BLE001 (handed to whoever stops the crew)
            self._failures.append(failure)
            self._failed(failure)


class Deadline:
    """How long threads go on trying."""

    def __init__(self, timeout_s: float) -> None:
        self._deadline = time.monotonic() + timeout_s

    def left_s(self) -> float:
        """Seconds left; 0 when there are none."""
        return max(0.0, self._deadline - time.monotonic())
