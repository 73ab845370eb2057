"""Every error that seawall reports, with its exit code.

::

    SeawallError                 one sentence, one remedy, one exit code; never shown with a traceback
    ├── UsageError          64   the command line or a scenario file is wrong
    ├── EnvironmentFault     4   this machine or the target cannot do what was asked
    │   ├── NoAnswer         4   a node did not answer, or not intelligibly
    │   └── NoSuchProbe      4   the target has no such probe
    ├── InvalidRun           3   a fault was not proven, or the history is incomplete
    └── Interrupted        130   the user stopped the run; everything was healed first

A violation (exit 1) and an inconclusive check (exit 2) are verdicts, not errors: see ``harness.checker``.
A broken invariant of seawall's own raises ``AssertionError``. Like every unexpected exception it ends the program with
a traceback and exit 70, which is no verdict; one of a plugin's code is an ``EnvironmentFault`` (``harness.plugins``).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """The documented exit codes, the same for every command."""

    PASS = 0
    VIOLATION = 1
    INCONCLUSIVE = 2
    INVALID = 3
    ENVIRONMENT = 4
    USAGE = 64
    INTERNAL = 70
    INTERRUPTED = 130


_PRECEDENCE = (ExitCode.VIOLATION, ExitCode.INVALID, ExitCode.INCONCLUSIVE, ExitCode.ENVIRONMENT)


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """The exit code of several runs together: 1 before 3 before 2 before 4, and 0 when all passed."""
    present = set(codes)
    return next((code for code in _PRECEDENCE if code in present), ExitCode.PASS)


class SeawallError(Exception):
    """An error for the user: what is wrong with which value, and what to do about it.

    Attributes:
        sentence: names the thing and the value at fault.
        remedy: what to do; may be empty.
    """

    exit_code: ExitCode = ExitCode.ENVIRONMENT

    def __init__(self, sentence: str, remedy: str = "") -> None:
        super().__init__(f"{sentence} {remedy}".rstrip())
        self.sentence = sentence
        self.remedy = remedy


class UsageError(SeawallError):
    """The command line or a scenario file is wrong."""

    exit_code = ExitCode.USAGE


class EnvironmentFault(SeawallError):
    """This machine or the target cannot do what was asked."""

    exit_code = ExitCode.ENVIRONMENT


class NoAnswer(EnvironmentFault):
    """A node did not answer a request: it is dead, paused, or not up yet, or it uses another protocol."""


class NoSuchProbe(EnvironmentFault):
    """The target has no such probe."""


class InvalidRun(SeawallError):
    """The run proves nothing: a fault did not take effect, or the history has a gap."""

    exit_code = ExitCode.INVALID


class Interrupted(SeawallError):
    """The user stopped the run; every fault has been healed and every process stopped."""

    exit_code = ExitCode.INTERRUPTED


def came_of_an_interruption(error: BaseException) -> bool:
    """Whether ``error`` is an interruption, or was raised while one propagated."""
    before = error.__cause__ or error.__context__
    return isinstance(error, KeyboardInterrupt) or (before is not None and came_of_an_interruption(before))
