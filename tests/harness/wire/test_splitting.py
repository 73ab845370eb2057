from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from harness.wire.splitting import MAX_FRAME_BYTES, FrameSplitter

FRAMES = [b"", b"a", b"frame", bytes(70_000), b"last"]
STREAM = b"".join(len(frame).to_bytes(4, "big") + frame for frame in FRAMES)


@pytest.mark.parametrize("seed", range(20))
def test_a_frame_is_lost_where_the_stream_is_cut(seed: int) -> None:
    random = Random(seed)
    cuts = [0, *sorted(random.randrange(len(STREAM)) for _ in range(12)), len(STREAM)]
    splitter = FrameSplitter()
    assert [frame for a, b in pairwise(cuts) for frame in splitter.feed(STREAM[a:b])] == FRAMES
    assert not splitter.is_lost


@pytest.mark.parametrize("length", [-1, MAX_FRAME_BYTES + 1])
def test_a_stream_goes_on_behind_a_length_that_no_frame_has(length: int) -> None:
    splitter = FrameSplitter()
    assert list(splitter.feed(STREAM + length.to_bytes(4, "big", signed=True) + b"what?")) == FRAMES
    assert splitter.is_lost
    assert list(splitter.feed(STREAM)) == []
