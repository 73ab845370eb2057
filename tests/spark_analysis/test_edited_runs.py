"""Whatever is edited in a recorded run, both engines make the same of it: see :mod:`tests.checkers.run_edits`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

import reports
from checkers import check
from harness import runner
from harness.checker import Outcome, RunVerdict, Verdict
from harness.errors import ExitCode, InvalidRun
from harness.history.run_directory import RunDirectory
from harness.scenario import load
from tests.bench.healthy_runs import QUICK
from tests.checkers.edited import Run
from tests.checkers.run_edits import EDITS, LOST, Edit
from tests.spark_analysis.differential import disagreements
from tests.spark_analysis.one_job import OneJob

CHAOS = "random-chaos"
HEALTHY = QUICK | {"settings.min.insync.replicas": "2", "workload.acks": "[all]"}


JUDGED = [edit.name for edit in EDITS if edit.outcome != "refused"]
BY_SPARK = JUDGED[::18]
"""The edits of simulated runs that Spark judges, too: each has a thousand rows of history. By night it judges all."""


class Edited(NamedTuple):
    """Recorded runs, by the scenario; one for each edit, by its name; and what each engine says of those."""

    recorded: Mapping[str, Path]
    runs: Mapping[str, Path]
    reference: Mapping[str, RunVerdict]
    spark: Mapping[str, RunVerdict]


def record(target: str, root: Path) -> dict[str, Path]:
    """Record the runs that are edited, on ``target``; returns them by the scenario."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(root / "runtime"))
        chaos = runner.plan(load(CHAOS), target, "4.1", 2, duration_s=2.0, overrides=HEALTHY)
        lost = runner.plan(load(LOST), target, "4.1", 0)
        return {plan.scenario.id: runner.run(plan, root / plan.scenario.id).path for plan in (chaos, lost)}


def write(recorded: Mapping[str, Path], root: Path) -> None:
    """Write a run for each edit."""
    for edit in EDITS:
        source = recorded[edit.of]
        run = Run.read(source)
        edit.rows(run)
        edit.files(run.write(source, root / edit.name))


def write_runs(root: Path) -> list[Path]:
    """The edited runs of simulated clusters that Spark judges."""
    write(record("simulated", root), root)
    return [root / name for name in BY_SPARK]


@pytest.fixture(
    scope="module",
    params=["simulated", pytest.param("builtin", marks=pytest.mark.nightly("one more job of Spark for the same code"))],
)
def edited(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Edited:
    """What was recorded on a target, and edited."""
    if request.param == "simulated":
        one_job: OneJob = request.getfixturevalue("one_job")
        root = one_job.root(__name__)
        recorded = {scenario: root / scenario / "latest" for scenario in (CHAOS, LOST)}
        spark = dict(zip(BY_SPARK, one_job.spark(__name__).values(), strict=True))
    else:
        root = tmp_path_factory.mktemp(request.param)
        recorded = record(request.param, root)
        write(recorded, root)
        found = check([root / name for name in JUDGED], engine="spark", session=request.getfixturevalue("spark"))
        spark = dict(zip(JUDGED, found, strict=True))
    reference = check([root / name for name in JUDGED], engine="reference")
    runs = {edit.name: root / edit.name for edit in EDITS}
    return Edited(recorded, runs, dict(zip(JUDGED, reference, strict=True)), spark)


def names(*, refused: bool, by_day: Collection[str] | None = None) -> list[object]:
    """The edits whose runs are refused, or not; those that are not ``by_day`` are for the night."""
    late = pytest.mark.nightly("draws a report like another; by day one edit in six, and all are judged")
    return [
        pytest.param(edit, id=edit.name, marks=[] if by_day is None or edit.name in by_day else [late])
        for edit in EDITS
        if (edit.outcome == "refused") == refused
    ]


def test_the_runs_that_are_edited_are_sound(edited: Edited) -> None:
    verdicts = check(list(edited.recorded.values()), engine="reference")
    assert [verdict.outcome for verdict in verdicts] == [Outcome.PASS, Outcome.PASS]
    assert {anomaly.verdict for anomaly in verdicts[1].anomalies} == {Verdict.DOCUMENTED}


def test_every_edit_has_a_name_of_its_own() -> None:
    assert len({edit.name for edit in EDITS}) == len(EDITS)


def test_both_engines_say_the_same_of_edited_runs(edited: Edited) -> None:
    assert list(disagreements([(found, edited.reference[name]) for name, found in edited.spark.items()])) == []


@pytest.mark.parametrize("edit", names(refused=False))
def test_an_edited_run_has_the_outcome_that_is_written_down(edit: Edit, edited: Edited) -> None:
    engines = (edited.reference, edited.spark)
    for verdict in (said[edit.name] for said in engines if edit.name in said):
        grave = [one.kind for one in verdict.anomalies if one.verdict is Verdict.VIOLATION]
        assert verdict.outcome == edit.outcome, (grave, verdict.reasons)
        match verdict.outcome:
            case Outcome.VIOLATION:
                assert edit.says in grave
                assert verdict.exit_code is ExitCode.VIOLATION
            case Outcome.INVALID | Outcome.INCONCLUSIVE:
                assert any(edit.says in reason for reason in verdict.reasons), verdict.reasons
                assert all("\n" not in reason for reason in verdict.reasons)
            case Outcome.PASS:
                assert verdict.reasons == []


@pytest.mark.parametrize("edit", names(refused=True))
@pytest.mark.parametrize("engine", ["spark", "reference"])
def test_a_run_that_is_refused_is_refused_in_a_sentence(
    edit: Edit, engine: str, edited: Edited, spark: SparkSession
) -> None:
    with pytest.raises(InvalidRun) as refused:
        check([edited.runs[edit.name]], engine=engine, session=spark)  # type: ignore[arg-type]
    assert edit.says in str(refused.value)
    assert len(str(refused.value)) < 1_000
    assert refused.value.exit_code is ExitCode.INVALID


@pytest.mark.parametrize("edit", names(refused=False, by_day=JUDGED[::6]))
def test_the_report_of_an_edited_run_is_drawn_or_refused(edit: Edit, edited: Edited) -> None:
    path = edited.runs[edit.name]
    try:
        assert reports.write(path).is_file()
    except InvalidRun as refused:
        assert str(RunDirectory(path).path) in str(refused)  # noqa: PT017 - not always raised
