"""``seawall simulate``, ``replay`` and ``shrink``: what they print, and how they end."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import main
from harness.errors import ExitCode
from harness.scenario import load

OLD = ("--generation", "0.10", "--set", "min.insync.replicas=2", "--set", "faults=kill:2,pause,partition")


def test_an_exploration_names_its_seeds_the_rule_that_mends_them_and_how_to_see_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["simulate", "--first-seed", "46", "--seeds", "4", "--jobs", "1", *OLD]) == ExitCode.VIOLATION
    printed = capsys.readouterr()
    assert "lost-write" in printed.out
    assert "does not happen with replication.truncation=diverging_fetch" in printed.out
    last = printed.err.splitlines()[-1]
    assert last.startswith("reproduce: seawall replay ")
    words = last.removeprefix("reproduce: seawall ").split()
    assert main(words) == ExitCode.VIOLATION


MIX_OF_N01 = (
    *("--set", "faults=kill,stop,power_loss,pause,partition,partition/between,clock,kill/controller,pause/controller"),
    *("--set", "disturbances=slow_links,elect"),
)


@pytest.mark.parametrize(
    ("seed", "settings", "remedy"),
    [
        ("31609", MIX_OF_N01, "replication.reelected_leader=forgets"),
        ("63180", (), "replication.straddled_batch=cut"),
    ],
    ids=["N01", "N02"],
)
def test_a_flaw_of_every_generation_is_a_violation_and_the_rule_that_mends_it_is_named(
    seed: str, settings: tuple[str, ...], remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["simulate", "--seeds", "1", "--first-seed", seed, "--jobs", "1", "--set", "min.insync.replicas=2"]
    assert main([*words, *settings]) == ExitCode.VIOLATION
    assert f"does not happen with {remedy}\n" in capsys.readouterr().out
    assert main([*words, *settings, "--set", remedy]) == ExitCode.PASS


def test_an_exploration_that_finds_nothing_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--seeds", "30", "--jobs", "1", "--generation", "4.1"]) == ExitCode.PASS
    assert "30 seeds" in capsys.readouterr().out


def test_several_processes_find_what_one_does(capsys: pytest.CaptureFixture[str]) -> None:
    tables = []
    for jobs in ("1", "2"):
        words = ["simulate", "--first-seed", "85", "--seeds", "30", "--jobs", jobs]  # more than one task has
        assert main([*words, *OLD]) == ExitCode.VIOLATION
        tables.append([line for line in capsys.readouterr().out.splitlines() if "seeds/s" not in line])
    assert tables[0] == tables[1]


@pytest.mark.parametrize(
    "setting", ["session.timeout.ms=20", "heartbeat.ms=400", "request.timeout.ms=20", "replica.fetch.wait.max.ms=900"]
)
def test_times_that_depend_on_a_pinned_one_follow_it(setting: str) -> None:
    settings = [word for one in (setting, "fault.count=0") for word in ("--set", one)]
    assert main(["simulate", "--seeds", "20", "--jobs", "1", *settings]) == ExitCode.PASS


def test_time_may_be_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--minutes", "0.01", "--jobs", "1", "--generation", "4.1"]) == ExitCode.PASS
    assert "0 with a violation" in capsys.readouterr().out


def test_exploring_may_begin_anywhere(capsys: pytest.CaptureFixture[str]) -> None:
    main(["simulate", "--seeds", "8", "--first-seed", "105", "--jobs", "1", *OLD])
    firsts = [line.split(":")[0] for line in capsys.readouterr().out.splitlines() if line.startswith("seed ")]
    assert firsts
    assert all(105 <= int(first.removeprefix("seed ")) < 113 for first in firsts)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["simulate", "--seeds", "1", "--minutes", "1"], "exclude each other"),
        (["simulate", "--set", "faults=flood"], "unknown fault 'flood'; known: kill, stop,"),
        (["simulate", "--set", "faults=kill,partitions"], "did you mean 'partition'?"),
        (["simulate", "--set", "faults=stall"], "no seed draws 'stall', because"),
        (["simulate", "--set", "faults=wipe_disk:2"], "no seed draws 'wipe_disk', because"),
        (["simulate", "--set", "faults=corrupt_log"], "no seed draws 'corrupt_log', because"),
        (["simulate", "--set", "faults=log_dir_failure"], "no seed draws 'log_dir_failure', because"),
        (["simulate", "--set", "faults=elect"], "'elect' belongs to --set disturbances"),
        (["simulate", "--set", "disturbances=kill"], "'kill' belongs to --set faults"),
        (["simulate", "--set", "disturbances=slow_link"], "did you mean 'slow_links'?"),
        (["simulate", "--set", "disturbances=retention"], "--set deletions=N says how often"),
        (["simulate", "--set", "min.insync.replica=2"], "is not known"),
        (["simulate", "--set", "replication.factor=many"], "is not a value"),
        (["simulate", "--set", "replication.truncation=never"], "is not a value"),
        (["simulate", "--set", "faults="], "unknown fault"),
        (["simulate", "--set", "faults=kill:0"], "weights are at least 1"),
        (["simulate", "--set", "faults=kill:-1"], "weights are at least 1"),
        (["simulate", "--set", "faults=kill:"], "is not a value"),
        (["simulate", "--set", "acks=7"], "is not a value"),
        (["simulate", "--set", "acks="], "is not a value"),
        (["simulate", "--set", "min.insync.replicas=99"], "out of range"),
        (["simulate", "--set", "min.insync.replicas=0"], "out of range"),
        (["simulate", "--set", "replication.factor=0"], "out of range"),
        (["simulate", "--set", "loss=nan"], "out of range"),
        (["simulate", "--set", "loss=1.5"], "out of range"),
        (["simulate", "--set", "horizon.ms=-5"], "out of range"),
        (["simulate", "--set", "heartbeat.ms=0"], "out of range"),
        (["simulate", "--set", "session.timeout.ms=1"], "out of range"),
        (["simulate", "--set", "heartbeat.ms=50", "--set", "session.timeout.ms=50"], "must be at least twice"),
        (["simulate", "--first-seed", "99999999999999999999999"], "out of range"),
        (["replay", "99999999999999999999999"], "out of range"),
        (["replay", "1", "--generation", "9.9"], "is not known"),
        (["shrink", "1", "--generation", "4.1"], "breaks no promise"),
        (["shrink", "no-such-scenario"], "no scenario goes by"),
        (["shrink", "random-chaos"], "has no schedule"),
        (["shrink", "kip-101-double-failover", "--generation", "4.1"], "does no harm"),
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == ExitCode.USAGE
    assert complaint in capsys.readouterr().err


def test_a_replayed_seed_can_be_checked_like_a_recorded_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    code = main(["replay", "35", "--generation", "0.10", "--out", str(run)])
    assert "R" in capsys.readouterr().out
    assert main(["check", str(run), "--engine", "reference"]) == code == ExitCode.VIOLATION


def test_a_shrunk_seed_is_a_scenario_that_still_shows_it_on_the_whole_broker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faults = "faults=kill:2,stop,pause:2,partition:2,partition/between,clock,kill/controller,pause/controller"
    safe = ("min.insync.replicas=2", "unclean.leader.election.enable=false", "checkpoint.ms=5000")
    settings = (*safe, faults, "disturbances=slow_links,elect")
    pinned = [word for setting in settings for word in ("--set", setting)]
    assert main(["shrink", "147", "--generation", "0.10", *pinned]) == ExitCode.PASS
    file = tmp_path / "shrunk.yaml"
    file.write_text(capsys.readouterr().out)
    scenario = load(str(file))
    assert scenario.schedule is not None
    assert len(scenario.schedule) < 20
    assert main(["scenario", "run", str(file), "--target", "simulated"]) == ExitCode.PASS


@pytest.mark.parametrize(
    "scenario",
    [
        "crash-while-loading",
        pytest.param("hw-checkpoint-never-written", marks=pytest.mark.nightly("has twenty steps; by day one with six")),
    ],
)
def test_a_scenario_shrinks_to_the_steps_that_it_takes(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shrink", scenario]) == ExitCode.PASS
    assert "outcomes:" in capsys.readouterr().out
