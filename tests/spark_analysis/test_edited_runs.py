"""Whatever is edited in a recorded run, both engines make the same of it: see :mod:`tests.checkers.run_edits`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import reports
from checkers import check
from harness import runner
from harness.checker import Outcome, RunVerdict, Verdict
from harness.errors import ExitCode, InvalidRun
from harness.history import RunDirectory
from harness.scenario import load
from tests.bench.healthy_runs import QUICK
from tests.checkers.edited import Run
from tests.checkers.run_edits import EDITS, LOST, Edit
from tests.spark_analysis.differential import disagreements, opened_once, verdicts_on

CHAOS = "random-chaos"
HEALTHY = QUICK | {"settings.min.insync.replicas": "2", "workload.acks": "[all]"}


@pytest.fixture(
    scope="module", params=["simulated", pytest.param("builtin", marks=pytest.mark.nightly)]
)  # fmt: skip
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Path]]:
    """Runs to edit, by the scenario."""
    out = tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(out / "runtime"))
        chaos = runner.plan(load(CHAOS), request.param, "4.1", 2, duration_s=2.0, overrides=HEALTHY)
        lost = runner.plan(load(LOST), request.param, "4.1", 0)
        yield {plan.scenario.id: runner.run(plan, out).path for plan in (chaos, lost)}


@pytest.fixture(scope="module")
def edited(recorded: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """A run directory for each edit, by its name."""
    root, made = tmp_path_factory.mktemp("edited"), {}
    for edit in EDITS:
        source = recorded[edit.of]
        run = Run.read(source)
        edit.rows(run)
        made[edit.name] = run.write(source, root / edit.name)
        edit.files(made[edit.name])
    return made


@pytest.fixture(scope="module")
def verdicts(edited: Mapping[str, Path], spark: SparkSession) -> Mapping[str, tuple[RunVerdict, RunVerdict]]:
    """What both engines say of each run that they judge, in one job."""
    judged = [edit.name for edit in EDITS if edit.outcome != "refused"]
    paths = [edited[name] for name in judged]
    with opened_once():
        return dict(zip(judged, verdicts_on(paths, spark), strict=True))


def names(*, refused: bool) -> list[object]:
    """The edits whose runs are refused, or not."""
    return [pytest.param(edit, id=edit.name) for edit in EDITS if (edit.outcome == "refused") == refused]


def test_the_runs_that_are_edited_are_sound(recorded: Mapping[str, Path]) -> None:
    verdicts = check(list(recorded.values()), engine="reference")
    assert [verdict.outcome for verdict in verdicts] == [Outcome.PASS, Outcome.PASS]
    assert {anomaly.verdict for anomaly in verdicts[1].anomalies} == {Verdict.DOCUMENTED}


def test_every_edit_has_a_name_of_its_own() -> None:
    assert len({edit.name for edit in EDITS}) == len(EDITS)


def test_both_engines_say_the_same_of_edited_runs(
    verdicts: Mapping[str, tuple[RunVerdict, RunVerdict]],
) -> None:
    assert list(disagreements(list(verdicts.values()))) == []


@pytest.mark.parametrize("edit", names(refused=False))
def test_an_edited_run_has_the_outcome_that_is_written_down(
    edit: Edit, verdicts: Mapping[str, tuple[RunVerdict, RunVerdict]]
) -> None:
    for verdict in verdicts[edit.name]:
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
    edit: Edit, engine: str, edited: Mapping[str, Path], spark: SparkSession
) -> None:
    with pytest.raises(InvalidRun) as refused:
        check([edited[edit.name]], engine=engine, session=spark)  # type: ignore[arg-type]
    assert edit.says in str(refused.value)
    assert len(str(refused.value)) < 1_000
    assert refused.value.exit_code is ExitCode.INVALID


@pytest.mark.parametrize("edit", names(refused=False))
def test_the_report_of_an_edited_run_is_drawn_or_refused(
    edit: Edit, edited: Mapping[str, Path], verdicts: Mapping[str, tuple[RunVerdict, RunVerdict]]
) -> None:
    assert edit.name in verdicts
    try:
        assert reports.write(edited[edit.name]).is_file()
    except InvalidRun as refused:
        assert str(RunDirectory(edited[edit.name]).path) in str(refused)  # noqa: PT017 - not always raised
