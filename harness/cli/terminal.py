"""Prints for the user: results to standard output, progress to standard error; there, below it, a live status."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, cast

from rich.console import Console, RenderableType
from rich.text import Text

if TYPE_CHECKING:
    from rich.live import Live

_WIDTH_OF_A_FILE = 120
_PER_SECOND = 4
_LINES_EVERY_S = 30.0
_DUMB = frozenset({"", "dumb", "unknown"})

Say = Callable[[str], None]
"""Called with one line per phase."""


class _Voice:
    """What standard error gets.

    Attributes:
        is_quiet: whether it gets errors only.
        live: the live status that is shown now.
    """

    is_quiet = False
    live: Live | None = None


def be_quiet(quiet: bool) -> None:
    """From now on :func:`remark` and progress print nothing, or something again."""
    _Voice.is_quiet = quiet


def stdout() -> Console:
    """A console for results, wide enough for tables when it is a file or a pipe."""
    return Console(width=None if sys.stdout.isatty() else _WIDTH_OF_A_FILE, soft_wrap=False)


def stderr() -> Console:
    """The same on standard error, for results when standard output is for a program."""
    return Console(stderr=True, width=None if sys.stderr.isatty() else _WIDTH_OF_A_FILE, soft_wrap=False)


def progress() -> Say:
    """A function to call at the start of each phase; it prints a line with the seconds since now."""
    started = time.monotonic()

    def say(phase: str) -> None:
        remark(f"{time.monotonic() - started:6.1f} s  {phase}")

    return say


def remark(line: str) -> None:
    """As :func:`tell`, for what is no error."""
    if not _Voice.is_quiet:
        tell(line)


def tell(line: str) -> None:
    """Write a line to standard error; a closed terminal or pipe does not end the command."""
    if (live := _Voice.live) is not None:
        live.console.print(Text(line), soft_wrap=True)
    else:
        _put(f"{line}\n")


def is_live() -> bool:
    """Whether standard error is a terminal that can show a live status, and ``--quiet`` was not given."""
    dumb = os.environ.get("TERM", "").lower() in _DUMB
    return not _Voice.is_quiet and not dumb and sys.stderr.isatty()


@contextmanager
def shown(render: Callable[[], RenderableType], in_a_line: Callable[[], str] | None = None) -> Iterator[None]:
    """While entered, show ``render()`` below all other lines, redrawn several times a second.

    Elsewhere than in a terminal a line ``in_a_line()`` every half a minute stands for it; None: nothing does. Both are
    called from a thread that does not keep the process alive. The cursor stays visible, so that no end of this process
    leaves a terminal without one.
    """
    if not is_live():
        with _said_again(in_a_line):
            yield
        return
    from rich.live import Live

    console = Console(file=cast("IO[str]", _StandardError()), force_terminal=True, highlight=False)
    live = Live(
        get_renderable=_never_failing(render),
        console=console,
        refresh_per_second=_PER_SECOND,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        vertical_overflow="crop",
    )
    try:
        live.start()
        console.show_cursor(True)
        _Voice.live = live
        yield
    finally:
        _Voice.live = None
        live.stop()


def _never_failing(render: Callable[[], RenderableType]) -> Callable[[], RenderableType]:
    """``render``, or what it returned before where it fails: what it looks at changes meanwhile."""
    last: list[RenderableType] = [Text()]

    def rendered() -> RenderableType:
        with suppress(Exception):
            last[0] = render()
        return last[0]

    return rendered


@contextmanager
def _said_again(in_a_line: Callable[[], str] | None) -> Iterator[None]:
    if in_a_line is None or _Voice.is_quiet:
        yield
        return
    over = threading.Event()

    def say_again() -> None:
        while not over.wait(_LINES_EVERY_S):
            remark(in_a_line())

    threading.Thread(target=say_again, name="progress", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _put(text: str) -> None:
    """Write ``text`` to standard error, unless its reader has gone."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except RuntimeError:
        pass  # a signal handler in the midst of another line, which Python refuses
    except OSError:
        _stop_telling()


class _StandardError:
    """The present ``sys.stderr`` as a file, of which a closed terminal or pipe is no error."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        """Write and flush it."""
        _put(text)
        return len(text)

    def flush(self) -> None:
        """Nothing is left to be flushed."""

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return sys.stderr.isatty()


def _stop_telling() -> None:
    """Discard standard error, including what Python flushes at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stderr.fileno())
    os.close(nowhere)
