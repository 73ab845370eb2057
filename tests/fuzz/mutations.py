"""What becomes of a frame on its way through hostile hands."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

_STRANGE = (b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff\xff\xff\xff\x0f", b"\x7f\xff")
_HEADER_BYTES = 8
_MOST_BYTES = 1 << 20


def mutated(frame: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    """``frame`` with one to four changes; its API key, version and correlation id mostly as they were."""
    changed = bytearray(frame)
    for _ in range(rng.randint(1, 4)):
        first = _HEADER_BYTES if len(changed) > _HEADER_BYTES and rng.random() < 0.9 else 0
        at = rng.randrange(first, len(changed)) if len(changed) > first else 0
        _change(changed, at, others, rng)
    return bytes(changed[:_MOST_BYTES])


def _change(changed: bytearray, at: int, others: Sequence[bytes], rng: Random) -> None:
    match rng.randrange(7):
        case 0 if changed:
            changed[at] ^= 1 << rng.randrange(8)
        case 1:
            strange = rng.choice(_STRANGE)
            changed[at : at + len(strange)] = strange
        case 2:
            del changed[at : at + rng.randint(1, 8)]
        case 3:
            changed[at:at] = rng.randbytes(rng.randint(1, 8))
        case 4:
            piece = changed[at : at + rng.randint(1, 64)]
            changed[at:at] = piece * rng.choice([1, 2, 50])
        case 5 if others:
            changed[at:] = rng.choice(others)[at:]
        case _:
            changed[at:] = b""
