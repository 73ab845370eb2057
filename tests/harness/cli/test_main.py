"""Errors end in one sentence, the documented exit code, and how to reproduce them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness import runner
from harness.cli.machine import java, maven
from harness.errors import EnvironmentFault
from harness.runner import plan
from harness.runner.journal import journal_directory
from harness.scenario import load
from tests.harness.cli.calling import Seawall
from tests.harness.fake_java import fake_java, java_that_says

SCENARIO = """
id: mine
title: Mine
source: a test
topics: [{name: ledger}]
workload: {name: unique_sends}
schedule: [{send: {per_partition: 1}}]
"""


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["frob"], "frob"),
        (["run"], "SCENARIO"),
        (["run", "random-chaos", "--sed", "1"], "--sed"),
        (["run", "random-chaos", "--seed", "many"], "--seed"),
        (["run", "random-chaos", "--seed", "-1"], "-1"),
        (["run", "random-chaos", "--seed", 2**63], str(2**63)),
        (["run", "random-chais"], "did you mean 'random-chaos'?"),
        (["run", "random-chaos", "--generation", "0.12"], "0.10, 0.11, 2.0.0"),
        (["run", "random-chaos", "--target", "mainframe"], "mainframe"),
        (["run", "random-chaos", "--duration-s", "0"], "duration 0 s"),
        (["run", "random-chaos", "--set", "workload.rate"], "KEY=VALUE"),
        (["run", "random-chaos", "--set", "workload.ratte=1"], "did you mean 'rate'?"),
        (["run", "random-chaos", "--set", "replication.truncation=never"], "epoch_pair, diverging_fetch"),
        (["run", "./nowhere.yaml"], "nowhere.yaml"),
        (["scenario", "show", "nonsense"], "nonsense"),
        (["check"], "RUN_DIR"),
        (["check", ".", "--engine", "flink"], "flink"),
        (["cluster", "up", "--brokers", "0"], "--brokers"),
        (["cluster", "up", "--topic", "ledger"], "NAME:PARTITIONS:RF"),
        (["cluster", "up", "--topic", "ledger:1:4"], "replication factor 4"),
        (["cluster", "up", "--generation", "9"], "generation '9'"),
    ],
)
def test_a_wrong_command_line_exits_with_64_and_names_what_is_wrong(
    seawall: Seawall, words: list[object], named: str
) -> None:
    said = seawall(*words)
    assert said.code == 64
    assert named in said.complaint
    assert "reproduce:" not in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("id: [\n", "line 2"),
        (SCENARIO + "colour: blue\n", "'colour'"),
        (SCENARIO.replace("send", "sned"), "sned"),
        (SCENARIO.replace("unique_sends", "unique_sents"), "did you mean 'unique_sends'?"),
        ("- 1\n", "mine.yaml"),
    ],
)
def test_a_wrong_scenario_file_is_refused_with_the_place_that_is_wrong(
    seawall: Seawall, tmp_path: Path, text: str, named: str
) -> None:
    (tmp_path / "mine.yaml").write_text(text)
    said = seawall("run", tmp_path / "mine.yaml", "--out", tmp_path / "runs")
    assert said.code == 64
    assert named in said.complaint
    assert not (tmp_path / "runs").exists()


def test_output_that_cannot_be_written_is_the_environments_fault(seawall: Seawall) -> None:
    said = seawall("run", "random-chaos", "--out", "/dev/null/runs")
    assert said.code == 4
    assert "/dev/null/runs" in said.complaint


def test_what_is_no_run_directory_is_an_invalid_run(seawall: Seawall, tmp_path: Path) -> None:
    for words in (("check", tmp_path, "--engine", "reference"), ("report", tmp_path)):
        said = seawall(*words)
        assert said.code == 3
        assert str(tmp_path) in said.complaint


def test_the_drawn_seed_is_part_of_how_to_reproduce(seawall: Seawall) -> None:
    command = ("run", "random-chaos", "--out", "/dev/null/runs")
    assert seawall(*command).last_line.rpartition(" --seed ")[2].isdecimal()
    assert seawall(*command, "--seed=7").last_line == f"reproduce: seawall {' '.join(command)} --seed=7"


@pytest.mark.parametrize("words", ["check", "report", "diff .", "export jepsen --out x", "import jepsen --out x"])
def test_a_path_that_is_not_there_is_a_wrong_command_line(seawall: Seawall, words: str) -> None:
    said = seawall(*words.split(), "nowhere")
    assert said.code == 64
    assert "does not exist" in said.complaint


def test_ctrl_c_exits_with_130(seawall: Seawall, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "heal_leftovers", interrupted)
    said = seawall("heal")
    assert (said.code, said.complaint) == (130, "seawall: interrupted.")


@pytest.mark.usefixtures("without_nohup")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_and_a_closed_terminal_heal_like_ctrl_c(
    seawall: Seawall, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    def signalled(*_: object, **__: object) -> list[str]:
        os.kill(os.getpid(), number)
        return ["not reached"]

    before = signal.getsignal(number)
    monkeypatch.setattr(runner, "heal_leftovers", signalled)
    assert seawall("heal").code == 130
    assert signal.getsignal(number) is before


def test_nohup_is_respected(seawall: Seawall, monkeypatch: pytest.MonkeyPatch) -> None:
    def signalled(*_: object, **__: object) -> list[str]:
        os.kill(os.getpid(), signal.SIGHUP)
        return ["went on"]

    monkeypatch.setattr(runner, "heal_leftovers", signalled)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        said = seawall("heal")
    finally:
        signal.signal(signal.SIGHUP, before)
    assert (said.code, said.out) == (0, "went on\n")


def test_a_file_that_cannot_be_written_is_the_environments_fault(
    seawall: Seawall, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "latest").mkdir()
    said = seawall("run", "random-chaos", "--out", tmp_path)
    assert said.code == 4
    assert str(tmp_path / "latest") in said.complaint


@pytest.mark.parametrize("bug", [AssertionError("never"), ValueError("odd"), KeyError(1)])
def test_a_bug_keeps_its_traceback_and_is_never_taken_for_a_violation(
    seawall: Seawall, monkeypatch: pytest.MonkeyPatch, bug: Exception
) -> None:
    def broken(*_: object, **__: object) -> list[str]:
        raise bug

    monkeypatch.setattr(runner, "heal_leftovers", broken)
    said = seawall("heal")
    assert said.code == 70
    assert "Traceback" in said.err
    assert type(bug).__name__ in said.err
    assert "bug in seawall" in said.complaint
    assert said.last_line == "reproduce: seawall heal"


@pytest.mark.parametrize(
    ("refusal", "sentence"),
    [
        (OSError(27, "File too large"), "the system refused: File too large."),
        (OSError("[Errno 28] Error writing bytes to file.\nmore"), "refused: [Errno 28] Error writing bytes to file."),
        (OSError(), "the system refused: OSError."),
        (PermissionError(13, "Permission denied", "runs/run.json"), "seawall: runs/run.json: Permission denied."),
    ],
)
def test_what_the_system_refuses_is_one_sentence_and_the_environments_fault(
    seawall: Seawall, monkeypatch: pytest.MonkeyPatch, refusal: OSError, sentence: str
) -> None:
    def refused(*_: object, **__: object) -> list[str]:
        raise refusal

    monkeypatch.setattr(runner, "heal_leftovers", refused)
    said = seawall("heal")
    assert said.code == 4
    assert said.complaint.endswith(sentence)
    assert said.last_line == "reproduce: seawall heal"
    assert "Traceback" not in said.err


def test_a_file_size_limit_in_the_middle_of_a_run_is_no_violation(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(SCENARIO)
    code = "import sys; from harness.cli import main; sys.exit(main())"
    call = f'ulimit -f 1; exec "{sys.executable}" -c "{code}" run "{tmp_path}/mine.yaml" --out "{tmp_path}/runs"'
    ended = subprocess.run(("bash", "-c", call), capture_output=True, text=True, check=False)
    assert (ended.returncode, "Traceback" in ended.stderr) == (4, False)
    assert ended.stderr.splitlines()[-1].startswith("reproduce: seawall run ")


def test_help_version_and_no_command_at_all_end_with_0(seawall: Seawall) -> None:
    assert "cluster" in seawall().out
    assert "cluster" in seawall("--help").out
    assert seawall("--version").out.startswith("seawall 0.")


def test_every_command_explains_itself(seawall: Seawall) -> None:
    for command in ("demo", "run", "check", "report", "cluster", "scenario", "doctor", "heal"):
        said = seawall(command, "--help")
        assert (said.code, said.err) == (0, "")


def test_every_key_that_the_help_gives_as_an_example_exists(seawall: Seawall) -> None:
    words = seawall("run", "--help").out.replace("\u2502", " ").split()
    examples = [word.rstrip(",.") for word in words if re.fullmatch(r"[a-z]+\.[\w.]+=\w+[,.]", word)]
    assert len(examples) == 4
    for example in examples:
        plan(load("random-chaos"), overrides=dict([example.split("=")]))


def test_the_command_line_loads_nothing_heavy_before_it_is_needed() -> None:
    code = "import sys, harness.cli; print([m for m in ('pyspark', 'pyarrow', 'confluent_kafka') if m in sys.modules])"
    assert subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True).stdout == "[]\n"


def test_scenarios_are_listed_and_shown_as_they_are_written(seawall: Seawall) -> None:
    listed = [line.split("\t") for line in seawall("scenario", "list").out.splitlines()]
    assert "kip-101-double-failover" in {line[1] for line in listed}
    assert [list(one.values()) for one in json.loads(seawall("scenario", "list", "--json").out)] == listed
    shown = seawall("scenario", "show", "kip-101-double-failover").out
    assert shown.startswith("# Proves")
    assert "\nid: kip-101-double-failover\n" in shown


def test_a_journal_that_others_may_read_is_the_environments_fault(
    seawall: Seawall, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    journal_directory().chmod(0o755)
    assert seawall("heal").code == EnvironmentFault.exit_code


def test_the_doctor_leaves_out_the_colours_of_what_a_program_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "mvn"
    program.write_text("#!/bin/sh\nprintf '\\033[1mApache Maven 3.8.7\\033[m\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert maven().seen == f"Apache Maven 3.8.7 ({program})"


def test_the_doctor_says_what_is_missing_and_how_to_get_it(
    seawall: Seawall, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    said = seawall("doctor")
    assert said.code == 4
    assert "Missing or broken, and needed: Java." in said.out
    assert "set JAVA_HOME" in said.out


@pytest.mark.parametrize(("version", "present"), [("1.8.0_402", False), ("17.0.2", True), ("22-ea", True)])
def test_the_doctor_takes_a_java_that_is_young_enough(
    version: str, present: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = java_that_says(tmp_path, f'Picked up JAVA_TOOL_OPTIONS: -Xint\nopenjdk version "{version}"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert (java().present, java().seen) == (present, f'openjdk version "{version}" ({found})')


def test_the_doctor_does_not_take_a_java_that_crashes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = fake_java(tmp_path, "exit 134")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert (java().present, java().seen) == (False, f"it does not say its version ({found})")
