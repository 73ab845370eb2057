"""Tells GitHub Actions what a night found: annotations of the job, and the summary of the step.

The limits, as GitHub's documentation of workflow commands and the runner's source (``ExecutionContext.cs``,
``FileCommandManager.cs``) have them:

* a step shows 10 annotations of each type, a job 50 of all; the runner drops further ones without a word;
* an annotation's message is cut after 4,096 characters, and its title has at most 255;
* the summary of a step has at most 1 MiB, else all of it is discarded; a job shows those of 20 steps.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from harness.errors import EnvironmentFault
from harness.nightly import prose
from harness.nightly.conclusion import ERRORS, FAILURES, SKIPS, gravity
from harness.nightly.result import CellResult

MOST_ANNOTATIONS = 10
"""Of each type, per step."""

MOST_MESSAGE = 4_096
MOST_TITLE = 255

MOST_SUMMARY_BYTES = 1 << 20
"""Per step, what the step wrote before included."""

_TYPES = (("error", FAILURES), ("warning", ERRORS), ("notice", SKIPS))


def is_here(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process runs in a job of GitHub Actions."""
    return environment.get("GITHUB_ACTIONS") == "true"


def commands(results: Sequence[CellResult]) -> Iterator[str]:
    """Workflow commands, one a line, gravest cells first; the last of a type counts what has no room.

    Failures are errors, cells that decided nothing are warnings, and all skipped cells are one notice.
    """
    for type_, outcomes in _TYPES:
        cells = sorted((one for one in results if one.outcome in outcomes), key=gravity)
        if type_ == "notice":
            if cells:
                yield _command(type_, f"{prose.counts(cells)}", _reasons(cells))
            continue
        shown = cells if len(cells) <= MOST_ANNOTATIONS else cells[: MOST_ANNOTATIONS - 1]
        yield from (_command(type_, prose.named(one), _message(one)) for one in shown)
        if more := cells[len(shown) :]:
            yield _command(type_, f"{len(more):,} more", f"{prose.counts(more)}: see the summary of this step.")


def append_summary(text: Callable[[int], str], environment: Mapping[str, str] = os.environ) -> None:
    """Append to ``$GITHUB_STEP_SUMMARY`` what ``text`` makes for the bytes that are left, if there is such a file.

    Raises:
        EnvironmentFault: the file cannot be written.
    """
    if not (name := environment.get("GITHUB_STEP_SUMMARY")):
        return
    path = Path(name)
    try:
        size = path.stat().st_size if path.exists() else 0
        written = text(MOST_SUMMARY_BYTES - size).encode(errors="replace")
        if size + len(written) <= MOST_SUMMARY_BYTES:
            with path.open("ab") as file:
                file.write(written)
    except OSError as error:
        raise EnvironmentFault(f"$GITHUB_STEP_SUMMARY ({path}) cannot be written: {error.strerror}.") from error


def _message(result: CellResult) -> str:
    end = f"\n{result.reproduce}"
    words = "\n".join((prose.headline(result), *result.story))
    room = MOST_MESSAGE - len(end)
    return prose.shortened(words, room) + end if room > 0 else prose.shortened(words, MOST_MESSAGE)


def _reasons(cells: Sequence[CellResult]) -> str:
    reasons = dict.fromkeys(one.reason for one in cells if one.reason)
    return prose.shortened("\n".join(reasons) or "See the summary of this step.", MOST_MESSAGE)


def _command(type_: str, title: str, message: str) -> str:
    """``::error title=...::message``, with everything escaped that would end it or begin another command."""
    return f"::{type_} title={_property(prose.shortened(title, MOST_TITLE))}::{_data(message)}"


def _data(text: str) -> str:
    return _printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _printable(text: str) -> str:
    """Without what ends a line for some reader of the log, or cannot be encoded."""
    kept = "".join(one if one in "\r\n\t" or one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
    return kept.encode(errors="replace").decode()
