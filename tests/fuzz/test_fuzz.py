"""The parts of the fuzzer, without a cluster: what it makes up, what it keeps, and that a seed says it all."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest

from harness.wire.errors import WireError
from harness.wire.frames import ApiKey, decode_request
from tests.fuzz import corpus, watch
from tests.fuzz.grammar import Grammar
from tests.fuzz.load import KnownLoad
from tests.fuzz.mutations import mutated
from tests.fuzz.watch import Unwell, Watch
from tests.harness.broker.cluster import Cluster


def test_what_is_made_up_is_decoded_and_reaches_every_api() -> None:
    grammar, seen = Grammar(Random(1)), Counter[ApiKey]()
    for _ in range(600):
        with suppress(WireError):  # too many elements
            seen[decode_request(grammar.frame())[0].api_key] += 1
    assert set(seen) == set(ApiKey)
    assert seen.total() > 500


def test_one_seed_makes_the_same_frames() -> None:
    def frames(seed: int) -> list[bytes]:
        rng = Random(seed)
        grammar = Grammar(rng)
        made = [grammar.frame() for _ in range(20)]
        return made + [mutated(frame, made, rng) for frame in made]

    assert frames(7) == frames(7)
    assert frames(7) != frames(8)


def test_a_mutated_frame_is_a_message_or_a_wire_error() -> None:
    rng = Random(2)
    grammar, captured = Grammar(rng), corpus.read(corpus.CAPTURED)
    for _ in range(2_000):
        with suppress(WireError):
            decode_request(mutated(rng.choice([grammar.frame(), *captured]), captured, rng))


def test_captured_frames_are_requests_of_many_apis() -> None:
    keys = {decode_request(frame)[0].api_key for frame in corpus.read(corpus.CAPTURED)}
    assert {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA, ApiKey.LEADER_AND_ISR, ApiKey.OFFSET_COMMIT} <= keys


@pytest.mark.parametrize("path", [corpus.CAPTURED, corpus.HARMFUL], ids=lambda path: path.stem)
def test_what_is_kept_is_bounded(path: Path) -> None:
    frames = corpus.read(path)
    assert len(frames) <= corpus.MOST_FRAMES
    assert sum(map(len, frames)) < 300_000


def test_frames_are_kept_once_and_the_newest_of_many(tmp_path: Path) -> None:
    frames = [number.to_bytes(4, "big") for number in range(corpus.MOST_FRAMES + 5)]
    corpus.write(tmp_path / "kept.txt", [*frames, *frames])
    assert corpus.read(tmp_path / "kept.txt") == frames[5:]
    assert corpus.read(tmp_path / "missing.txt") == []


class _Nodes:
    """As much of a cluster as the watch and the load look at."""

    def __init__(self, returncode: int | None, kept: list[bytes]) -> None:
        self.processes = {0: SimpleNamespace(pid=os.getpid(), returncode=returncode, poll=lambda: returncode)}
        self.consume = lambda topic, count: kept[:count]
        self.bootstrap = ""


def test_a_node_that_has_ended_is_not_well() -> None:
    with pytest.raises(Unwell, match="Node 0 has ended with exit code 70"):
        Watch(cast("Cluster", _Nodes(70, [])), 1.0).look()


def test_a_node_that_has_grown_too_much_is_not_well(monkeypatch: pytest.MonkeyPatch) -> None:
    watching = Watch(cast("Cluster", _Nodes(None, [])), 1.0)
    monkeypatch.setattr(watch, "MOST_GROWTH_BYTES", -1 << 40)
    with pytest.raises(Unwell, match="has grown by"):
        watching.look()


def test_an_acknowledged_record_that_is_not_where_it_should_be_is_missing() -> None:
    load = KnownLoad(cast("Cluster", _Nodes(None, [b"0", b"2", b"x"])), "known")
    load.acknowledged = {0: 0, 1: 1, 2: 1, 3: 3}
    assert load.missing() == [1, 3]
