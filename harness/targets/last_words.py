"""Finds the lines of a node's log that explain why it ended: the error, not the shutdown that follows it.

Kafka logs the error at level ERROR or FATAL, perhaps with a stack trace, and then many INFO lines of its shutdown. An
uncaught exception has no level.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_LEVEL = re.compile(r"(?:^|[\s\]|,-])(?P<level>FATAL|ERROR|WARN|INFO|DEBUG|TRACE)(?=[\s\]:|]|$)")
_LEVEL_WITHIN = 100
"""The most characters that the time and the level of a line take."""

_ENTRY = re.compile(r"[\[\d]")
"""The beginning of a log entry without a level, as those of the built-in nodes: its time."""

_UNCAUGHT = re.compile(r'Exception in thread "|(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception)(?:: |$)|Error: ')
_CAUSE = "Caused by: "
_MAX_CHARS = 400
_NOTHING = "(its log is empty)"


def last_words(printed: str, last_lines: int = 3) -> str:
    """Why a node has ended, by its output in that life, in one line; without an error, its ``last_lines``."""
    lines = [line for line in printed.splitlines() if line.strip()]
    for gravest in ("FATAL", "ERROR"):
        at = [number for number, line in enumerate(lines) if _level(line) == gravest]
        if at:
            return _told([lines[at[-1]], *_reasons(lines[at[-1] + 1 :])])
    uncaught = [number for number, line in enumerate(lines) if _UNCAUGHT.match(line)]
    if uncaught:
        return _told([lines[uncaught[-1]], *_causes(lines[uncaught[-1] + 1 :])])
    return _told([line for line in lines if not line[0].isspace()][-last_lines:]) or _NOTHING


def _level(line: str) -> str:
    found = _LEVEL.search(line[:_LEVEL_WITHIN])
    return found["level"] if found else ""


def _reasons(following: Sequence[str]) -> list[str]:
    """Of the stack trace after an error: the exception and its root cause."""
    trace = []
    for line in following:
        if _level(line) or _ENTRY.match(line):
            break
        trace.append(line)
    return [*trace[:1], *_causes(trace[1:])] if trace and not trace[0][0].isspace() else []


def _causes(trace: Sequence[str]) -> list[str]:
    return [line for line in trace if line.startswith(_CAUSE)][-1:]


def _told(lines: Sequence[str]) -> str:
    return " | ".join(line.strip()[:_MAX_CHARS] for line in lines)
