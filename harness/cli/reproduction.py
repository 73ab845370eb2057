"""Builds the command that reproduces a run: the last line of every run that does not end with 0."""

from __future__ import annotations

import shlex
from collections.abc import Sequence


class Reproduction:
    """The command line as given, until a command makes it more precise, by the drawn seed, for example."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = list(words)

    def fix(self, option: str, value: object) -> None:
        """Append ``option value`` unless the command line already has the option."""
        if not any(word == option or word.startswith(f"{option}=") for word in self._words):
            self._words += [option, str(value)]

    def replace(self, *words: str) -> None:
        """Use these words after ``seawall`` instead."""
        self._words = list(words)

    def without(self, *flags: str) -> str:
        """As text, without these words."""
        return shlex.join(["seawall", *(word for word in self._words if word not in flags)])

    def __str__(self) -> str:
        return shlex.join(["seawall", *self._words])
