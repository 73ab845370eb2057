"""Spells names and values for people and for Kafka; broker processes import it, so it loads no library of others."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def closest(word: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` or, when nothing is close, all that is known."""
    choices = list(known)
    match get_close_matches(word, choices, n=1):
        case [best]:
            return f"did you mean {best!r}?"
        case _:
            return f"known: {', '.join(choices)}."


def as_text(value: object) -> str:
    """A value as Kafka's configuration files and the command line have it: ``true`` for True; a text is itself."""
    if isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)
