"""Parses and writes a line of a Jepsen history: an operation's map in EDN, as far as Kafka histories use it.

One regular expression reads a line field by field; a collection is cut out by its brackets, and parsed only if it is
needed. Vectors and maps of integers and keywords differ from JSON in little more than their commas, so they are
translated and left to :mod:`json`, the fastest parser that Python has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from harness.errors import InvalidRun

_FIELD = re.compile(r"[\s,]*:([\w\-?./!*+]+)[\s,]+(?:(-?\d+|:[^\s,\[\]{}()\";]+|nil|true|false)(?=[\s,}\])])|)")
_USUAL = re.compile(
    r"\{:index (\d{1,19}), :time (\d{1,19}), :type :(\w+), :process (-?\d+|:\w+), :f :([\w\-]+), "
    r":value ([^\"#]*)\}\s*\Z"
)
"""A line with the usual fields in the usual order; no further one follows if there is no ``, :``."""

_NEXT = re.compile(r"[\s,]*")
_BRACKETS = re.compile(r"\"(?:[^\"\\]|\\.)*\"|\\.|[\[({]|[\])}]")
_ATOM = re.compile(r"(?:#[\w.\-/]+\s*)?(?:\"(?:[^\"\\]|\\.)*\"|\\?[^\s,\[\]{}()\";]+)?")
_TAG = re.compile(r"\s*(?:#[\w.\-/]+\s*)?\{")
_PLAIN = str.maketrans({"{": "[", "}": "]", ",": " "})
_KNOWN = re.compile(r"(?<![^\s,\[\]{}])(?:-?\d+|:poll|:send|nil)(?=[\s,\[\]{}]|$)|[\[\]{}]")

_KEYS = re.compile(r"(?:\[|\(|#\{)((?:[\s,]*-?\d{1,19}(?=[\s,\])}]))*)[\s,]*[\])}]")
_REBALANCES = frozenset({"assigned", "revoked", "lost"})

FORM = "One operation per line is expected: a map in EDN, with no comment and nothing around it."


class Line(NamedTuple):
    """The fields of an operation that an import needs; see the :mod:`package <harness.jepsen>`.

    Attributes:
        number: of the line in the file, from 1.
        position, time: ``:index`` and ``:time``; None where the line has none.
        process: as it is written: a number, or ``:nemesis``.
        value: the text of the value.
        error: the text of the error; None without one.
        rebalances: the text of the rebalance log; empty without one.
        seeks: whether an assign starts from the beginning of its partitions.
    """

    number: int
    position: int | None
    time: int | None
    type: str
    process: str
    f: str
    value: str
    error: str | None
    rebalances: str
    seeks: bool


def read_line(text: str, number: int) -> Line:
    """The operation on line ``number`` of a history.

    Raises:
        InvalidRun: the line ends within an operation, or is none; names the line.
    """
    usual = _USUAL.match(text)
    if usual is not None and ", :" not in usual[6]:
        index, time, kind, process, f, value = usual.groups()
        return Line(number, int(index), int(time), kind, process, f, value, None, "", seeks=False)
    fields = _fields(text, number)
    try:
        return Line(
            number,
            _integer(fields.get("index")),
            _integer(fields.get("time")),
            fields["type"][1:],
            fields["process"],
            fields["f"][1:],
            fields.get("value", "nil"),
            fields.get("error"),
            fields.get("rebalance-log", ""),
            fields.get("seek-to-beginning?") == "true",
        )
    except KeyError as error:
        raise InvalidRun(f"line {number} has no :{error.args[0]}.") from error
    except ValueError as error:
        raise InvalidRun(f"line {number}: :index or :time is no integer.") from error


def micro_operations(line: Line) -> list[list[Any]]:
    """The micro-operations of a send, a poll or a transaction, maps as flat lists.

    Examples:
        ``[[:send 4 [0 17]] [:poll {4 [[0 17]]}]]`` is ``[["send", 4, [0, 17]], ["poll", [4, [[0, 17]]]]]``.

    Raises:
        InvalidRun: the value has a token that no such operation has; names the line and the token.
    """
    text = ",".join(line.value.translate(_PLAIN).split())
    text = text.replace(":poll", '"poll"').replace(":send", '"send"').replace("nil", "null")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, list) and all(isinstance(mop, list) and mop for mop in found):
        return found
    if any(line.value.count(left) != line.value.count(right) for left, right in ("[]", "{}")):
        raise _cut_off(line.number)
    raise InvalidRun(f"line {line.number}: {_strange(line.value)!r} is not part of a {line.f}.")


def keys(line: Line) -> list[int]:
    """The keys that an assign or a subscribe names.

    Raises:
        InvalidRun: the value is no collection of integers; names the line and the value.
    """
    return _keys(line.value, line.number)


def rebalances(line: Line) -> list[tuple[str, list[int]]]:
    """What rebalances did to the process during the operation: ``assigned``, ``revoked`` or ``lost``, and the keys.

    Raises:
        InvalidRun: the log has something else; names the line.
    """
    text, at = line.rebalances, 1
    found: list[tuple[str, list[int]]] = []
    if text in ("", "nil"):
        return []
    if text[0] not in "[(":
        raise InvalidRun(f"line {line.number}: {text[:40]!r} is no list of rebalances.")
    while True:
        at = _NEXT.match(text, at).end()  # type: ignore[union-attr]
        if at >= len(text) - 1:
            return found
        if text[at] != "{":
            raise InvalidRun(f"line {line.number}: {text[at : at + 40]!r} is no rebalance.")
        end = _past(text, at, line.number)
        found.append(_rebalance(text[at:end], line.number))
        at = end


def written(fields: Mapping[str, str]) -> str:
    """A line of a history."""
    return "{" + ", ".join(f":{name} {value}" for name, value in fields.items()) + "}\n"


def vector(parts: Sequence[object]) -> str:
    """A vector of what is already EDN, or prints like it."""
    return "[" + " ".join(map(str, parts)) + "]"


def _keys(text: str, number: int) -> list[int]:
    found = _KEYS.fullmatch(text)
    if found is None:
        raise InvalidRun(f"line {number}: {text[:40]!r} is no list of keys.")
    return [int(key) for key in found[1].replace(",", " ").split()]


def _rebalance(event: str, number: int) -> tuple[str, list[int]]:
    fields = _fields(event, number)
    kind = fields.get("type", "nil")
    if kind[1:] not in _REBALANCES:
        raise InvalidRun(f"line {number}: a rebalance of :type {kind[:40]} is none of :assigned, :revoked and :lost.")
    if "keys" not in fields:
        raise InvalidRun(f"line {number}: a rebalance has no :keys.")
    return kind[1:], _keys(fields["keys"], number)


def _fields(text: str, number: int) -> dict[str, str]:
    start = _TAG.match(text)
    if start is None:
        raise InvalidRun(f"line {number} is no map: it begins with {text.strip()[:20]!r}.", FORM)
    at, end, found = start.end(), len(text), {}
    while True:
        field = _FIELD.match(text, at)
        if field is None:
            break
        name, value = field.groups()
        at = field.end()
        if value is None:
            begun, at = at, _past(text, at, number)
            value = text[begun:at]
        found[name] = value
    at = _NEXT.match(text, at).end()  # type: ignore[union-attr]
    if at >= end:
        raise _cut_off(number)
    if text[at] != "}":
        raise InvalidRun(f"line {number}: {text[at : at + 20]!r} is no field.")
    return found


def _past(text: str, at: int, number: int) -> int:
    """Where the value that begins at ``at`` ends."""
    atom = _ATOM.match(text, at)
    at = atom.end() if atom else at
    if at < len(text) and text[at] not in '[({"':
        return at
    depth = 0  # a string that ends on the line is an atom
    for bracket in _BRACKETS.finditer(text, at):
        if bracket[0] in ("[", "(", "{"):
            depth += 1
        elif bracket[0] in ("]", ")", "}"):
            depth -= 1
            if not depth:
                return bracket.end()
    raise _cut_off(number)


def _cut_off(number: int) -> InvalidRun:
    remedy = "If that is how it was written, the file is cut off, and a part of a history proves nothing."
    return InvalidRun(f"line {number} ends within an operation.", f"{FORM} {remedy}")


def _integer(text: str | None) -> int | None:
    return None if text is None else int(text)


def _strange(value: str) -> str:
    """The first unexpected token."""
    left = _KNOWN.sub(" ", value).replace(",", " ").split()
    return left[0][:40] if left else value[:40]
