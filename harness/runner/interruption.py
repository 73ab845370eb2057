"""Ctrl-C at any moment: the first one ends the run, the following ones must not end the healing."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self

from harness import signals
from harness.runner.reporting import Reporter

_FAILED = signal.SIGUSR1
"""With which a thread wakes the main thread, whatever that is waiting for."""


class Interruption:
    """While entered, the first SIGINT, SIGTERM or SIGHUP raises ``KeyboardInterrupt`` in the main thread.

    From that moment on, or from :meth:`shield` on, only healing and stopping are left to do, so every later
    signal is answered with a line and otherwise ignored. The handler itself changes its mind: there is no gap.
    A signal that is ignored already, as ``nohup`` has it, stays so. A thread that cannot go on ends the run in the same
    way, with :meth:`give_up`.

    Attributes:
        caught: the name of the signal, or None.
        failure: what a thread could not go on for, where that has ended the run; else None.
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
        """From now on take note of a signal, and raise nothing until :meth:`let_in`."""
        self._is_put_off = True

    def let_in(self) -> None:
        """The opposite of :meth:`put_off`.

        Raises:
            KeyboardInterrupt: a signal has come in the meantime.
        """
        self._is_put_off = False
        if self.caught is not None:
            raise KeyboardInterrupt

    def shield(self) -> None:
        """From now on let no signal end what is being done."""
        self._shielded = True

    def give_up(self, failure: BaseException) -> None:
        """Any thread may say that the run cannot go on because of ``failure``; only the first one is listened to."""
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
            raise KeyboardInterrupt

    def _handle(self, number: int, _: FrameType | None) -> None:
        name = signal.Signals(number).name
        is_first = signals.is_first(number)  # or what the first one has raised was swallowed
        if self._ending and not (self.caught and is_first):
            self._report(f"{name}: already healing and stopping; this takes a few seconds.")
            return
        self.caught, self.failure = name, None
        if not self._is_put_off:
            raise KeyboardInterrupt
