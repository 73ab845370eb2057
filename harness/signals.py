"""Handles the signals that end seawall, from the first instruction of a command to its last.

While Python imports the command, a signal ends the process at once. Later the first one raises ``KeyboardInterrupt`` in
the main thread, and a line answers every other one. At the end, when the result is decided, signals are ignored. This
module imports nothing slow.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals on which seawall heals, stops and exits."""

EXIT_CODE = 130
"""See :class:`harness.errors.ExitCode`."""

_AGAIN_S = 0.02
_PR_SET_PDEATHSIG = 1


class _Caught:
    """The signals to this process so far.

    Attributes:
        name: of the first signal; empty: none has arrived.
        is_lost: whether the ``KeyboardInterrupt`` that it raised was swallowed, by a destructor or by a callback.
        steps: how many steps are being made that may not end halfway, one within the other.
        is_due: whether a handler waits for them.
    """

    name = ""
    is_lost = False
    steps = 0
    is_due = False


_caught = _Caught()


def listened() -> list[signal.Signals]:
    """Those of :data:`ENDING` that are not ignored, as ``nohup`` has it."""
    return [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]


def leave_at_once() -> None:
    """From now on a signal ends the process, with a sentence."""
    for number in listened():
        signal.signal(number, _leave)


def leave_silently() -> None:
    """From now on a signal ends the process, a worker whose parent prints the sentence."""
    for number in listened():
        signal.signal(number, _leave_silently)


def ignore() -> None:
    """From now on ignore signals."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def die_with_parent() -> None:
    """Let the kernel kill this process, a worker of another one, when that dies (``PR_SET_PDEATHSIG``)."""
    import ctypes  # noqa: PLC0415 - takes time, see above
    import multiprocessing  # noqa: PLC0415

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():
        os._exit(EXIT_CODE)


def caught() -> str:
    """The name of the first signal to this process; empty: none."""
    return _caught.name


def is_first(number: int) -> bool:
    """Record a signal; returns whether the handler has to raise ``KeyboardInterrupt``."""
    if _caught.name and not _caught.is_lost:
        return False
    _caught.name, _caught.is_lost = signal.Signals(number).name, False
    return True


def interrupt() -> None:
    """Raise ``KeyboardInterrupt`` for a handler, or let the present step of simulated time do that at its end."""
    if not _caught.steps:
        raise KeyboardInterrupt
    _caught.is_due = True


def is_due() -> bool:
    """Whether a handler waits for the end of the present step."""
    return _caught.is_due


def step_begins() -> None:
    """From now on let :func:`interrupt` wait: halfway through a step a simulated node has stored half of a change."""
    _caught.steps += 1


def step_ends() -> None:
    """The opposite of :func:`step_begins`.

    Raises:
        KeyboardInterrupt: a handler has waited for it.
    """
    _caught.steps -= 1
    if _caught.is_due and not _caught.steps:
        _caught.is_due = False
        raise KeyboardInterrupt


@contextmanager
def raised_once(say: Callable[[str], None], *, to_the_end: bool) -> Iterator[None]:
    """While entered, the first signal raises ``KeyboardInterrupt`` in the main thread; ``say`` answers the others.

    Args:
        say: called with a line.
        to_the_end: whether signals are ignored afterwards, while Python closes; else the old handlers return.
    """

    def handle(number: int, _: FrameType | None) -> None:
        if is_first(number):
            interrupt()
            return
        say(f"{signal.Signals(number).name}: already healing and stopping; this takes a few seconds.")

    _caught.name, _caught.is_lost = "", False
    before = {number: signal.signal(number, handle) for number in listened()}
    hook, sys.unraisablehook = sys.unraisablehook, _raise_what_was_swallowed(sys.unraisablehook)
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if to_the_end else handler)


@contextmanager
def withheld() -> Iterator[None]:
    """Let no signal come meanwhile, to this process or to those that it starts; this one gets it afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def postponed() -> Iterator[None]:
    """Handle the signals that arrive meanwhile afterwards: the caller knows by then what it has made inside.

    For one statement or two. Outside of the main thread, which alone handles signals, without effect.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    with withheld():
        before = {number: signal.signal(number, lambda it, _: arrived.append(it)) for number in listened()}
    try:
        yield
    finally:
        with withheld():
            for number, handler in before.items():
                signal.signal(number, handler)
            for one in arrived:
                signal.raise_signal(one)


def _raise_what_was_swallowed(
    hook: Callable[[sys.UnraisableHookArgs], object],
) -> Callable[[sys.UnraisableHookArgs], object]:
    """Send the signal once more where Python would only print that its exception was ignored."""

    def resend(unraisable: sys.UnraisableHookArgs) -> None:
        if not (_caught.name and issubclass(unraisable.exc_type, KeyboardInterrupt)):
            hook(unraisable)
            return
        _caught.is_lost = True
        again = (threading.main_thread().ident or 0, signal.Signals[_caught.name])
        threading.Timer(_AGAIN_S, signal.pthread_kill, again).start()

    return resend


def _leave(number: int, frame: FrameType | None) -> None:
    with suppress(OSError):
        os.write(2, b"seawall: interrupted.\n")
    _leave_silently(number, frame)


def _leave_silently(_: int, __: FrameType | None) -> None:
    os._exit(EXIT_CODE)
