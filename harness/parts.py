"""Calls rules and questions with the parts of the evidence that their parameters name, so that none is given all of it.

A rule says by the types of its parameters what it rests on, as a fixture of pytest does by their names:
``def unseen(records: Records, partitions: Partitions)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from inspect import signature
from types import MappingProxyType
from typing import TypeVar, get_type_hints

PartT = TypeVar("PartT")
AnswerT = TypeVar("AnswerT")


class Parts:
    """Parts of the evidence, one of each type."""

    def __init__(self, *parts: object) -> None:
        self._by_type = {type(part): part for part in parts}
        assert len(self._by_type) == len(parts), "two parts are of one type"

    def __iter__(self) -> Iterator[object]:
        return iter(self._by_type.values())

    def of(self, kind: type[PartT]) -> PartT:
        """The part of a type.

        Raises:
            KeyError: there is none.
        """
        part = self._by_type[kind]
        assert isinstance(part, kind)
        return part

    def beside(self, *parts: object) -> Parts:
        """These, and more."""
        return Parts(*self, *parts)

    def given_to(self, rule: Callable[..., AnswerT]) -> AnswerT:
        """What ``rule`` answers when it is called with the parts that its parameters name.

        Raises:
            KeyError: it names a type of which there is no part.
        """
        return rule(**{name: self.of(kind) for name, kind in named_by(rule).items()})


@cache
def named_by(rule: Callable[..., object]) -> Mapping[str, type]:
    """The parameters of ``rule``, and the types of them.

    Raises:
        KeyError: a parameter has no annotation.
        NameError: an annotation is a name that the rule's module does not have at run time.
    """
    hints = get_type_hints(rule)
    return MappingProxyType({name: hints[name] for name in signature(rule).parameters})
