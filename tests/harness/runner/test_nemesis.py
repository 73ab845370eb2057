from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import faults
from harness.clock import SystemClock
from harness.errors import EnvironmentFault, InvalidRun
from harness.history.schema import FAULTS
from harness.model import TopicPartition
from harness.runner import nemesis as nemesis_module
from harness.runner.journal import Journal, NothingToUndo, journal_directory
from harness.runner.nemesis import FaultRecord, Nemesis
from harness.target import Receipt
from harness.testing.scripted_target import ScriptedTarget, cluster_view, partition_view

VIEW = cluster_view(3, {TopicPartition("ledger", 0): partition_view(1, [1, 0, 2])})


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AIM_TIMEOUT_S", "PROOF_TIMEOUT_S", "LAST_LOOK_TIMEOUT_S", "HEAL_TIMEOUT_S"):
        monkeypatch.setattr(nemesis_module, name, 0.05)


@pytest.fixture
def target() -> ScriptedTarget:
    return ScriptedTarget(shown=VIEW)


@pytest.fixture
def nemesis(target: ScriptedTarget, tmp_path: Path) -> Iterator[Nemesis]:
    with Journal(tmp_path / "run") as journal:
        yield Nemesis(target, journal, SystemClock(), 7, lambda line: None)


def inject(nemesis: Nemesis, name: str, **written: object) -> FaultRecord:
    return nemesis.inject(name, faults.parse(written, "test"))


def test_a_fault_is_recorded_with_what_it_was_aimed_at_and_every_proof(nemesis: Nemesis) -> None:
    inject(nemesis, "dead", fault="kill", node="leader")
    nemesis.heal("dead")
    row = nemesis.records[0].row("r")
    assert row["nodes"] == ["1"]
    assert json.loads(row["parameters"]) == {"node": 1}
    assert json.loads(row["aim"])["partitions"]["ledger-0"]["leader"] == 1
    assert row["proof"] == "node 1 is dead"
    assert row["heal_proof"] == "node 1 answers"
    times = [row[name] for name in ("aimed_ns", "injected_ns", "proven_ns", "healed_ns", "heal_proven_ns")]
    assert times == sorted(times)
    assert list(row) == [column.name for column in FAULTS.columns]
    assert not nemesis.unproven()


def test_a_fault_that_does_nothing_is_not_proven(nemesis: Nemesis, target: ScriptedTarget) -> None:
    target.ignored.add("cut")
    record = inject(nemesis, "cut", fault="partition", links=[[2, 1]])
    assert record.proven_ns is None
    assert nemesis.unproven() == ["fault cut (partition) was not proven: 2->1 is whole."]


def test_a_fault_that_was_there_before_proves_nothing(nemesis: Nemesis, target: ScriptedTarget) -> None:
    target.kill("1")
    record = inject(nemesis, "dead", fault="kill", node=1)
    assert record.proven_ns is None
    assert record.proof == "it was so before: node 1 is dead"


def test_a_fault_that_the_target_refuses_is_not_proven(nemesis: Nemesis, target: ScriptedTarget) -> None:
    target.refused.add("pause")
    assert inject(nemesis, "frozen", fault="pause", node=0).proven_ns is None
    assert "refused, as scripted" in nemesis.unproven()[0]


def test_a_fault_with_nothing_to_aim_at_is_not_proven(nemesis: Nemesis, target: ScriptedTarget) -> None:
    target.shown = cluster_view(3)
    record = inject(nemesis, "dead", fault="kill", node="leader")
    assert record.row("r")["nodes"] == []
    assert record.row("r")["injected_ns"] is None
    assert "to aim at" in nemesis.unproven()[0]
    nemesis.heal("dead")


def test_a_fault_that_stays_is_not_proven_healed(nemesis: Nemesis, target: ScriptedTarget) -> None:
    inject(nemesis, "dead", fault="kill", node=0)
    target.ignored.add("restart")
    nemesis.heal("dead")
    assert nemesis.unproven() == ["fault dead (kill) was not proven healed: node 0 does not answer."]


