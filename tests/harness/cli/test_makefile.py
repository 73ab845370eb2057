"""The newcomer's first command."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import harness
from harness.nightly.cells import expand
from harness.nightly.plan import load
from harness.replication.knobs import GENERATIONS
from harness.targets.kafka.releases import release

MAKEFILE = Path(harness.__file__).parents[1] / "Makefile"


def make(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = ("make", "--file", str(MAKEFILE), "--directory", str(directory), *words)
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_help_lists_every_target_that_is_meant_for_people() -> None:
    targets = set(re.findall(r"^([a-z]+):", MAKEFILE.read_text(), re.MULTILINE))
    listed = set(re.findall(r"^  make ([a-z]+) ", make(MAKEFILE.parent, "help").stdout, re.MULTILINE))
    assert targets == listed >= {"setup", "demo", "test", "lint", "check"}


@pytest.mark.parametrize("target", ["setup", "demo", "test", "lint"])
def test_without_a_python_that_will_do_every_target_says_so_and_leaves_nothing(tmp_path: Path, target: str) -> None:
    for name in ("pyproject.toml", "requirements.lock", "requirements-uv.lock"):
        (tmp_path / name).touch()
    said = make(tmp_path, target, "PYTHON=no-such-python false")
    assert said.returncode != 0
    assert "Python 3.11 or newer with the venv module" in said.stderr
    assert not (tmp_path / ".venv").exists()


COUNTED = """\
#!/bin/sh
echo "$(basename "$0") $*" >> asked
case "$*" in ${FAILS:-nothing}) exit ${WITH:-1};; esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A directory with the Makefile and an environment in which commands only write down what was asked of them."""
    shutil.copy(MAKEFILE, tmp_path / "Makefile")
    locks = ("pyproject.toml", "requirements.lock", "requirements-uv.lock")
    for name in (*locks, ".venv/bin/seawall", ".venv/bin/python", ".venv/.installed"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(COUNTED)
        path.chmod(0o755)
    return tmp_path


def asked(checkout: Path, target: str, fails: str = "nothing", code: int = 1) -> tuple[int, list[str], str]:
    """How ``make target`` ends, what it runs, and what it says, when what looks like ``fails`` ends with ``code``."""
    environment = {**os.environ, "FAILS": fails, "WITH": str(code)}
    command = ("make", "--directory", str(checkout), target)
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return said.returncode, (checkout / "asked").read_text().splitlines(), said.stderr


def test_the_night_has_a_release_of_every_generation_the_tests_of_containers_and_both_engines(checkout: Path) -> None:
    plan = load(MAKEFILE.with_name("nightly.yaml")).plan
    assert [one.cells for one in plan.allow] == ["known-flaws", "shares"]
    cells = expand(plan, "n")
    _, run, _ = asked(checkout, "nightly")
    fetched = [line.rpartition(" ")[2] for line in run if line.startswith("seawall kafka fetch ")]
    names = {"engines", "fuzz", "tests-targets", "tests-signals", "tests-spark", "tests-others"}
    assert {one.group for one in cells if one.kind == "command"} == names
    assert {one.group for one in cells if one.kind == "simulate"} == {"core", "stack", "known-flaws"}
    on_kafka = {one.target.removeprefix("process:") for one in cells if one.group == "museum"}
    assert {release(version).generation for version in on_kafka} == set(GENERATIONS)
    *in_museum, newest = fetched
    assert on_kafka == set(in_museum)
    controls = {f"process:{in_museum[-1]}{control}" for control in ("", "#quorum", "#combined")}
    on = {"builtin", "process:3.9.1", *controls, f"process:{newest}", f"process:{newest}#quorum"}
    assert {one.target for one in cells if one.duration_s} == on
    excused = plan.allow[1].cells
    assert {one.target for one in cells if one.matches(excused)} == {"process:4.3.0"}
    assert {one.generation for one in cells if one.group == "matrix"} == set(GENERATIONS)


@pytest.mark.parametrize(("code", "merged"), [(0, 1), (1, 1), (4, 1), (70, 1), (64, 0), (130, 0)])
def test_a_night_is_merged_unless_it_did_not_begin_or_a_signal_ended_it(checkout: Path, code: int, merged: int) -> None:
    ended, run, _ = asked(checkout, "nightly", "nightly nightly.yaml*", code)
    assert [line for line in run if "nightly.yaml" in line]
    assert sum(line.startswith("seawall nightly merge runs/nights/") for line in run) == merged
    assert (ended == 0) == bool(merged)


def test_no_night_begins_without_its_releases(checkout: Path) -> None:
    ended, run, _ = asked(checkout, "nightly", "*fetch 3.9.1", 4)
    assert ended != 0
    assert run[-1] == "seawall kafka fetch 3.9.1"


def test_a_night_fails_as_its_merge_does(checkout: Path) -> None:
    assert asked(checkout, "nightly", "nightly merge*")[0] != 0


def test_the_museum_is_written_also_when_a_release_went_otherwise(checkout: Path) -> None:
    ended, run, _ = asked(checkout, "museum", "*matrix*process:0.10*")
    assert ended != 0
    assert run[-1] == "seawall museum runs/museum"


@pytest.mark.nightly("makes an environment and asks a package index for what it refuses")
def test_a_uv_that_is_not_the_pinned_one_is_not_installed(tmp_path: Path) -> None:
    """pip compares what it is given with the lock before anything of it runs."""
    for name in ("pyproject.toml", "requirements.lock"):
        (tmp_path / name).touch()
    lock = (MAKEFILE.parent / "requirements-uv.lock").read_text()
    (tmp_path / "requirements-uv.lock").write_text(re.sub(r"sha256:[0-9a-f]{64}", f"sha256:{'0' * 64}", lock))
    said = make(tmp_path, "setup")
    assert said.returncode != 0
    assert not (tmp_path / ".venv" / "bin" / "uv").exists()
