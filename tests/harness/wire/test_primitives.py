from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.wire.errors import WireError
from harness.wire.primitives import decode_uvarint, decode_varint, encode_uvarint, encode_varint

quick = settings(max_examples=100, deadline=None, derandomize=True)


@quick
@given(st.integers(0, 2**32 - 1))
def test_an_unsigned_varint_changes(value: int) -> None:
    encoded = encode_uvarint(value)
    assert decode_uvarint(memoryview(encoded + b"\xff"), 0) == (value, len(encoded))


@quick
@given(st.integers(-(2**63), 2**63 - 1))
def test_a_varint_changes(value: int) -> None:
    encoded = encode_varint(value)
    assert decode_varint(memoryview(b"\xff" + encoded), 1) == (value, len(encoded) + 1)


@pytest.mark.parametrize("encoded", ["ffffffff10", "ffffffff80", "808080808000"])
def test_an_unsigned_varint_beyond_32_bits_is_taken(encoded: str) -> None:
    with pytest.raises(WireError):
        decode_uvarint(memoryview(bytes.fromhex(encoded)), 0)


@pytest.mark.parametrize("encoded", ["ff" * 9 + "02", "ff" * 10 + "00"])
def test_a_varint_beyond_64_bits_is_taken(encoded: str) -> None:
    with pytest.raises(WireError):
        decode_varint(memoryview(bytes.fromhex(encoded)), 0)
