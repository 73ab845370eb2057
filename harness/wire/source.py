"""Builds the Python source of a codec: the base of the compilers of decoders and encoders.

Both compile one message at one version into one flat function: nested structs are inlined as loops, and
neighbouring fixed-size fields, the length in front of a string included, share one call of :mod:`struct`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from harness.wire.declaration import Message

FIXED = {
    "boolean": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "int64": "q", "float64": "d", "uuid": "16s",
}  # fmt: skip
"""The kinds whose size is fixed, as :mod:`struct` characters."""

NUMBERS = FIXED.keys() - {"uuid"}
"""The fixed kinds of which :mod:`struct` packs many at once."""

BYTE = "B"


class Source:
    """Lines of one function, its constants, and the fixed-size fields that are not yet written.

    Attributes:
        flexible: lengths are compact and structs end in tagged fields.
    """

    def __init__(self, signature: str, cls: type[Message], version: int, constants: dict[str, Any]) -> None:
        self.cls = cls
        self.version = version
        self.flexible = version >= cls.flexible
        self._constants = constants
        self._lines = [f"def {signature}:"]
        self._depth = 1
        self._serial = 0
        self._run: list[tuple[str, str]] = []

    def line(self, text: str) -> None:
        """Add a line at the current depth."""
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Indent what is added under ``head``."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def name(self, stem: str) -> str:
        """A fresh local name."""
        self._serial += 1
        return f"{stem}_{self._serial}"

    def constant(self, stem: str, value: object) -> str:
        """A name by which the function reaches ``value``."""
        name = self.name(stem)
        self._constants[name] = value
        return name

    def fixed(self, character: str, expression: str) -> None:
        """Queue a fixed-size field: the target of an assignment, or the value to write."""
        self._run.append((character, expression))

    def take_run(self) -> list[tuple[str, str]]:
        """The queued fixed-size fields, which the caller writes now."""
        run, self._run = self._run, []
        return run

    def layout(self, run: list[tuple[str, str]]) -> struct.Struct:
        """The compiled layout of queued fields."""
        return struct.Struct(">" + "".join(character for character, _ in run))

    def compile(self) -> Callable[..., Any]:
        """The finished function."""
        assert not self._run, "fixed-size fields were queued but never written"
        what = f"<{self.cls.__name__} v{self.version}: {self._lines[0]}>"
        # The source is made of declarations in this repository, never of a peer's bytes.
        exec(compile("\n".join(self._lines), what, "exec"), self._constants)  # noqa: S102
        function: Callable[..., Any] = self._constants["codec"]
        return function
