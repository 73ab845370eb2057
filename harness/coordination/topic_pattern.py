"""Patterns of topic names by which members subscribe (KIP-848): a part of RE2's syntax, matched in linear time.

They are made of characters, ``.``, classes, escapes, groups and alternatives, each of which may be followed by ``*``,
``+`` or ``?``; ``^`` and ``$`` are the ends of the name, all of which has to match. Counted repetitions and flags are
not understood. Python's own matcher would take exponential time for some patterns, so no client's pattern reaches it.

A pattern is compiled to a program for Thompson's automaton (as in Pike's ``sam``, and in RE2).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

MAX_PATTERN = 1_024
"""Characters of a pattern, inclusive."""

_MAX_DEPTH = 20
_ATOM = re.compile(r"\\[dDsSwW]|\\[^A-Za-z0-9]|\[\^?\]?[^\]]*\]|[^\\\[\](){}|*+?^$]", re.ASCII)


class BadPattern(ValueError):
    """A text is no pattern, or not one of those that are understood."""


class _Step(NamedTuple):
    """An instruction: to match a ``character``, to go on at ``to``, or at either of two, or at an end of the name."""

    does: Literal["match", "jump", "begin", "end"]
    character: re.Pattern[str] | None = None
    to: tuple[int, ...] = ()


class TopicPattern:
    """A pattern.

    Raises:
        BadPattern: ``text`` is none.
    """

    def __init__(self, text: str) -> None:
        if len(text) > MAX_PATTERN:
            raise BadPattern(f"A pattern has {MAX_PATTERN} characters at the most, not {len(text)}.")
        self._steps = _Parser(text).program()

    def matches(self, name: str) -> bool:
        """Whether all of ``name`` matches."""
        reached = self._closed({0}, 0, name)
        for position, character in enumerate(name):
            ahead = set()
            for at in reached:
                wanted = self._steps[at].character if at < len(self._steps) else None
                if wanted is not None and wanted.fullmatch(character):
                    ahead.add(at + 1)
            reached = self._closed(ahead, position + 1, name)
        return len(self._steps) in reached

    def _closed(self, reached: set[int], position: int, name: str) -> set[int]:
        """The instructions that may be next, those included that jumps lead to."""
        found: set[int] = set()
        waiting = list(reached)
        while waiting:
            at = waiting.pop()
            if at in found:
                continue
            found.add(at)
            step = self._steps[at] if at < len(self._steps) else _Step("match")
            if step.does == "jump":
                waiting += step.to
            elif (step.does, position) in (("begin", 0), ("end", len(name))):
                waiting.append(at + 1)
        return found


@lru_cache(maxsize=64)
def topic_pattern(text: str) -> TopicPattern:
    """The same, kept for the next heartbeat.

    Raises:
        BadPattern: ``text`` is none.
    """
    return TopicPattern(text)


class _Parser:
    """Reads a pattern from left to right; jumps are relative until the program is complete."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._depth = 0

    def program(self) -> list[_Step]:
        relative = self._alternatives()
        if self._position < len(self._text):
            raise self._refused()
        return [step._replace(to=tuple(at + one for one in step.to)) for at, step in enumerate(relative)]

    def _alternatives(self) -> list[_Step]:
        sequences = [self._sequence()]
        while self._takes("|"):
            sequences.append(self._sequence())
        steps = sequences.pop()
        for one in reversed(sequences):
            split = _Step("jump", to=(1, len(one) + 2))
            steps = [split, *one, _Step("jump", to=(len(steps) + 1,)), *steps]
        return steps

    def _sequence(self) -> list[_Step]:
        steps: list[_Step] = []
        while self._position < len(self._text) and self._text[self._position] not in "|)":
            steps += self._repeated(self._one())
        return steps

    def _repeated(self, steps: list[_Step]) -> list[_Step]:
        size = len(steps)
        if self._takes("*"):
            return [_Step("jump", to=(1, size + 2)), *steps, _Step("jump", to=(-size - 1,))]
        if self._takes("+"):
            return [*steps, _Step("jump", to=(-size, 1))]
        if self._takes("?"):
            return [_Step("jump", to=(1, size + 1)), *steps]
        return steps

    def _one(self) -> list[_Step]:
        if self._takes("^"):
            return [_Step("begin")]
        if self._takes("$"):
            return [_Step("end")]
        if self._takes("("):
            return self._group()
        atom = _ATOM.match(self._text, self._position)
        if atom is None:
            raise self._refused()
        try:
            character = re.compile(atom[0], re.ASCII)
        except re.error as error:
            raise self._refused() from error
        self._position = atom.end()
        return [_Step("match", character)]

    def _group(self) -> list[_Step]:
        if self._takes("?") and not self._takes(":"):
            raise self._refused()
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise BadPattern(f"The pattern {self._text!r} has more than {_MAX_DEPTH} groups in one another.")
        steps = self._alternatives()
        self._depth -= 1
        if not self._takes(")"):
            raise self._refused()
        return steps

    def _takes(self, character: str) -> bool:
        found = self._text[self._position : self._position + 1] == character
        self._position += found
        return found

    def _refused(self) -> BadPattern:
        return BadPattern(f"The pattern {self._text!r} is not understood at {self._text[self._position :]!r}.")
