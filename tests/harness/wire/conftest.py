"""Draws arbitrary messages from their own declarations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st

from harness.wire.declaration import Struct, Wire, default_of, wire_fields

Bodies = Callable[[type[Struct], int], st.SearchStrategy[Any]]

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_KNOWN_ERRORS = st.sampled_from([0, 1, 3, 6, 19, 35, 56, 74, 76])  # one oracle refuses numbers that it has no name for
_LENGTHS_AROUND_VARINT_SIZES = [0, 1, 7, 126, 127, 128, 300, 16382, 16383, 16384]
_RECORDS = st.sampled_from([bytes([length % 251]) * length for length in _LENGTHS_AROUND_VARINT_SIZES])
_TEXTS = st.text(max_size=6) | st.sampled_from(["a" * 126, "b" * 127, "ü" * 64, "c" * 130])

_SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "uint16": st.integers(0, 2**16 - 1),
    "float64": st.floats(allow_nan=False),
    "uuid": st.binary(min_size=16, max_size=16),
    "string": _TEXTS,
    "records": _RECORDS,
    "bytes": _RECORDS,
}


@pytest.fixture(scope="session")
def bodies() -> Bodies:
    """Any message of a class and version, whose fields that the version lacks are at their defaults."""
    return _bodies


def _bodies(cls: type[Struct], version: int) -> st.SearchStrategy[Any]:
    return st.builds(cls, **{name: _values(cls, name, wire, version) for name, wire in wire_fields(cls, version)})


def _values(cls: type[Struct], name: str, wire: Wire, version: int) -> st.SearchStrategy[Any]:
    values = _present(name, wire, version)
    if wire.tag is not None:
        return st.just(default_of(cls, name)) | values
    return st.none() | values if wire.nullable is not None and wire.nullable <= version else values


def _present(name: str, wire: Wire, version: int) -> st.SearchStrategy[Any]:
    if wire.kind == "array":
        return st.lists(_elements(wire, version), max_size=3)
    if wire.kind == "struct":
        assert isinstance(wire.element, type)
        return _bodies(wire.element, version).filter(lambda made: made != type(made)())
    return _SIMPLE[wire.kind] if wire.kind in _SIMPLE else _numbers(name, _BITS[wire.kind])


def _elements(wire: Wire, version: int) -> st.SearchStrategy[Any]:
    if isinstance(wire.element, type):
        return _bodies(wire.element, version)
    kind = str(wire.element)
    return _SIMPLE[kind] if kind in _SIMPLE else _numbers("", _BITS[kind])


def _numbers(name: str, bits: int) -> st.SearchStrategy[int]:
    if name.endswith("error_code"):
        return _KNOWN_ERRORS
    if name.endswith("_ms"):
        return st.integers(0, 2**31 - 1)  # one oracle makes durations and dates of them
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