def test_healing_starts_with_what_is_paused_and_then_goes_backwards(nemesis: Nemesis, target: ScriptedTarget) -> None:
    inject(nemesis, "cut", fault="partition", links=[[2, 1]])
    inject(nemesis, "frozen", fault="pause", node=1)
    inject(nemesis, "dead", fault="kill", node=0)
    target.calls.clear()
    nemesis.heal_all()
    assert [call[0] for call in target.calls] == ["resume", "restart", "mend"]
    nemesis.heal_all()
    assert len(target.calls) == 3


def test_a_fault_that_ceased_before_it_was_healed_is_not_proven(nemesis: Nemesis, target: ScriptedTarget) -> None:
    assert inject(nemesis, "frozen", fault="pause", node=1).proven_ns is not None
    target.resume("1")
    record = nemesis.heal("frozen")
    assert record.proven_ns is None
    [sentence] = nemesis.unproven()
    assert sentence.startswith("fault frozen (pause) was not proven: it was in effect (node 1 is stopped), ")
    assert sentence.endswith("but not until it was healed: node 1 is running.")


def test_a_fault_that_misses_one_probe_before_its_healing_stays_proven(
    nemesis: Nemesis, target: ScriptedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nemesis_module, "LAST_LOOK_TIMEOUT_S", 2.0)
    inject(nemesis, "frozen", fault="pause", node=1)
    looks = iter([Receipt(False, "node 1 is busy"), Receipt(True, "node 1 is stopped")])
    monkeypatch.setattr(target, "is_paused", lambda node: next(looks, Receipt(False, "node 1 is running")))
    assert nemesis.heal("frozen").proven_ns is not None
    assert not nemesis.unproven()


