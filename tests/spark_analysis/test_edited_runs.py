"""Whatever is edited in a recorded run, both engines make the same of it: see :mod:`tests.checkers.run_edits`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

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
BY_DAY = JUDGED[::3]
"""The edits that are judged by day; by night all are."""
BY_SPARK = JUDGED[::36]
"""The edits of simulated runs that Spark judges, too: each has a thousand rows of history. By night it judges all."""


class Edited:
    """Recorded runs, and one for each edit, written and judged when a test asks for it.

    Args:
        recorded: the directories of what was recorded, by the scenario.
        root: where edited runs are written.
        spark: what Spark says of edited runs, by the edit's name.
    """

    def __init__(self, recorded: Mapping[str, Path], root: Path, spark: Mapping[str, RunVerdict]) -> None:
        self.recorded = recorded
        self.spark = spark
        self._root = root
        self._reference: dict[str, RunVerdict] = {}

    def run(self, edit: Edit) -> Path:
        """The run with that edit."""
        path = self._root / edit.name
        if not path.exists():
            write(edit, self.recorded, self._root)
        return path

    def reference(self, edit: Edit) -> RunVerdict:
        """What the reference engine says of it."""
        if edit.name not in self._reference:
            [self._reference[edit.name]] = check([self.run(edit)], engine="reference")
        return self._reference[edit.name]


def record(target: str, root: Path) -> dict[str, Path]:
    """Record the runs that are edited, on ``target``; returns them by the scenario."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(root / "runtime"))
        chaos = runner.plan(load(CHAOS), target, "4.1", 2, duration_s=2.0, overrides=HEALTHY)
        lost = runner.plan(load(LOST), target, "4.1", 0)
        return {plan.scenario.id: runner.run(plan, root / plan.scenario.id).path for plan in (chaos, lost)}


def write(edit: Edit, recorded: Mapping[str, Path], root: Path) -> None:
    """Write a run with that edit below ``root``."""
    source = recorded[edit.of]
    run = Run.read(source)
    edit.rows(run)
    edit.files(run.write(source, root / edit.name))


def write_runs(root: Path) -> list[Path]:
    """The edited runs of simulated clusters that Spark judges."""
    recorded = record("simulated", root)
    for edit in EDITS:
        if edit.name in BY_SPARK:
            write(edit, recorded, root)
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
        return Edited(recorded, root, dict(zip(BY_SPARK, one_job.spark(__name__).values(), strict=True)))
    root = tmp_path_factory.mktemp(request.param)
    recorded = record(request.param, root)
    for edit in EDITS:
        write(edit, recorded, root)
    found = check([root / name for name in JUDGED], engine="spark", session=request.getfixturevalue("spark"))
    return Edited(recorded, root, dict(zip(JUDGED, found, strict=True)))


def judged(by_day: Collection[str]) -> list[object]:
    """The edits whose runs are judged; those that are not ``by_day`` are for the night."""
    late = pytest.mark.nightly("takes a run like another; by day one edit in three is judged, and one in twelve drawn")
    edits = (edit for edit in EDITS if edit.outcome != "refused")
    return [pytest.param(edit, id=edit.name, marks=[] if edit.name in by_day else [late]) for edit in edits]


REFUSED = [pytest.param(edit, id=edit.name) for edit in EDITS if edit.outcome == "refused"]


def test_the_runs_that_are_edited_are_sound(edited: Edited) -> None:
    verdicts = check(list(edited.recorded.values()), engine="reference")
    assert [verdict.outcome for verdict in verdicts] == [Outcome.PASS, Outcome.PASS]
    assert {anomaly.verdict for anomaly in verdicts[1].anomalies} == {Verdict.DOCUMENTED}


def test_every_edit_has_a_name_of_its_own() -> None:
    assert len({edit.name for edit in EDITS}) == len(EDITS)


def test_both_engines_say_the_same_of_edited_runs(edited: Edited) -> None:
    both = [(edited.spark[edit.name], edited.reference(edit)) for edit in EDITS if edit.name in edited.spark]
    assert list(disagreements(both)) == []


@pytest.mark.parametrize("edit", judged(BY_DAY))
def test_an_edited_run_has_the_outcome_that_is_written_down(edit: Edit, edited: Edited) -> None:
    by_spark = [edited.spark[edit.name]] if edit.name in edited.spark else []
    for verdict in (edited.reference(edit), *by_spark):
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


@pytest.mark.parametrize("edit", REFUSED)
@pytest.mark.parametrize("engine", ["spark", "reference"])
def test_a_run_that_is_refused_is_refused_in_a_sentence(
    edit: Edit, engine: str, edited: Edited, spark: SparkSession
) -> None:
    with pytest.raises(InvalidRun) as refused:
        check([edited.run(edit)], engine=engine, session=spark)  # type: ignore[arg-type]
    assert edit.says in str(refused.value)
    assert len(str(refused.value)) < 1_000
    assert refused.value.exit_code is ExitCode.INVALID


@pytest.mark.parametrize("edit", judged(JUDGED[::12]))
def test_the_report_of_an_edited_run_is_drawn_or_refused(edit: Edit, edited: Edited) -> None:
    path = edited.run(edit)
    edited.reference(edit)
    try:
        assert reports.write(path).is_file()
    except InvalidRun as refused:
        assert str(RunDirectory(path).path) in str(refused)  # noqa: PT017 - not always raised
