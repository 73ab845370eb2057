"""Ctrl-C at any moment: the first one ends the run, the following ones must not end the healing."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Self

from harness.runner.reporting import Reporter

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """While entered, the first SIGINT, SIGTERM or SIGHUP raises ``KeyboardInterrupt`` in the main thread.

    From that moment on, or from :meth:`shield` on, only healing and stopping are left to do, so every later
    signal is answered with a line and otherwise ignored. The handler itself changes its mind: there is no gap.
    A signal that is ignored already, as ``nohup`` has it, stays so.

    Attributes:
        caught: the name of the signal, or None.
    """

    def __init__(self, report: Reporter) -> None:
        self.caught: str | None = None
        self._shielded = False
        self._report = report

    def __enter__(self) -> Self:
        listened = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._handle) for number in listened}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def shield(self) -> None:
        """From now on let no signal end what is being done."""
        self._shielded = True

    def _handle(self, number: int, _: FrameType | None) -> None:
        name = signal.Signals(number).name
        if self._shielded or self.caught is not None:
            self._report(f"{name}: already healing and stopping; this takes a few seconds.")
            return
        self.caught = name
        raise KeyboardInterrupt