def test_what_was_seen_before_the_healing_is_added_to_the_proof(
    nemesis: Nemesis, target: ScriptedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = inject(nemesis, "skewed", fault="clock", node=1, offset_ms=5000)
    monkeypatch.setattr(target, "clock_offset_ms", lambda node: 5007 if not record.healed_ns else 0)
    nemesis.heal("skewed")
    assert record.proof is not None
    assert record.proof.endswith("reads +5000 ms off; before healing: the clock of node 1 reads +5007 ms off")


@pytest.mark.parametrize(
    ("first", "second", "claim"),
    [
        ({"fault": "kill", "node": 1}, {"fault": "disk_full", "node": "leader"}, "the process of node 1"),
        ({"fault": "pause", "node": 1}, {"fault": "kill", "node": 1}, "the process of node 1"),
        (
            {"fault": "clock", "node": 1, "offset_ms": 60000},
            {"fault": "clock", "node": "leader", "offset_ms": -60000},
            "the clock of node 1",
        ),
        (
            {"fault": "partition", "links": [[1, 0]]},
            {"fault": "partition", "links": [["leader", 0], [2, 0]]},
            "link 1->0",
        ),
    ],
    ids=str,
)
def test_two_faults_that_could_not_be_told_apart_are_not_in_force_together(
    nemesis: Nemesis, target: ScriptedTarget, first: dict[str, object], second: dict[str, object], claim: str
) -> None:
    inject(nemesis, "a", **first)
    done = list(target.calls)
    with pytest.raises(InvalidRun, match=f"fault b .* was not injected: fault a .*, which is in force, has {claim} to"):
        inject(nemesis, "b", **second)
    assert target.calls == done
    assert nemesis.records[-1].proven_ns is None
    nemesis.heal("a")
    assert inject(nemesis, "c", **second).proven_ns is not None


def test_faults_that_touch_one_node_in_different_ways_may_be_in_force_together(nemesis: Nemesis) -> None:
    inject(nemesis, "skewed", fault="clock", node=1, offset_ms=60000)
    inject(nemesis, "apart", fault="partition", links=[[2, 1]])
    inject(nemesis, "hold", fault="partition", links=[[1, 2], [1, 0]])
    inject(nemesis, "frozen", fault="pause", node=1)
    nemesis.heal_all()
    assert not nemesis.unproven()


class Witness(ScriptedTarget):
    """Notes what the journal says at the moment of each kill and restart."""

    def kill(self, node: str) -> None:
        self.calls.append(("journal", *journaled()))
        super().kill(node)

    def restart(self, node: str) -> None:
        self.calls.append(("journal", *journaled()))
        super().restart(node)


def journaled() -> list[str]:
    [path] = journal_directory().glob("*.json")
    return list(json.loads(path.read_text())["faults"])


def test_the_undo_is_written_down_before_the_fault_and_struck_out_after_its_healing(tmp_path: Path) -> None:
    witness = Witness(shown=VIEW)
    with Journal(tmp_path / "run") as journal:
        nemesis = Nemesis(witness, journal, SystemClock(), 7, lambda line: None)
        inject(nemesis, "dead", fault="kill", node=0)
        nemesis.heal("dead")
        assert journaled() == []
    assert witness.calls == [("journal", "dead"), ("kill", "0"), ("journal", "dead"), ("restart", "0")]


def test_the_same_seed_aims_at_the_same_node(target: ScriptedTarget, tmp_path: Path) -> None:
    def aims(seed: int) -> list[list[str]]:
        with Journal(tmp_path / "run") as journal:
            nemesis = Nemesis(ScriptedTarget(shown=VIEW), journal, SystemClock(), seed, lambda line: None)
            for name in map("f{}".format, range(10)):
                inject(nemesis, name, fault="clock", node="any", offset_ms=5000)
                nemesis.heal(name)
        return [record.row("r")["nodes"] for record in nemesis.records]

    assert aims(1) == aims(1)
    assert aims(1) != aims(2)


def test_what_was_done_so_far_is_told_before_and_after_each_fault_and_after_each_healing(
    target: ScriptedTarget,
) -> None:
    told: list[dict[str, tuple[str, ...]]] = []
    done: list[list[tuple[str, str]]] = []

    def note(records: Sequence[FaultRecord]) -> None:
        steps = ("injected", "proven", "heal_proven")
        told.append({one.name: tuple(x for x in steps if getattr(one, f"{x}_ns") is not None) for one in records})
        done.append(list(target.calls))

    nemesis = Nemesis(target, NothingToUndo(), SystemClock(), 7, lambda line: None, noted=note)
    inject(nemesis, "f1", fault="kill", node=1)
    inject(nemesis, "f2", fault="kill", node=2)
    nemesis.heal("f1")
    coming, there = ("injected",), ("injected", "proven")
    assert told == [
        {"f1": coming},
        {"f1": there},
        {"f1": there, "f2": coming},
        {"f1": there, "f2": there},
        {"f1": (*there, "heal_proven"), "f2": there},
    ]
    first, second, healing = ("kill", "1"), ("kill", "2"), ("restart", "1")
    assert done == [[], [first], [first], [first, second], [first, second, healing]]


@pytest.mark.parametrize(
    ("noted", "done"), [(0, []), (1, [("kill", "1"), ("kill", "2"), ("restart", "2"), ("restart", "1")])]
)
def test_what_cannot_be_written_down_ends_the_harm_and_not_the_healing(
    target: ScriptedTarget, noted: int, done: list[tuple[str, str]]
) -> None:
    """Where not even that it is coming can be, no harm is done."""
    left = 0

    def full(_: Sequence[FaultRecord]) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise EnvironmentFault("no space")

    nemesis = Nemesis(target, NothingToUndo(), SystemClock(), 7, lambda line: None, noted=full)
    for name, node in (("f1", 1), ("f2", 2)):
        left = noted
        with pytest.raises(EnvironmentFault, match="no space"):
            inject(nemesis, name, fault="kill", node=node)
    nemesis.heal_all()
    assert not nemesis.active
    assert target.calls == done
    assert [one.injected_ns is not None for one in nemesis.records] == [noted > 0] * 2
