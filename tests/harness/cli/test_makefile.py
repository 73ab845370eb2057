"""The newcomer's first command."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import harness

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
    for name in ("pyproject.toml", "requirements.lock"):
        (tmp_path / name).touch()
    said = make(tmp_path, target, "PYTHON=no-such-python false")
    assert said.returncode != 0
    assert "Python 3.11 or newer with the venv module" in said.stderr
    assert not (tmp_path / ".venv").exists()
