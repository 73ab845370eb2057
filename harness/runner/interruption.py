"""Handles Ctrl-C: the first signal ends the run, later ones do not interrupt the healing."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self

from harness import signals
from harness.runner.reporting import Reporter

_FAILED = signal.SIGUSR1
"""The signal by which a thread wakes the main thread from any wait."""


class Interruption:
    """While entered, the first SIGINT, SIGTERM or SIGHUP raises ``KeyboardInterrupt`` in the main thread.

    After that, or after :meth:`shield`, only healing and stopping are left, so it answers every later signal with a
    line and ignores it. One handler does both, without a gap. A signal that is already ignored, as by ``nohup``, stays
    so. A thread that fails ends the run in the same way, by :meth:`give_up`.

    Attributes:
        caught: the name of the signal, or None.
        failure: the exception of a thread that has ended the run; else None.
    """

    def __init__(self, report: Reporter) -> None:
        self.caught: str | None = None
        self.failure: BaseException | None = None
        self._shielded = False
        self._is_put_off = False
        self._entered = False
        self._entering = threading.Lock()
        self._report = report

    def __enter__(self) -> Self:
        self._before: dict[signal.Signals, Any] = {
            number: signal.signal(number, self._handle) for number in signals.listened()
        }
        self._before[_FAILED] = signal.signal(_FAILED, self._end)
        self._entered = True
        return self

    def __exit__(self, *_: object) -> None:
        with self._entering:
            self._entered = False
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def put_off(self) -> None:
        """From now on record a signal, and raise nothing until :meth:`let_in`."""
        self._is_put_off = True

    def let_in(self) -> None:
        """The opposite of :meth:`put_off`.

        Raises:
            KeyboardInterrupt: a signal has arrived in the meantime.
        """
        self._is_put_off = False
        if self.caught is not None:
            raise KeyboardInterrupt

    def shield(self) -> None:
        """From now on ignore signals."""
        self._shielded = True

    def give_up(self, failure: BaseException) -> None:
        """End the run because of ``failure``; any thread may call it, and the first call counts."""
        with self._entering:
            if self._entered and not self._ending and self.failure is None:
                self.failure = failure
                signal.pthread_kill(threading.main_thread().ident or 0, _FAILED)

    @property
    def _ending(self) -> bool:
        return self._shielded or self.caught is not None

    def _end(self, _: int, __: FrameType | None) -> None:
        if self.failure is not None and not self._ending:
            self._shielded = True
            signals.interrupt()

    def _handle(self, number: int, _: FrameType | None) -> None:
        name = signal.Signals(number).name
        is_first = signals.is_first(number)  # or a library swallowed the exception of the first one
        if self._ending and not (self.caught and is_first):
            self._report(f"{name}: already healing and stopping; this takes a few seconds.")
            return
        self.caught, self.failure = name, None
        if not self._is_put_off:
            signals.interrupt()
