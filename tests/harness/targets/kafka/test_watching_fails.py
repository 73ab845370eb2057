"""What can be said of a cluster that could not be watched all the time: without a cluster."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.errors import EnvironmentFault
from harness.model import CONTROLLER, NodeId, TopicPartition, node_name
from harness.replication.controller_messages import PartitionState
from harness.target import ClusterView
from harness.targets.kafka import timeline_sampler as module
from harness.targets.kafka.decisions import Decision, PartitionDecision, Withdrawal
from harness.targets.kafka.observation import ClusterObservation
from harness.targets.kafka.quorum import QuorumObservation
from harness.targets.kafka.replica_probe import ReplicaObservation
from harness.targets.kafka.timeline_sampler import TimelineSampler
from harness.targets.kafka.unobserved_time import UNSEEN_NS, UnobservedTime
from harness.wire.messages.quorum import QuorumPartition, QuorumReplica

LEDGER = TopicPartition("ledger", 0)
ALONE = PartitionState(LEDGER, NodeId(0), 0, 0, (NodeId(0),), (NodeId(0),))


@dataclass
class Scripted:
    """A cluster of one broker as it is looked at: ``see`` and ``decide`` say what one look at each finds."""

    see: Callable[[], Mapping[TopicPartition, ReplicaObservation]] = dict
    decide: Callable[[], Sequence[Decision | Withdrawal]] = tuple
    looked: threading.Event = field(default_factory=threading.Event)
    decided: threading.Event = field(default_factory=threading.Event)
    cluster: Any = field(default_factory=lambda: SimpleNamespace(nodes=("0", CONTROLLER), controllers=(CONTROLLER,)))
    partitions: Mapping[TopicPartition, PartitionState] = field(default_factory=lambda: {LEDGER: ALONE})

    def controller_log(self) -> Scripted:
        return self

    def read_on(self) -> Sequence[Decision | Withdrawal]:
        try:
            return self.decide()
        finally:
            self.decided.set()

    def replica_probe(self, name: str, timeout_s: float) -> Scripted:
        return self

    def look(self, names: Iterable[TopicPartition]) -> Mapping[TopicPartition, ReplicaObservation]:
        try:
            return self.see()
        finally:
            self.looked.set()

    def close(self) -> None:
        pass

    def view(self) -> ClusterView:
        return ClusterView(0, (), {})


def sampler(scripted: Scripted, directory: Path) -> TimelineSampler:
    data = directory / "data"
    data.mkdir()
    observation = cast("ClusterObservation", scripted)
    return TimelineSampler(
        observation, directory / "seen", {"0": data}, clock_offset_ms=lambda node: 0, is_up=lambda node: True
    )


def once(problem: BaseException) -> Callable[[], Any]:
    """Fails the first time only, as what a thread stumbles over may be gone when it is asked for again."""
    problems = [problem]

    def fail() -> Any:
        if problems:
            raise problems.pop()
        return {}

    return fail


def rows_of(scripted: Scripted, directory: Path) -> list[dict[str, Any]]:
    watched = sampler(scripted, directory)
    watched.start()
    scripted.looked.wait()
    scripted.decided.wait()
    watched.stop()
    return list(watched.rows("r"))


def test_a_thread_that_stumbles_over_an_answer_leaves_no_timeline(tmp_path: Path) -> None:
    scripted = Scripted(see=once(KeyError("ledger")))
    with pytest.raises(EnvironmentFault, match=r"not watched to the end: KeyError\('ledger'\)"):
        rows_of(scripted, tmp_path)


def test_an_invariant_that_a_thread_finds_broken_is_told_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no leader"):
        rows_of(Scripted(see=once(AssertionError("no leader"))), tmp_path)


@pytest.mark.parametrize("problem", [EnvironmentFault("a record is unknown"), OSError("a record is unknown")], ids=repr)
def test_decisions_that_could_not_be_read_are_not_called_complete_when_they_can_later(
    problem: Exception, tmp_path: Path
) -> None:
    with pytest.raises(EnvironmentFault, match="a record is unknown"):
        rows_of(Scripted(decide=once(problem)), tmp_path)


def test_a_thread_that_does_not_end_leaves_no_timeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STOP_TIMEOUT_S", 0.0)
    asked, answered = threading.Event(), threading.Event()

    def see() -> Mapping[TopicPartition, ReplicaObservation]:
        asked.set()
        if threading.current_thread() is not threading.main_thread():
            answered.wait()
        return {}

    watched = sampler(Scripted(see=see), tmp_path)
    watched.start()
    asked.wait()
    watched.stop()
    try:
        with pytest.raises(EnvironmentFault, match="sampling 0 has not ended"):
            list(watched.rows("r"))
    finally:
        answered.set()


def test_a_broker_that_was_up_and_not_looked_at_for_long_has_a_row_that_says_so() -> None:
    silence, row = UnobservedTime(), {"kind": "final", "detail": json.dumps({"source": "live"})}
    silence.note(True, 0)
    silence.note(False, UNSEEN_NS)
    assert silence.annotated(row) == row
    silence.note(False, UNSEEN_NS + 1_000_000)
    assert json.loads(silence.annotated(row)["detail"]) == {"source": "live", "unseen_ms": UNSEEN_NS // 1_000_000 + 1}
    assert silence.annotated(row) == row


def test_the_time_without_an_attempt_counts_and_that_of_a_broker_that_was_down_does_not() -> None:
    starved, down = UnobservedTime(), UnobservedTime()
    for now_ns in (0, 2 * UNSEEN_NS):
        starved.note(True, now_ns)
    for now_ns in range(0, 2 * UNSEEN_NS, UNSEEN_NS // 10):
        down.note(True, now_ns)
    assert json.loads(starved.annotated({})["detail"]) == {"unseen_ms": 2 * UNSEEN_NS // 1_000_000}
    assert down.annotated({}) == {}


def test_the_row_that_follows_a_long_silence_tells_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.targets.kafka.unobserved_time.UNSEEN_NS", -1)
    decisions = [PartitionDecision(None, ALONE, 0, 0, "test")]
    seen = ReplicaObservation("leader", 0, 3, 3, 0, 1)
    scripted = Scripted(see=lambda: {LEDGER: seen}, decide=lambda: [decisions.pop()] if decisions else [])
    watched = sampler(scripted, tmp_path)
    watched.started("0", 0, 0)
    watched.start()
    scripted.looked.wait()
    scripted.decided.wait()
    watched.stop()
    states = [row for row in watched.rows("r") if row["kind"] == "state"]
    assert ["unseen_ms" in json.loads(row["detail"]) for row in states] == [True]


@dataclass
class ScriptedQuorum(Scripted):
    """The same with two controllers of its own, of whom the first leads and the second has not got as far."""

    cluster: Any = field(
        default_factory=lambda: SimpleNamespace(
            nodes=("0", CONTROLLER, "controller-1", "controller-2"),
            controllers=(CONTROLLER,),
            controller_named=node_name,
        )
    )

    def quorum_probe(self, controllers: Iterable[str], timeout_s: float) -> QuorumLooked:
        assert list(controllers) == ["controller-1", "controller-2"]
        return QuorumLooked(self.looked)


@dataclass
class QuorumLooked:
    """What is seen of that quorum."""

    looked: threading.Event

    def look(self) -> QuorumObservation:
        self.looked.set()
        voters = [QuorumReplica(101, 9), QuorumReplica(102, 5)]
        return QuorumObservation("controller-1", QuorumPartition(0, 0, 101, 4, 7, voters), 1)

    def close(self) -> None:
        pass


def test_what_a_quorum_has_committed_is_told_and_in_the_end_how_far_each_of_it_has_followed(tmp_path: Path) -> None:
    scripted = ScriptedQuorum(see=dict)
    watched = sampler(scripted, tmp_path)
    for name in ("controller-1", "controller-2"):
        watched.started(name, 0, 0)
    watched.start()
    scripted.looked.wait()
    scripted.decided.wait()
    while not list(tmp_path.rglob("controller-1.jsonl")):
        time.sleep(0.01)
    watched.stop()
    told = [row for row in watched.rows("r") if row["topic"] == "__cluster_metadata"]
    assert [(row["node"], row["kind"], row["role"], row["high_watermark"], row["log_end_offset"]) for row in told] == [
        (101, "state", "leader", 7, 9),
        (101, "final", "leader", 7, None),
        (102, "final", "follower", 5, None),
    ]


def test_an_election_that_a_power_loss_took_back_is_no_row_of_the_timeline(tmp_path: Path) -> None:
    created = PartitionDecision(None, ALONE, 0, 0, "created")
    elected = PartitionDecision(
        ALONE, ALONE._replace(leader=NodeId(1), leader_epoch=1, partition_epoch=1), 0, 0, "gone"
    )
    kept = PartitionDecision(ALONE, ALONE._replace(leader=NodeId(2), leader_epoch=1, partition_epoch=1), 0, 0, "kept")
    told: list[list[Decision | Withdrawal]] = [[Withdrawal([elected]), kept], [created, elected]]
    rows = rows_of(Scripted(decide=lambda: told.pop() if told else []), tmp_path)
    assert [row["leader"] for row in rows if row["kind"] == "election"] == [0, 2]


def test_of_controllers_whose_clocks_differ_no_clock_is_believed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    offsets = {"controller-1": 0, "controller-2": 0, "controller-3": 0}
    scripted = Scripted(cluster=SimpleNamespace(nodes=("0", *offsets), controllers=tuple(offsets)))
    watched = TimelineSampler(
        cast("ClusterObservation", scripted), tmp_path, {"0": tmp_path}, clock_offset_ms=offsets.__getitem__, is_up=bool
    )
    now_ns = time.monotonic_ns()
    decision = PartitionDecision(None, ALONE, 0, time.time_ns() // 1_000_000 - 1000, "a second ago")
    assert watched._when(decision, now_ns) < now_ns - 900_000_000
    offsets["controller-2"] = -1000
    assert watched._when(decision, now_ns) == now_ns
    offsets.update(dict.fromkeys(offsets, -1000))
    assert watched._when(decision, now_ns) >= now_ns - 100_000_000


def test_every_life_of_a_controller_of_a_quorum_is_told(tmp_path: Path) -> None:
    scripted = Scripted(cluster=SimpleNamespace(nodes=("0", "controller-1"), controllers=("controller-1",)))
    watched = sampler(scripted, tmp_path)
    for node, incarnation in (("0", 0), ("controller-1", 0), ("controller-1", 1)):
        watched.started(node, incarnation, incarnation)
    started = [row for row in watched.rows("r") if row["kind"] == "started"]
    lives = [(row["node"], row["incarnation"], row["sequence"]) for row in started]
    assert lives == [(0, 0, 0), (101, 0, 0), (101, 1, 0)]


def test_what_had_not_been_decided_when_one_read_before_was_decided_after_that(tmp_path: Path) -> None:
    told = PartitionDecision(None, ALONE, 0, time.time_ns() // 1_000_000 - 1000, "written a second ago")
    later: list[list[Decision | Withdrawal]] = [[told], []]
    watched = sampler(Scripted(decide=later.pop), tmp_path)
    watched._read_on()
    before_ns = watched._undecided_ns
    watched._read_on()
    assert before_ns <= watched._times_ns[told] <= time.monotonic_ns()


def test_where_a_log_starts_is_by_the_last_word_of_a_broker_that_lives_to_the_end(tmp_path: Path) -> None:
    starts = iter(range(10**9))
    scripted = Scripted(see=lambda: {LEDGER: ReplicaObservation("leader", 0, 10**9, 10**9, next(starts), 1)})
    watched = sampler(scripted, tmp_path)
    assert watched.last_log_starts("0") == {}
    watched.start()
    scripted.looked.wait()
    watched.stop()
    assert watched.last_log_starts("0") == {LEDGER: next(starts) - 1}
