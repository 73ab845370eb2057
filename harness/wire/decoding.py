"""Compiles the decoder of one message at one version.

For ``FetchRequest`` v12 the inner loop comes out as::

    for _ in range(n_14):
        partition_15, current_leader_epoch_16, ..., partition_max_bytes_20, tags_21 = unpack_22(buf, pos)
        pos += 33
        if tags_21:
            pos = skip_tagged_fields(buf, pos, tags_21)
        partitions_13.append(FetchPartition_23(partition_15, current_leader_epoch_16, ...))

A string or blob that reaches beyond the end merely moves ``pos`` there: the next read fails, or the caller sees
that the message did not end where the frame does. So nothing is checked twice, and nothing is allocated for a
length that the frame does not have. The decoder of a request counts the elements of all of its arrays in ``left``,
so that one request cannot occupy a node with more of them than its class declares as ``max_elements``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from harness.wire import primitives
from harness.wire.declaration import MAX_STRING_BYTES, Message, Struct, Wire, all_fields, default_of
from harness.wire.source import BYTE, FIXED, NUMBERS, Source

Decoder = Callable[[memoryview, int], tuple[Message, int]]
"""Decodes the body that starts at a position; returns it and the position behind it."""

_CALLS = {
    "rest_of_uvarint": primitives.rest_of_uvarint,
    "decode_uvarint": primitives.decode_uvarint,
    "skip_tagged_fields": primitives.skip_tagged_fields,
    "refuse_length": primitives.refuse_length,
    "refuse_elements": primitives.refuse_elements,
    "unpack_from": struct.unpack_from,
}

_CONTENTS = {"string": "str(buf[pos:stop], 'utf-8')", "bytes": "bytes(buf[pos:stop])", "records": "buf[pos:stop]"}

_COMPILED: dict[tuple[type[Message], int], Decoder] = {}


def decoder(cls: type[Message], version: int) -> Decoder:
    """The compiled decoder, made on first use.

    It raises :class:`~harness.wire.errors.WireError`, ``struct.error``, ``IndexError`` or ``UnicodeDecodeError``
    on malformed bytes: :mod:`harness.wire.frames` makes one error of them. It may return a position beyond the
    end of the buffer, which means the same.
    """
    made = _COMPILED.get((cls, version))
    if made is None:
        made = _COMPILED[cls, version] = _compiled(cls, version)
    return made


def _compiled(cls: type[Message], version: int) -> Decoder:
    assert cls.versions[0] <= version <= cls.versions[1], f"{cls.__name__} has no version {version}"
    source = _DecoderSource("codec(buf, pos)", cls, version, dict(_CALLS))
    source.line("end = len(buf)")
    if cls.max_elements is not None:
        source.line(f"left = {cls.max_elements}")
    made = source.struct(cls)
    source.line(f"return {made}, pos")
    return source.compile()


class _DecoderSource(Source):
    def struct(self, cls: type[Struct]) -> str:
        """Decode the fields of ``cls``; returns the expression that constructs it."""
        arguments: list[str] = []
        tagged: list[tuple[str, str, Wire]] = []
        for field, wire in all_fields(cls):
            if not wire.since <= self.version <= wire.until:
                arguments.append(repr(default_of(cls, field)))
                continue
            target = self.name(field)
            arguments.append(target)
            if wire.tag is None:
                self.value(f"{cls.__name__}.{field}", target, wire)
            else:
                self.line(f"{target} = {default_of(cls, field)!r}")
                tagged.append((f"{cls.__name__}.{field}", target, wire))
        if self.flexible:
            self.tagged_fields(tagged)
        self.flush()
        return f"{self.constant(cls.__name__, cls)}({', '.join(arguments)})"

    def value(self, label: str, target: str, wire: Wire) -> None:
        """Decode one field into the local ``target``."""
        if wire.kind in FIXED:
            self.fixed(FIXED[wire.kind], target)
        elif wire.kind == "struct":
            assert isinstance(wire.element, type)
            if wire.nullable is not None:
                self.nullable_struct(label, target, wire.element)
            else:
                made = self.struct(wire.element)
                self.line(f"{target} = {made}")
        elif wire.kind == "array":
            self.array(label, target, wire)
        else:
            self.blob(label, target, wire)

    def nullable_struct(self, label: str, target: str, cls: type[Struct]) -> None:
        """Decode a struct behind the byte that says whether there is one: 1, or -1 for null."""
        sign = self.name("sign")
        self.fixed(FIXED["int8"], sign)
        self.flush()
        with self.block(f"if {sign} == 1:"):
            made = self.struct(cls)
            self.line(f"{target} = {made}")
        with self.block(f"elif {sign} == -1:"):
            self.line(f"{target} = None")
        with self.block("else:"):
            self.line(f"refuse_length({label!r}, {sign})")

    def blob(self, label: str, target: str, wire: Wire) -> None:
        """Decode a string, bytes or records: a length and that many bytes."""
        length = self.length("h" if wire.kind == "string" else "i")
        if wire.kind == "string" and self.flexible:
            with self.block(f"if {length} > {MAX_STRING_BYTES}:"):
                self.line(f"refuse_length({label!r}, {length})")
        content = _CONTENTS[wire.kind]
        with self.block(f"if {length} >= 0:"):
            self.line(f"stop = pos + {length}")
            self.line(f"{target} = {content}")
            self.line("pos = stop")
        self.null(label, target, wire, length)

    def array(self, label: str, target: str, wire: Wire) -> None:
        """Decode an array. Every element takes a byte at least, so no longer one can be in the buffer."""
        length = self.length("i")
        with self.block(f"if {length} > end - pos:"):
            self.line(f"refuse_length({label!r}, {length})")
        with self.block(f"if {length} >= 0:"):
            if self.cls.max_elements is not None:
                self.count(label, length)
            if wire.element in NUMBERS:
                self.numbers(label, target, str(wire.element), length)
            else:
                self.line(f"{target} = []")
                with self.block(f"for _ in range({length}):"):
                    self.line(f"{target}.append({self.element(label, wire)})")
        self.null(label, target, wire, length)

    def count(self, label: str, length: str) -> None:
        """Take the elements of one array off what the request may have in all."""
        self.line(f"left -= {length}")
        with self.block("if left < 0:"):
            self.line(f"refuse_elements({label!r}, {self.cls.max_elements})")

    def element(self, label: str, wire: Wire) -> str:
        """Decode one element of an array; returns its expression."""
        if isinstance(wire.element, type):
            return self.struct(wire.element)
        target = self.name("element")
        self.value(label, target, wire._replace(kind=str(wire.element), nullable=None))
        self.flush()
        return target

    def numbers(self, label: str, target: str, kind: str, length: str) -> None:
        """Decode an array of fixed-size numbers at once."""
        character = FIXED[kind]
        self.line(f"stop = pos + {length} * {struct.calcsize('>' + character)}")
        with self.block("if stop > end:"):
            self.line(f"refuse_length({label!r}, {length})")
        self.line(f"{target} = list(unpack_from('>%d{character}' % {length}, buf, pos)) if {length} else []")
        self.line("pos = stop")

    def length(self, character: str) -> str:
        """Decode a length, compact or of the type ``character``; -1 is null. Returns its name."""
        length = self.name("n")
        self.fixed(BYTE if self.flexible else character, length)
        self.flush()
        if self.flexible:
            self.rest_of_length(length)
            self.line(f"{length} -= 1")
        return length

    def rest_of_length(self, length: str) -> None:
        """Decode what follows the first byte of a compact length."""
        with self.block(f"if {length} > 127:"):
            self.line("second = buf[pos]")
            with self.block("if second < 128:"):  # two bytes: most batches, so not worth a call
                self.line(f"{length} += (second << 7) - 128")
                self.line("pos += 1")
            with self.block("else:"):
                self.line(f"{length}, pos = rest_of_uvarint(buf, pos, {length})")

    def null(self, label: str, target: str, wire: Wire, length: str) -> None:
        """The ``else`` of a length that is not at least 0: null where allowed, an error otherwise."""
        if wire.nullable is not None and wire.nullable <= self.version:
            with self.block(f"elif {length} == -1:"):
                self.line(f"{target} = None")
        with self.block("else:"):
            self.line(f"refuse_length({label!r}, {length})")

    def tagged_fields(self, known: list[tuple[str, str, Wire]]) -> None:
        """Decode the tagged fields that end a struct: those we know, skipping the others."""
        count = self.name("tags")
        self.fixed(BYTE, count)
        self.flush()
        with self.block(f"if {count}:"):
            if known:
                self.known_tags(known, count)
            else:
                self.line(f"pos = skip_tagged_fields(buf, pos, {count})")

    def known_tags(self, known: list[tuple[str, str, Wire]], count: str) -> None:
        """Decode each tagged field and check that it fills exactly the size that it claims."""
        tag, size, stop = self.name("tag"), self.name("size"), self.name("stop")
        with self.block(f"if {count} > 127:"):
            self.line(f"{count}, pos = rest_of_uvarint(buf, pos, {count})")
        with self.block(f"for _ in range({count}):"):
            self.line(f"{tag}, pos = decode_uvarint(buf, pos)")
            self.line(f"{size}, pos = decode_uvarint(buf, pos)")
            self.line(f"{stop} = pos + {size}")
            for label, target, wire in known:
                with self.block(f"if {tag} == {wire.tag}:"):
                    self.value(label, target, wire)
                    self.flush()
                    with self.block(f"if pos != {stop}:"):
                        self.line(f"refuse_length({label!r}, {size})")
            self.line(f"pos = {stop}")

    def flush(self) -> None:
        """Write the assignment of the queued fixed-size fields."""
        run = self.take_run()
        if not run:
            return
        if len(run) == 1 and run[0][0] == BYTE:
            self.line(f"{run[0][1]} = buf[pos]")
            self.line("pos += 1")
            return
        layout = self.layout(run)
        targets = ", ".join(target for _, target in run)
        self.line(f"{targets}, = {self.constant('unpack', layout.unpack_from)}(buf, pos)")
        self.line(f"pos += {layout.size}")
