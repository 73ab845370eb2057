"""Where PySpark, an extra, is not installed, the reference engine decides, and a sentence names that."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import ExitCode
from tests.checkers.story import Story
from tests.harness.cli.calling import Seawall


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_analysis.installed.has_spark", lambda: False)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    story = Story("sound")
    story.send()
    story.poll(1, [0])
    return story.finish().write(tmp_path / "sound")


def test_a_check_names_that_the_reference_engine_decides(seawall: Seawall, recorded: Path) -> None:
    said = seawall("check", recorded)
    assert (said.code, "PASS. " in said.out) == (0, True)
    assert said.complaint == (
        "seawall: PySpark is not installed. The reference engine decides; 'seawall[spark]' installs Spark."
    )


@pytest.mark.parametrize("words", [["--engine", "spark"], ["--master", "spark://localhost:7077"]])
def test_a_check_that_is_to_use_spark_names_the_extra(seawall: Seawall, recorded: Path, words: list[str]) -> None:
    said = seawall("check", recorded, *words)
    assert said.code == ExitCode.ENVIRONMENT
    assert said.complaint == (
        "seawall: PySpark is not installed. Install 'seawall[spark]', or check without Spark: --engine reference."
    )


def test_the_doctor_needs_no_java(seawall: Seawall, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    said = seawall("doctor")
    assert said.code == 0
    assert "The built-in cluster and the check by the reference engine work here." in said.out
    assert "PySpark" in said.out
