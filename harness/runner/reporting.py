"""The progress messages of a run."""

from __future__ import annotations

from collections.abc import Callable

Reporter = Callable[[str], None]
"""Takes one line without its newline: a phase that begins, a fault injected, proven or healed."""


def silent(line: str) -> None:
    """Prints nothing."""
