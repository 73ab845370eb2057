"""Compiles the encoder of one message at one version.

An encoder appends to one bytearray. Records are not copied into it: a *cut* remembers at which position they
belong, and :mod:`harness.wire.frames` hands out the pieces in order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from harness.wire import primitives
from harness.wire.declaration import MAX_STRING_BYTES, Buffer, Message, Struct, Wire, default_of, wire_fields
from harness.wire.source import BYTE, FIXED, NUMBERS, Source

Cuts = list[tuple[int, Buffer]]
"""Blobs to insert, and the positions in the bytearray at which to: ascending, never empty blobs."""

Encoder = Callable[[Any, bytearray, Cuts], None]

_CALLS = {
    "cut_text": primitives.cut_text,
    "encode_uvarint": primitives.encode_uvarint,
    "pack": struct.pack,
    "refuse_length": primitives.refuse_length,
}

_COMPILED: dict[tuple[type[Message], int], Encoder] = {}


def encoder(cls: type[Message], version: int) -> Encoder:
    """The compiled encoder, made on first use.

    A value that does not fit its field (None where null is not allowed, a number out of range, a string that is too
    long and no sentence) is our own mistake and surfaces as ``struct.error``, ``TypeError``, ``AttributeError``,
    ``UnicodeEncodeError`` or :class:`~harness.wire.errors.WireError`.
    """
    made = _COMPILED.get((cls, version))
    if made is None:
        made = _COMPILED[cls, version] = _compiled(cls, version)
    return made


def _compiled(cls: type[Message], version: int) -> Encoder:
    assert cls.versions[0] <= version <= cls.versions[1], f"{cls.__name__} has no version {version}"
    source = _EncoderSource("codec(m, out, cuts)", cls, version, dict(_CALLS))
    source.struct(cls, "m")
    source.flush()
    source.line("return")
    return source.compile()


class _EncoderSource(Source):
    out = "out"

    def struct(self, cls: type[Struct], owner: str) -> None:
        """Encode the fields of the struct called ``owner``."""
        present = wire_fields(cls, self.version)
        for field, wire in present:
            if wire.tag is None:
                self.value(f"{owner}.{field}", wire)
        if self.flexible:
            tagged = [(field, wire) for field, wire in present if wire.tag is not None]
            self.tagged_fields(cls, owner, sorted(tagged, key=lambda pair: pair[1].tag or 0))

    def value(self, expression: str, wire: Wire) -> None:
        """Encode one value."""
        if wire.kind in FIXED:
            self.fixed(FIXED[wire.kind], expression)
        elif wire.kind == "struct":
            assert isinstance(wire.element, type)
            if wire.nullable is not None:
                self.nullable_struct(expression, wire.element)
            else:
                self.struct(wire.element, expression)
        elif wire.kind == "array":
            self.array(expression, wire)
        else:
            self.blob(expression, wire)

    def nullable_struct(self, expression: str, cls: type[Struct]) -> None:
        """Encode a struct behind a byte that says whether there is one: 1, or -1 for null."""
        self.flush()
        with self.block(f"if {expression} is None:"):
            self.fixed(FIXED["int8"], "-1")
            self.flush()
        with self.block("else:"):
            self.fixed(FIXED["int8"], "1")
            self.struct(cls, expression)
            self.flush()

    def blob(self, expression: str, wire: Wire) -> None:
        """Encode a string, bytes or records: a length and that many bytes."""
        value = self.name("v")
        if wire.kind != "string":
            self.line(f"{value} = {expression}")
        elif self.may_be_null(wire):
            self.line(f"{value} = {expression}")
            self.line(f"{value} = {value} if {value} is None else {value}.encode()")
        else:
            self.line(f"{value} = {expression}.encode()")
        if wire.kind == "string":
            self.limit(value, expression, wire)
        self.length(value, wire, "h" if wire.kind == "string" else "i")
        with self.block(f"if {value}:"):
            if wire.kind == "records":
                assert self.out == "out", "records inside a tagged field"
                self.line(f"cuts.append((len(out), {value}))")
            else:
                self.line(f"{self.out} += {value}")

    def limit(self, value: str, expression: str, wire: Wire) -> None:
        """Cut a sentence that is too long, and refuse any other such string."""
        null = f"{value} is not None and " if self.may_be_null(wire) else ""
        with self.block(f"if {null}len({value}) > {MAX_STRING_BYTES}:"):
            label = expression.rpartition(".")[2]
            self.line(f"{value} = cut_text({value})" if wire.is_cut else f"refuse_length({label!r}, len({value}))")

    def array(self, expression: str, wire: Wire) -> None:
        """Encode an array: a count and that many elements."""
        value = self.name("v")
        self.line(f"{value} = {expression}")
        self.length(value, wire, "i")
        with self.block(f"if {value}:"):
            if wire.element in NUMBERS:
                self.line(f"{self.out} += pack('>%d{FIXED[str(wire.element)]}' % len({value}), *{value})")
            else:
                self.elements(value, wire)

    def elements(self, value: str, wire: Wire) -> None:
        """Encode the elements of an array, one by one."""
        element = self.name("x")
        with self.block(f"for {element} in {value}:"):
            if isinstance(wire.element, type):
                self.struct(wire.element, element)
            else:
                self.value(element, wire._replace(kind=str(wire.element), nullable=None))
            self.flush()

    def length(self, value: str, wire: Wire, character: str) -> None:
        """Encode the length of ``value``, compact or as ``character``, with the queued fields before it."""
        length = self.name("n")
        extra = " + 1" if self.flexible else ""
        null = f"{0 if self.flexible else -1} if {value} is None else " if self.may_be_null(wire) else ""
        self.line(f"{length} = {null}len({value}){extra}")
        if not self.flexible:
            self.fixed(character, length)
            self.flush()
            return
        self.compact_length(length)

    def compact_length(self, length: str) -> None:
        """Encode a compact length together with the queued fields before it."""
        run = self.take_run()
        with self.block(f"if {length} < 128:"):
            self.write([*run, (BYTE, length)])
        with self.block(f"elif {length} < 16384:"):  # two bytes: most batches, so not worth a call
            self.write([*run, (BYTE, f"{length} & 127 | 128"), (BYTE, f"{length} >> 7")])
        with self.block("else:"):
            self.write(run)
            self.line(f"{self.out} += encode_uvarint({length})")

    def may_be_null(self, wire: Wire) -> bool:
        """Whether this version allows null."""
        return wire.nullable is not None and wire.nullable <= self.version

    def tagged_fields(self, cls: type[Struct], owner: str, tagged: list[tuple[str, Wire]]) -> None:
        """Encode the tagged fields that end a struct, in the order of their tags, without those at default."""
        if not tagged:
            self.fixed(BYTE, "0")
            return
        run = self.take_run()
        conditions = [self.is_set(cls, f"{owner}.{field}", field, wire) for field, wire in tagged]
        with self.block(f"if {' or '.join(conditions)}:"):
            self.write(run)
            tags = self.name("tags")
            self.line(f"{tags} = []")
            for condition, (field, wire) in zip(conditions, tagged, strict=True):
                with self.block(f"if {condition}:"):
                    self.tagged_field(tags, f"{owner}.{field}", wire)
            self.line(f"{self.out} += encode_uvarint(len({tags})) + b''.join({tags})")
        with self.block("else:"):
            self.write([*run, (BYTE, "0")])

    def tagged_field(self, tags: str, expression: str, wire: Wire) -> None:
        """Encode one tagged field into a buffer of its own, because its size comes first."""
        outer, self.out = self.out, self.name("body")
        self.line(f"{self.out} = bytearray()")
        self.value(expression, wire)
        self.flush()
        tag = self.constant("tag", primitives.encode_uvarint(wire.tag or 0))
        self.line(f"{tags}.append({tag} + encode_uvarint(len({self.out})) + {self.out})")
        self.out = outer

    def is_set(self, cls: type[Struct], expression: str, field: str, wire: Wire) -> str:
        """The condition that a tagged field differs from its default."""
        default = default_of(cls, field)
        if wire.kind == "struct":
            assert isinstance(wire.element, type)
            empty = self.constant("empty", wire.element())
            return f"({expression} is not None and {expression} != {empty})"
        return f"{expression} != {default!r}"

    def flush(self) -> None:
        """Write the queued fixed-size fields."""
        self.write(self.take_run())

    def write(self, run: list[tuple[str, str]]) -> None:
        """Write these fixed-size fields."""
        if not run:
            return
        if len(run) == 1 and run[0][0] == BYTE:
            self.line(f"{self.out}.append({run[0][1]})")
        else:
            values = ", ".join(value for _, value in run)
            self.line(f"{self.out} += {self.constant('pack', self.layout(run).pack)}({values})")
