"""Random schedules on the whole broker: what they find, what they leave alone, and that a seed is one story."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from checkers.verdicts.check import check
from checkers.verdicts.memory import decided
from harness.broker.segments import SegmentLog
from harness.checker import Outcome, Verdict
from harness.cli import main
from harness.errors import ExitCode
from harness.exploration.depth import run_of
from harness.exploration.explore import run_seed
from harness.exploration.shrink import shrink_seed
from harness.replication.knobs import GENERATIONS
from harness.simulation.core.configuration import Configuration, Setup, setup
from harness.simulation.core.planned import ACTIVE_CONTROLLER, LEADER, Planned
from harness.simulation.stack.disk import MemoryFile
from harness.simulation.stack.stack_simulation import StackSimulation
from harness.simulation.violations import Violation
from tests.by_night import seeds
from tests.harness.simulation.judging import judged

SAFE = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false", "acks": "all", "load": "plain"}
CRASHES = {**SAFE, "faults": "kill:3,pause,partition", "checkpoint.ms": "5000", "fault.count": "12"}
POWER = {**SAFE, "faults": "power_loss:3,partition:2", "flush.messages": "0", "flush.ms": "0", "fault.count": "12"}
FLAWED = {"0.10": CRASHES, "3.7": POWER}
FIRST_LOST_WRITE = {"0.10": 12, "3.7": 62}
MS = 1_000_000


def violations(chosen: Setup, seeds: Iterable[int]) -> dict[int, Violation]:
    explored = (run_seed(seed, chosen) for seed in seeds)
    return {one.seed: one.violation for one in explored if one.violation is not None}


@cache
def first_lost_write(generation: str) -> int:
    """The first seed that loses a record, sought where one did."""
    chosen, seeds = setup(generation, FLAWED[generation], "stack"), range(FIRST_LOST_WRITE[generation], 300)
    return next(seed for seed in seeds if (v := run_seed(seed, chosen).violation) and v.kind == "lost-write")


@seeds(day=6, night=25)
def test_the_newest_protocol_keeps_what_it_promises_whatever_happens(seeds: range) -> None:
    assert violations(setup("4.1", SAFE, "stack"), seeds) == {}


@seeds(day=1, night=3)
@pytest.mark.parametrize("generation", sorted(GENERATIONS))
def test_without_any_fault_every_generation_converges_and_loses_nothing(generation: str, seeds: range) -> None:
    chosen = setup(generation, {"fault.count": "0", "loss": "0", "late": "0", "load": "plain"}, "stack")
    assert violations(chosen, seeds) == {}


def test_the_oldest_protocol_loses_what_it_acknowledged_and_the_newest_truncation_prevents_it() -> None:
    seed = first_lost_write("0.10")
    mended = setup("0.10", {**CRASHES, "replication.truncation": "diverging_fetch"}, "stack")
    assert run_seed(seed, mended).violation is None


def test_the_last_replica_standing_loses_what_it_had_not_flushed_unless_there_are_eligible_leader_replicas() -> None:
    seed = first_lost_write("3.7")
    assert run_seed(seed, setup("4.1", POWER, "stack")).violation is None


@seeds(day=2, night=8, first=12)
def test_the_witness_and_the_checkers_count_the_same(seeds: range) -> None:
    for generation, settings in (("0.10", CRASHES), ("3.7", POWER), ("4.1", SAFE)):
        runs = [judged(seed, setup(generation, settings, "stack")) for seed in seeds]
        settled = [one for one in runs if one.finished.converged]
        assert [one.witnessed for one in settled] == [one.checked for one in settled]


def test_a_fault_that_is_aimed_hits_whom_it_means_and_is_over_after_its_time() -> None:
    configuration = Configuration(horizon_ms=300)
    faults = [
        Planned(50 * MS, 100 * MS, kind, LEADER, peer="all" if kind == "partition" else "")
        for kind in ("kill", "stop", "power_loss", "pause", "partition", "slow_links", "clock", "disk_full")
    ]
    faults.append(Planned(50 * MS, 100 * MS, "kill", ACTIVE_CONTROLLER))
    for fault in faults:
        run = StackSimulation(
            1, setup("4.1", SAFE, "stack"), configuration=configuration, faults=[fault], recorded=True
        )
        finished = run.run()
        assert [one.kind for one in finished.happened] == [fault.kind]
        assert finished.converged
        assert finished.violations == ()
        assert run.recording is not None
        (row,) = run.recording.faults
        assert row["healed_ns"] - row["injected_ns"] == 100 * MS
        others = ["1", "2", "controller"] if fault.kind == "partition" else []
        assert (row["kind"], row["nodes"]) == (fault.kind, ["controller"] if fault.on_controller else ["0", *others])


@pytest.mark.parametrize("depth", ["core", "stack"])
def test_an_order_to_delete_is_in_the_evidence_and_is_all_that_may_be_gone(depth: str) -> None:
    configuration = Configuration(horizon_ms=300)
    faults = [
        Planned(100 * MS, 0, "delete_records", LEADER, amount=50),
        Planned(250 * MS, 0, "delete_records", LEADER, amount=0),
    ]
    chosen = setup("4.1", SAFE, depth)
    run = run_of(1, chosen, faults=faults, configuration=configuration, recorded=True)
    assert run.run().violations == ()
    assert run.recording is not None
    manifest = run.recording.manifest("4.1")
    assert manifest.orders is not None
    first, second = manifest.orders
    assert (first["node"], first["invoked_ns"], first["error"]) == (0, 100 * MS, None)
    assert first["before"] == first["low_watermark"] == second["before"] > 0
    assert first["completed_ns"] > first["invoked_ns"]
    recording = run.recording
    tables = (recording.history, recording.timeline, recording.replica_logs)
    lost = [one.verdict for one in decided(manifest, tables, recording.faults).anomalies if one.kind == "lost-write"]
    assert set(lost) == {Verdict.DOCUMENTED}
    unordered = replace(manifest, orders=[])
    lost = [one.verdict for one in decided(unordered, tables, recording.faults).anomalies if one.kind == "lost-write"]
    assert set(lost) == {Verdict.VIOLATION}


def test_frames_that_waited_at_a_cut_that_drops_are_lost_with_their_connection() -> None:
    configuration = Configuration(horizon_ms=400, producers=1, send_every_ms=20, send_timeout_ms=300)
    acknowledged = []
    for holds in (True, False):
        cut = Planned(50 * MS, 60 * MS, "partition", 0, peer="clients", direction="in", holds=holds)
        run = StackSimulation(1, setup("4.1", SAFE, "stack"), configuration=configuration, faults=[cut], recorded=True)
        assert run.run().violations == ()
        assert run.recording is not None
        sent = [row for row in run.recording.history if row["f"] == "send"]
        unknown = [row["error"] for row in sent if row["type"] == "info"]
        acknowledged.append(len(unknown))
    assert acknowledged[0] == 0
    assert acknowledged[1] > 0


# --------------------------------------------------------------------------------------------------- broken brokers


def broken(chosen: Setup, seeds: int = 12) -> Iterator[str]:
    explored = (run_seed(seed, chosen).violation for seed in range(seeds))
    return (one.why for one in explored if one is not None and one.kind == "broken-core")


def test_a_disk_that_only_says_that_it_has_flushed_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryFile, "flush", lambda _: None)
    found = broken(setup("4.1", {**SAFE, "faults": "power_loss", "flush.messages": "1"}, "stack"))
    assert any("had flushed" in why for why in found)


def test_a_log_that_loses_its_last_batch_when_it_is_opened_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    recover = SegmentLog._recover

    def forgetful(self: SegmentLog, *arguments: object) -> object:
        found = recover(self, *arguments)  # type: ignore[arg-type]
        self.truncate(max(self.log_end_offset - 1, self.log_start_offset))
        return found

    monkeypatch.setattr(SegmentLog, "_recover", forgetful)
    found = broken(setup("4.1", {**SAFE, "faults": "kill"}, "stack"))
    assert any("does not find" in why for why in found)


def test_a_log_that_writes_something_else_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    truncate = SegmentLog.truncate
    monkeypatch.setattr(SegmentLog, "truncate", lambda self, offset: truncate(self, offset + 1))
    deposed = {"faults": "partition:3", "disturbances": "elect:3", "acks": "1", "fault.count": "12"}
    found = broken(setup("2.8", SAFE | deposed, "stack"), 20)
    assert any("cuts at" in why for why in found)


# --------------------------------------------------------------------------------------------------------- commands

DEEP = ("--depth", "stack", *(word for key, value in CRASHES.items() for word in ("--set", f"{key}={value}")))


def test_an_exploration_of_the_whole_broker_leads_to_the_replay_of_its_first_flawed_seed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seed = first_lost_write("0.10")
    words = ["simulate", "--seeds", "1", "--first-seed", str(seed), "--jobs", "1", "--generation", "0.10", *DEEP]
    assert main(words) == ExitCode.VIOLATION
    printed = capsys.readouterr()
    assert "lost-write" in printed.out
    last = printed.err.splitlines()[-1]
    assert last.startswith(f"reproduce: seawall replay {seed} --generation 0.10 --depth stack ")
    assert main(last.removeprefix("reproduce: seawall ").split()) == ExitCode.VIOLATION


def test_a_depth_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["simulate"], ["replay", "1"], ["shrink", "1"]):
        assert main([*words, "--depth", "sea"]) == ExitCode.USAGE
        assert "--depth 'sea' is not known" in capsys.readouterr().err


def test_a_recorded_run_is_a_run_directory_like_any_other(tmp_path: Path) -> None:
    run = run_of(4, setup("0.10", CRASHES, "stack"), recorded=True)
    run.run()
    assert run.recording is not None
    directory = run.recording.write(tmp_path / "run", "0.10")
    (verdict,) = check([directory.path], "reference")
    assert verdict.outcome is not Outcome.INVALID


@pytest.mark.nightly("by day test_commands shrinks a seed of the core, and plays what is left on the whole broker")
def test_a_seed_is_shrunk_at_the_depth_at_which_it_was_found() -> None:
    seed, chosen = first_lost_write("3.7"), setup("3.7", POWER, "stack")
    drawn = run_of(seed, chosen)
    shrunk = shrink_seed(seed, chosen)
    assert isinstance(drawn, StackSimulation)
    assert isinstance(shrunk.world, StackSimulation)
    assert shrunk.violation.kind == "lost-write"
    assert shrunk.violation.verdict is Verdict.VIOLATION
    assert 0 < 2 * len(shrunk.faults) <= len(drawn.faults), "half of it has nothing to do with the loss"


@pytest.mark.nightly(
    "four processes; by day test_chaos compares bytes across orders of hashes, and test_world the core"
)
@pytest.mark.parametrize("hash_seeds", [("0", "1"), ("0", "4242")])
def test_the_same_seed_prints_the_same_bytes_whatever_the_order_of_hashes(hash_seeds: tuple[str, str]) -> None:
    code = "import sys; from harness.cli import main; print([main([*sys.argv[1:], '--generation', one]) for one in {}])"
    command = [sys.executable, "-c", code.format(("0.10", "4.1")), "replay", "3", *DEEP]
    told = set()
    for hash_seed in hash_seeds:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        told.add(subprocess.run(command, capture_output=True, env=environment, check=True).stdout)
    assert len(told) == 1
    assert len(told.pop().splitlines()) > 400
