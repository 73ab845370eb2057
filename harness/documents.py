"""Reads the files that a user names, each within a limit that is checked before anything is built of its content.

A file may be a pipe, a device, larger than memory, nested deeper than Python recurses, or a few lines of YAML whose
aliases stand for billions of values. Commands read scenarios, compose files, run directories and histories through this
module, which refuses such a file. ``docs/cli.md`` lists the limits.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from math import isinf
from pathlib import Path
from typing import Any

import yaml
from pydantic_core import from_json
from yaml.composer import Composer

from harness.errors import UsageError
from harness.validation import shortened

MOST_YAML_BYTES = 1 << 20
"""The greatest size of a scenario file or a compose file."""

MOST_YAML_VALUES = 50_000
"""The most keys and values of a YAML document; an alias counts as the values that it stands for."""

MOST_YAML_DEPTH = 64

MOST_JSON_BYTES = 64 << 20
"""The greatest size of a JSON document."""

MOST_JSON_VALUES = 2_000_000
"""The most commas and opening brackets of a JSON document, including those in strings: a bound of its values."""

_LONGEST_NUMBER = 100
"""The most characters of a YAML scalar that is no string; PyYAML takes quadratic time for a number in base 60."""

_BLOCK_BYTES = 256 << 10

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


class Unfit(ValueError):
    """A refused file or document; its text is the reason, as a clause: ``it is a pipe``."""


def require_regular(path: Path) -> None:
    """Refuse what is not a regular file: reading it may block, or never end.

    Raises:
        Unfit: ``path`` is a directory, a pipe, a device or a socket.
        OSError: there is no such file, or this user may not access it.
    """
    _require_regular(_named(path).stat())


def opened(path: Path) -> BufferedReader:
    """The regular file ``path``, open for reading.

    Raises:
        Unfit: see :func:`require_regular`.
        OSError: the file cannot be opened.
    """
    descriptor = os.open(_named(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        _require_regular(os.fstat(descriptor))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def content(path: Path, most_bytes: int) -> bytes:
    """The content of the regular file ``path``, which has at most ``most_bytes`` bytes.

    Raises:
        Unfit: see :func:`require_regular`, or the file is larger.
        OSError: the file cannot be read.
    """
    found = bytearray()
    with opened(path) as file:
        # The size may be wrong: files below /proc have none, and others grow.
        size = os.fstat(file.fileno()).st_size
        while max(size, len(found)) <= most_bytes and (block := file.read(_BLOCK_BYTES)):
            found += block
    if max(size, len(found)) > most_bytes:
        raise Unfit(f"it has more than {most_bytes:,} bytes")
    return bytes(found)


def text(path: Path, most_bytes: int = MOST_YAML_BYTES) -> str:
    """As :func:`content`, decoded.

    Raises:
        Unfit: also when it is not UTF-8.
        OSError: the file cannot be read.
    """
    try:
        return content(path, most_bytes).decode()
    except UnicodeDecodeError:
        raise Unfit("it is not UTF-8 text") from None


def json_file(path: Path) -> Any:
    """The JSON document in the regular file ``path``, as plain data.

    Raises:
        Unfit: see :func:`content` and :func:`json_document`.
        OSError: the file cannot be read.
    """
    return json_document(content(path, MOST_JSON_BYTES))


def json_document(document: bytes) -> Any:
    """A JSON document as plain data, all of whose numbers have 64 bits.

    Raises:
        Unfit: it is no JSON, has more than :data:`MOST_JSON_VALUES` values, or is nested more than 200 deep.
    """
    if sum(map(document.count, (b",", b"[", b"{"))) > MOST_JSON_VALUES:
        raise Unfit(f"it holds more than {MOST_JSON_VALUES:,} values")
    try:
        found = from_json(document, allow_inf_nan=False)
    except ValueError as error:
        raise Unfit(f"it is no JSON: {error}") from None
    _require_64_bits(found)
    return found


def _require_64_bits(value: Any) -> None:
    left = [value]
    while left:
        match left.pop():
            case dict() as one:
                left += one.values()
            case list() as one:
                left += one
            case int() as one if not -(2**63) <= one < 2**63:
                raise Unfit(f"it holds the number {shortened(one)}, which does not fit into 64 bits")
            case float() as one if isinf(one):
                raise Unfit("it holds a number that does not fit into 64 bits")


class BoundedLoader(Composer, yaml.CSafeLoader):
    """PyYAML's safe loader within :data:`MOST_YAML_VALUES` and :data:`MOST_YAML_DEPTH`.

    libyaml reads the text, which takes a fraction of the time, and Python composes the nodes, so that it can stop.
    """

    def __init__(self, stream: str) -> None:
        yaml.CSafeLoader.__init__(self, stream)
        Composer.__init__(self)
        self._values = 0
        self._depth = 0
        self._sizes: dict[int, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """See :class:`yaml.composer.Composer`."""
        event, before = self._next(), self._values
        self._depth += 1
        if self._depth > MOST_YAML_DEPTH:
            raise _too_much(f"it is nested more than {MOST_YAML_DEPTH} deep", event)
        self._grow(0 if isinstance(event, yaml.AliasEvent) else 1, event)
        node = super().compose_node(parent, index)
        if not isinstance(event, yaml.AliasEvent):
            self._sizes[id(node)] = self._values - before
        elif id(node) in self._sizes:
            self._grow(self._sizes[id(node)], event)
        else:
            raise _too_much(f"the alias {event.anchor!r} stands for something that contains itself", event)
        self._depth -= 1
        return node

    def compose_scalar_node(self, anchor: dict[Any, yaml.Node]) -> yaml.ScalarNode:
        """See :class:`yaml.composer.Composer`."""
        event = self._next()
        node: yaml.ScalarNode = super().compose_scalar_node(anchor)
        if node.tag != "tag:yaml.org,2002:str" and len(node.value) > _LONGEST_NUMBER:
            raise _too_much(f"it has a number of {len(node.value):,} characters", event)
        return node

    def _next(self) -> yaml.Event:
        event = self.peek_event()
        assert event is not None  # a node is composed where one begins
        return event

    def _grow(self, values: int, event: yaml.Event) -> None:
        self._values += values
        if self._values > MOST_YAML_VALUES:
            raise _too_much(f"it holds more than {MOST_YAML_VALUES:,} values, each as often as it is repeated", event)


class _TooMuch(yaml.MarkedYAMLError):
    """YAML beyond the limits."""


def _too_much(what: str, event: yaml.Event) -> _TooMuch:
    return _TooMuch(None, None, what, event.start_mark)  # type: ignore[arg-type]


class BeyondLimits(UsageError):
    """A YAML document is well formed as far as it was read, and beyond the limits."""


def yaml_document(document: str, origin: str, loader: type[BoundedLoader] = BoundedLoader) -> Any:
    """A YAML document as plain data; None when it is empty.

    Args:
        document: the text.
        origin: the file, the prefix of every message.
        loader: what builds the data.

    Raises:
        UsageError: it is no YAML; names the line.
        BeyondLimits: it is beyond the limits; names the line, too.
    """
    with _refusals(origin, document):
        return yaml.load(document, loader)  # noqa: S506 - a SafeLoader


def require_yaml(document: str, origin: str) -> None:
    """Refuse what :func:`yaml_document` would refuse, except for tags of other programs.

    Raises:
        UsageError: see :func:`yaml_document`.
    """
    with _refusals(origin, document):
        yaml.compose(document, BoundedLoader)


@contextmanager
def _refusals(origin: str, document: str) -> Iterator[None]:
    try:
        yield
    except yaml.MarkedYAMLError as error:
        raise _no_yaml(origin, document, error) from None
    except yaml.YAMLError as error:
        raise UsageError(f"{origin} is not valid YAML: {error}.") from None
    except ValueError as error:
        raise UsageError(f"{origin}: a value is not what it looks like: {error}.") from None


def _no_yaml(origin: str, document: str, error: yaml.MarkedYAMLError) -> UsageError:
    where, lines = origin, document.count("\n") + 1
    if error.problem_mark is not None:  # which is behind the last line where the document ends too soon
        where += f", line {min(error.problem_mark.line + 1, lines)}"
    if isinstance(error, _TooMuch):
        return BeyondLimits(f"{where}: {error.problem}.")
    return UsageError(f"{where}: this is not valid YAML: {error.problem}.")


def _named(path: Path) -> Path:
    """``path``, which may come from a file and contain what no file name can."""
    if "\0" in str(path):
        raise Unfit("its name has a null character")
    return path


def _require_regular(found: os.stat_result) -> None:
    kind = stat.S_IFMT(found.st_mode)
    if kind != stat.S_IFREG:
        raise Unfit(f"it is {_KINDS.get(kind, 'no file')}, and only regular files are read")
