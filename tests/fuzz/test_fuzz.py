"""What the fuzzer makes up and keeps, that a seed says it all, and that it notices who does not serve any more."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest

from harness.model import CONTROLLER_ID, NodeId
from harness.wire.errors import WireError
from harness.wire.frames import ApiKey, decode_request
from tests.fuzz import corpus, live, watch
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
        process = SimpleNamespace(pid=os.getpid(), returncode=returncode, poll=lambda: returncode)
        self.processes = {NodeId(0): process}
        self.ids = [NodeId(0)]
        self.consume = lambda topic, count, partition: kept[:count]
        self.bootstrap = ""


def watched(nodes: _Nodes, patience_s: float = 1.0) -> tuple[Watch, KnownLoad]:
    """A watch over these, and the load beside them."""
    load = KnownLoad(cast("Cluster", nodes), "known", 1)
    return Watch(cast("Cluster", nodes), load, patience_s), load


def test_a_node_that_has_ended_is_not_well() -> None:
    with pytest.raises(Unwell, match="Node 0 has ended with exit code 70"):
        watched(_Nodes(70, []))[0].look()


def test_a_node_that_has_grown_too_much_is_not_well(monkeypatch: pytest.MonkeyPatch) -> None:
    watching, _ = watched(_Nodes(None, []))
    monkeypatch.setattr(watch, "MOST_GROWTH_BYTES", -1 << 40)
    with pytest.raises(Unwell, match="has grown by"):
        watching.look()


def test_a_load_that_does_not_get_on_between_two_looks_is_not_well(monkeypatch: pytest.MonkeyPatch) -> None:
    watching, load = watched(_Nodes(None, []), 0.0)
    monkeypatch.setattr(Watch, "_work", lambda *_: None)
    load.acknowledged[0][0] = 0
    watching.look()
    with pytest.raises(Unwell, match="leads a partition of the load to which nothing more is written"):
        watching.look()


def test_a_send_of_the_load_that_failed_is_not_well(monkeypatch: pytest.MonkeyPatch) -> None:
    watching, load = watched(_Nodes(None, []))
    monkeypatch.setattr(Watch, "_work", lambda *_: None)
    load.acknowledged[0][0], load.failed = 0, 1
    with pytest.raises(Unwell, match="failed 1 sends"):
        watching.look()


def test_an_acknowledged_record_that_is_not_where_it_should_be_is_missing() -> None:
    _, load = watched(_Nodes(None, [b"0", b"2", b"x"]))
    load.acknowledged[0].update({0: 0, 1: 1, 2: 1, 3: 3})
    assert load.missing() == [1, 3]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Three brokers and a controller; what harms them is forgotten."""
    monkeypatch.setattr(corpus, "HARMFUL", tmp_path / "harmful.txt")
    monkeypatch.setattr(live, "LOOK_EVERY_S", 0.5)
    cluster = Cluster(tmp_path)
    try:
        yield cluster.start()
    finally:
        cluster.stop()


BY_NIGHT = pytest.mark.nightly("starts a cluster to harm; by day a broker is cut off")


def stopped(cluster: Cluster) -> None:
    """Node 1 answers nothing."""
    cluster.send_signal(1, signal.SIGSTOP)


def cut_off(cluster: Cluster) -> None:
    """Node 1 answers what it knows, and its followers do not reach it."""
    assert cluster.ask(1, op="cut", links=[["0", "1"], ["2", "1"]])["ok"]


def without_a_controller(cluster: Cluster) -> None:
    """The controller's process is there and does nothing."""
    cluster.send_signal(CONTROLLER_ID, signal.SIGSTOP)


@pytest.mark.parametrize(
    ("harm", "node"),
    [
        (None, None),
        (cut_off, 1),
        pytest.param(stopped, 1, marks=BY_NIGHT),
        pytest.param(without_a_controller, CONTROLLER_ID, marks=BY_NIGHT),
    ],
)
def test_a_node_that_lives_and_does_not_serve_fails_the_run(
    cluster: Cluster,
    harm: Callable[[Cluster], None] | None,
    node: int | None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked = Watch.look

    def look(watching: Watch) -> None:
        looked(watching)
        if harm is not None:
            harm(cluster)

    monkeypatch.setattr(Watch, "look", look)
    campaign = live.Campaign(cluster, seed=1, clients=1)
    minutes, within_s = (0.05, 5.0) if harm is None else (1.0, 2.0)
    assert live.fuzz(cluster, campaign, minutes, within_s) == (harm is None)
    if node is not None:
        assert " did not do its work within 2.0 s" in capsys.readouterr().out
        assert cluster.processes[NodeId(node)].poll() is None
