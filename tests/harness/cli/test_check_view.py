"""How far a check has come: which engine, which stage, and how much there is to check."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.check_view import SPARK, CheckView, checking
from harness.history.operations import recorded_operations
from tests.checkers.story import Story
from tests.harness.cli.calling import Seawall


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    story = Story("r")
    for _ in range(7):
        story.send()
    story.finish().write(tmp_path / "r")
    return tmp_path / "r"


def test_operations_are_counted_by_the_files_footers(recorded: Path, tmp_path: Path) -> None:
    assert recorded_operations(recorded) >= 7
    assert recorded_operations(tmp_path / "elsewhere") == 0


def test_the_engine_and_its_stages_are_shown(recorded: Path) -> None:
    lines: list[str] = []
    with checking([recorded, recorded], "Spark", lines.append) as view:
        view.begins(SPARK)
        view.report("question 3 of 17 planned")
        assert view.in_a_line().startswith("still checking after 0 s: Spark: question 3 of 17 planned")
    [line] = lines
    assert line == f"checking {2 * recorded_operations(recorded)} operations in 2 runs with Spark"


def test_what_spark_computes_counts_only_when_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_analysis.job_progress.stages", lambda: "stage 3, 1 of 2 tasks done")
    __import__("spark_analysis.session")
    view = CheckView(0)
    for engine, said in ((SPARK, "Spark: stage 3, 1 of 2 tasks done"), ("the reference engine", "")):
        view.begins(engine)
        assert said in view.in_a_line()
        assert ("stage" in view.in_a_line()) is bool(said)


def test_spark_that_has_not_been_started_computes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from spark_analysis import job_progress

    monkeypatch.setattr("spark_analysis.session._state", {})
    assert job_progress.stages() == ""


def test_the_reference_engine_names_every_rule(seawall: Seawall, recorded: Path) -> None:
    from checkers import check
    from checkers.registry import PROMISES

    stages: list[str] = []
    check([recorded], "reference", report=stages.append)
    assert [stage for stage in stages if stage.startswith("rule ")] == [
        f"rule {number} of {len(PROMISES)}: {promise.KINDS[0].name}" for number, promise in enumerate(PROMISES, 1)
    ]
    assert (stages[0], stages[-1]) == ("reading the files", "judging")
    said = seawall("check", recorded, "--engine", "reference")
    assert [line.split("s  ")[1] for line in said.err.splitlines() if "checking" in line] == [
        f"checking {recorded_operations(recorded)} operations with the reference engine"
    ]
