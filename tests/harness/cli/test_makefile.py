"""The newcomer's first command."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import harness
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
    code, run, _ = asked(checkout, "nightly")
    assert code == 0
    played = [match[1] for line in run if (match := re.match(r"seawall scenario matrix --target process:(\S+)", line))]
    assert {release(version).generation for version in played} == set(GENERATIONS)
    assert "seawall scenario matrix --target builtin --jobs 2" in run
    assert any(
        re.fullmatch(r"seawall run random-chaos --target process:4\.\S+ --duration-s 3600", line) for line in run
    )
    targets = [
        match[1] for line in run if (match := re.match(r"seawall run random-chaos --target process:(\S+)", line))
    ]
    assert [target.partition("#")[2] for target in targets] == ["", "quorum", "combined"]
    assert "python -m pytest -m nightly" in run
    assert "python -m tests.fuzz.live --minutes 10" in run
    assert run[-1] == "python tests/spark_analysis/differential.py 10000"


@pytest.mark.parametrize(
    ("fails", "named"),
    [("*matrix*builtin*", "night-matrix"), ("*matrix*process:2.0.0*", "kafka-2.0.0"), ("*fetch*3.9.1*", "kafka-3.9.1")],
)
@pytest.mark.parametrize("code", [1, 3, 4])
def test_a_night_goes_on_after_what_failed_and_fails_in_the_end(
    checkout: Path, fails: str, named: str, code: int
) -> None:
    ended, run, said = asked(checkout, "nightly", fails, code)
    assert ended != 0
    assert run[-1] == "python tests/spark_analysis/differential.py 10000"
    assert named in said


def test_a_violation_that_is_known_does_not_fail_a_night_and_a_crash_does(checkout: Path) -> None:
    assert asked(checkout, "nightly", "*--first-seed*", 1)[0] == 0
    assert asked(checkout, "nightly", "*--first-seed*", 70)[0] != 0


def test_the_museum_is_written_also_when_a_release_went_otherwise(checkout: Path) -> None:
    ended, run, _ = asked(checkout, "museum", "*matrix*process:0.10*")
    assert ended != 0
    assert run[-1] == "seawall museum runs/museum"


def test_a_uv_that_is_not_the_pinned_one_is_not_installed(tmp_path: Path) -> None:
    """pip compares what it is given with the lock before anything of it runs."""
    for name in ("pyproject.toml", "requirements.lock"):
        (tmp_path / name).touch()
    lock = (MAKEFILE.parent / "requirements-uv.lock").read_text()
    (tmp_path / "requirements-uv.lock").write_text(re.sub(r"sha256:[0-9a-f]{64}", f"sha256:{'0' * 64}", lock))
    said = make(tmp_path, "setup")
    assert said.returncode != 0
    assert not (tmp_path / ".venv" / "bin" / "uv").exists()
