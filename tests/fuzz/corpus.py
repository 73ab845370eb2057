"""Frames that are kept: captured ones, to be mutated, and those that once did harm, to be sent again first.

A line of a file is one frame, in hexadecimal, behind the name of its API and its version.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from harness.wire.keys import ApiKey

CAPTURED = Path(__file__).parent / "captured.txt"
HARMFUL = Path(__file__).parent / "harmful.txt"

MOST_FRAMES = 200
MOST_BYTES = 1_500
"""Of one captured frame."""

_HEADER = struct.Struct(">hh")


def read(path: Path) -> list[bytes]:
    """The frames of one file; none where there is no such file."""
    if not path.exists():
        return []
    return [bytes.fromhex(line.split()[1]) for line in path.read_text().splitlines()]


def write(path: Path, frames: Iterable[bytes]) -> None:
    """Keep ``frames``, each once, and no more than ``MOST_FRAMES``: the newest."""
    distinct = list(dict.fromkeys(frames))[-MOST_FRAMES:]
    path.write_text("".join(f"{name(frame)} {frame.hex()}\n" for frame in distinct))


def name(frame: bytes) -> str:
    """What a frame asks for, as far as it can be told: ``fetch-v12``."""
    if len(frame) < _HEADER.size:
        return "torn"
    key, version = _HEADER.unpack_from(frame)
    known = key in ApiKey.__members__.values()
    return f"{ApiKey(key).name.lower() if known else f'api-{key}'}-v{version}"
