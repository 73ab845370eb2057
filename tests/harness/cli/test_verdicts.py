"""From recorded runs to exit codes, tables and reports; and from a scenario to all of that."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import checkers
from harness import runner
from harness.checker import Outcome, RunVerdict
from harness.detection.withheld import samples
from harness.errors import EnvironmentFault, ExitCode, InvalidRun
from harness.history.run_directory import RunDirectory
from harness.replication.knobs import CURRENT_GENERATION
from harness.runner import Plan, Reporter
from harness.runner.run_progress import Watch
from tests.checkers.all_cases import CASES
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import Story
from tests.harness.cli.calling import Seawall
from tests.harness.runner.mix_of import mix_of

LOST = ({"kind": "lost-write"}, {"kind": "vanished-read"}, {"kind": "hw-regression"})


def sound(path: Path, predictions: Sequence[dict[str, str]] = ()) -> Path:
    story = Story(path.name)
    story.send()
    story.poll(1, [0])
    story.fault()
    return story.finish().write(path, predictions=predictions)


def lossy(path: Path, predictions: Sequence[dict[str, str]] = ()) -> Path:
    """A clean election loses the acknowledged record at offset 0."""
    story = Story(path.name)
    story.send()
    story.poll(1, [0])
    story.fault()
    for node in (1, 2):
        story.cut(node, 0)
    story.elect(1)
    return story.finish().write(path, predictions=predictions)


def unproven(path: Path) -> Path:
    story = Story(path.name)
    story.send()
    story.fault(proven_ns=None)
    return story.finish().write(path)


def unread(path: Path) -> Path:
    story = Story(path.name)
    story.send()
    return story.finish(read=False).write(path)


@pytest.mark.parametrize(
    ("runs", "code"),
    [
        ((sound,), 0),
        ((lossy,), 1),
        ((unproven,), 3),
        ((unread, sound), 2),
        ((unproven, unread), 3),
        ((unproven, lossy, sound), 1),
    ],
)
def test_runs_checked_together_end_with_the_code_of_the_worst(
    seawall: Seawall, tmp_path: Path, runs: Sequence[Callable[[Path], Path]], code: int
) -> None:
    paths = [run(tmp_path / str(number)) for number, run in enumerate(runs)]
    said = seawall("check", *paths, "--engine", "reference")
    assert said.code == code
    assert all(f"report: {path / 'report.html'}" in said.out for path in paths)
    assert all((path / "report.html").is_file() for path in paths)
    assert code == 0 or said.last_line.startswith("reproduce: seawall check ")


@pytest.mark.parametrize("error", [EnvironmentFault("Spark failed: no answer."), ConnectionRefusedError()])
def test_a_check_whose_jvm_was_ended_by_the_same_signal_was_interrupted(
    seawall: Seawall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def clean_up() -> None:
        try:
            raise ConnectionRefusedError
        except OSError as refused:
            raise error from refused

    def interrupted(*_: object, **__: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            clean_up()

    monkeypatch.setattr("checkers.check", interrupted)
    said = seawall("check", sound(tmp_path / "1"))
    assert (said.code, said.complaint) == (130, "seawall: interrupted.")


def test_what_limits_a_verdict_is_printed_once(seawall: Seawall, tmp_path: Path) -> None:
    story = Story("r")
    story.send()
    story.fault()
    story.finish()
    story.timeline = samples(story.timeline, lambda row: True)
    path = story.write(tmp_path / "r", guarantees=SAMPLED)
    said = seawall("check", path, "--engine", "reference")
    assert (said.code, said.out.count("incomplete-candidate")) == (0, 1)


def test_the_console_counts_every_anomaly_and_says_at_which_offsets_they_are(seawall: Seawall, tmp_path: Path) -> None:
    story = Story("r")
    for _ in range(300):
        story.send()
    story.finish()
    gone = [row for row in story.final_rows() if row["offset"] in (*range(10, 110), 150, *range(200, 250))]
    story.forget(*gone)
    said = seawall("check", story.write(tmp_path / "r"), "--engine", "reference")
    assert "151 lost-write" in said.out
    assert (
        "VIOLATION 151 lost-write: ledger-0 at offsets 10 to 109, offset 150, offsets 200 to 249. The first: "
        in said.out
    )


def test_ranges_that_the_console_does_not_list_are_counted(seawall: Seawall, tmp_path: Path) -> None:
    story = Story("r")
    for _ in range(301):
        story.send()
    story.finish()
    story.forget(*(row for row in story.final_rows() if row["offset"] is not None and row["offset"] % 2))
    said = seawall("check", story.write(tmp_path / "r"), "--engine", "reference")
    assert "VIOLATION 150 lost-write: ledger-0 at offset 1, offset 3" in said.out
    assert "offset 11; 144 more ranges of offsets. The first: " in said.out


def test_the_console_counts_what_is_excused_for_itself_and_last(seawall: Seawall, tmp_path: Path) -> None:
    story = Story("r")
    for _ in range(41):
        story.send()
    for _ in range(7):
        story.send(acks=0, offset=None, append=False)
    story.finish()
    story.forget(*(row for row in story.final_rows() if row["offset"] in range(20, 40)))
    said = seawall("check", story.write(tmp_path / "r"), "--engine", "reference")
    lines = [" ".join(line.split()) for line in said.out.splitlines() if "lost-write" in line]
    assert [line.split(": ")[0] for line in lines] == [
        "story VIOLATION VIOLATION 20 lost-write",
        "WEAK 7 lost-write",
        "VIOLATION 20 lost-write",
        "WEAK 7 lost-write, the first at ledger-0",
    ]
    assert "27 lost, 7 of them excused" in said.out


def test_a_violation_among_what_was_only_counted_has_a_line(seawall: Seawall, tmp_path: Path) -> None:
    [one] = [case for case in CASES if case.name == "a_deletion_that_comes_too_soon_is_found_behind_many_others"]
    run = one.story("r").write(tmp_path / "r", **one.manifest)
    said = seawall("check", run, "--engine", "reference")
    assert said.code == ExitCode.VIOLATION
    assert "VIOLATION lost-write at ledger-0: 35 more of this kind were found in the partition" in said.out
    assert "DOCUMENTED 60 lost-write, the first at ledger-0 offset 0" in said.out


def test_json_is_the_verdicts_and_nothing_else(seawall: Seawall, tmp_path: Path) -> None:
    said = seawall("check", lossy(tmp_path / "1"), sound(tmp_path / "2"), "--engine", "reference", "--json")
    broken, whole = json.loads(said.out)
    assert (broken["outcome"], whole["outcome"]) == ("violation", "pass")
    lost = next(anomaly for anomaly in broken["anomalies"] if anomaly["kind"] == "lost-write")
    assert (lost["topic"], lost["partition"], lost["offset"], lost["value"], lost["leader_epoch"]) == (
        "ledger", 0, 0, 0, 0,
    )  # fmt: skip
    written = json.loads((tmp_path / "1" / "verdict.json").read_text())
    assert broken.items() <= written.items()
    assert written.keys() - broken.keys() == {"inputs", "digest"}


def test_a_report_of_a_verdict_that_was_edited_says_so_and_ends_with_3(seawall: Seawall, tmp_path: Path) -> None:
    path = lossy(tmp_path / "1")
    assert seawall("check", path, "--engine", "reference").code == 1
    verdict = path / "verdict.json"
    verdict.write_text(verdict.read_text().replace('"outcome": "violation"', '"outcome": "pass"'))
    said = seawall("report", path)
    assert (said.code, said.out.strip()) == (3, str(path / "report.html"))
    assert "verdict.json was changed after the checker had written it. Judge it again: seawall check" in said.err
    page = (path / "report.html").read_text()
    assert '<span class="word">INVALID</span>' in page
    assert "verdict.json was changed after the checker had written it." in page
    assert seawall("check", path, "--engine", "reference").code == 1
    assert seawall("report", path).code == 0


def test_a_report_of_a_run_that_changed_since_its_check_names_the_table(seawall: Seawall, tmp_path: Path) -> None:
    path = sound(tmp_path / "1")
    assert seawall("check", path, "--engine", "reference").code == 0
    shutil.copy(lossy(tmp_path / "2") / "history" / "part-00000.parquet", path / "history" / "part-00000.parquet")
    said = seawall("report", path)
    assert said.code == 3
    assert "What was checked is not what is in this directory now: history changed since." in said.err
    assert '<span class="word">INVALID</span>' in (path / "report.html").read_text()


def test_a_report_is_written_again_from_the_verdict(seawall: Seawall, tmp_path: Path) -> None:
    path = sound(tmp_path / "1")
    assert seawall("report", path).code == 3
    seawall("check", path, "--engine", "reference")
    (path / "report.html").unlink()
    assert seawall("report", path).out.strip() == str(path / "report.html")
    assert '<span class="word">PASS</span>' in (path / "report.html").read_text()


def test_without_java_the_check_says_how_to_decide_all_the_same(
    seawall: Seawall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setattr("spark_analysis.session._state", {})
    said = seawall("check", sound(tmp_path / "1"))
    assert said.code == 4
    assert "Java 17" in said.complaint
    assert "--engine reference" in said.complaint


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Runs are not run but taken from hand-made ones, and nobody has Java; the list fills with their plans."""
    plans: list[Plan] = []

    def run(plan: Plan, out_dir: Path, report: Reporter, watch: Watch) -> RunDirectory:
        path = out_dir / str(len(plans))
        plans.append(plan)
        record = lossy if plan.generation == "0.10" else sound
        return RunDirectory(record(path, LOST if plan.forecast.predictions else ()))

    monkeypatch.setattr(runner, "run", run)
    monkeypatch.setattr("spark_analysis.session._state", {})
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    return plans


def test_a_run_is_checked_and_reported_even_without_java(
    seawall: Seawall, tmp_path: Path, recorded: list[Plan]
) -> None:
    said = seawall("run", "random-chaos", "--seed", "7", "--duration-s", "3", "--out", tmp_path)
    assert said.code == 0
    assert "The reference engine decides instead." in said.complaint
    assert "PASS. " in said.out
    assert [(plan.seed, mix_of(plan).duration_s, plan.generation) for plan in recorded] == [
        (7, 3.0, CURRENT_GENERATION)
    ]


def test_what_the_reference_says_of_a_short_run_is_told_before_spark_is_asked(
    seawall: Seawall, tmp_path: Path, recorded: list[Plan]
) -> None:
    said = seawall("run", "kip-101-double-failover", "--generation", "0.10", "--out", tmp_path)
    assert said.code == 0
    told, asked, excused = (
        said.err.index(words)
        for words in (
            "AS PREDICTED\n",
            "asking Spark, which must agree",
            "The reference engine decides instead.",
        )
    )
    assert told < asked < excused


def test_the_reference_is_not_asked_first_about_a_run_that_is_not_short(
    seawall: Seawall, tmp_path: Path, recorded: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_analysis.files.SMALL", 0)
    said = seawall("run", "random-chaos", "--duration-s", "3", "--out", tmp_path)
    assert said.code == 0
    assert "must agree" not in said.err
    assert "PASS. " in said.out


def test_engines_that_disagree_about_a_run_give_no_verdict_on_it(
    seawall: Seawall, tmp_path: Path, recorded: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(runs: Sequence[Path], engine: checkers.Engine, master: str | None, **_: object) -> list[RunVerdict]:
        verdicts = asked(runs, "reference", master)
        if engine == "reference":
            return verdicts
        return [replace(verdict, engine=engine, outcome=Outcome.INCONCLUSIVE) for verdict in verdicts]

    asked = checkers.check
    monkeypatch.setattr("checkers.check", check)
    said = seawall("run", "random-chaos", "--duration-s", "3", "--out", tmp_path)
    assert (said.code, said.out) == (ExitCode.INTERNAL, "")
    assert f"disagree about exit_code, outcome of {tmp_path / '0'}:" in said.err
    assert said.last_line == f"reproduce: seawall check {tmp_path / '0'}"


def test_a_run_with_a_violation_says_how_to_run_it_again(
    seawall: Seawall, tmp_path: Path, recorded: list[Plan]
) -> None:
    said = seawall("run", "kip-101-double-failover", "--out", tmp_path, "--set", "replication.isr_join=hw")
    assert (said.code, recorded[0].forecast.predictions) == (1, ())
    assert said.last_line.endswith(f"--set replication.isr_join=hw --seed {recorded[0].seed}")


def test_the_demo_passes_when_the_old_generation_loses_and_the_current_one_does_not(
    seawall: Seawall, tmp_path: Path, recorded: list[Plan]
) -> None:
    said = seawall("demo", "--out", tmp_path)
    assert said.code == 0
    assert [(plan.scenario.id, plan.generation) for plan in recorded] == [
        ("kip-101-double-failover", "0.10"),
        ("kip-101-double-failover", CURRENT_GENERATION),
        ("random-chaos", CURRENT_GENERATION),
    ]
    assert len({plan.seed for plan in recorded}) == 1
    assert "AS PREDICTED" in said.out
    assert said.out.count("report: ") == 3


def test_a_demo_in_which_the_old_generation_does_not_lose_has_failed(
    seawall: Seawall, tmp_path: Path, recorded: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.harness.cli.test_verdicts.lossy", sound)
    said = seawall("demo", "--out", tmp_path)
    assert said.code == 1
    assert said.last_line == "reproduce: seawall run kip-101-double-failover --generation 0.10 --seed 101"


def test_a_demo_that_breaks_off_is_checked_as_far_as_it_came(
    seawall: Seawall, tmp_path: Path, recorded: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = runner.run

    def broken(plan: Plan, out_dir: Path, report: Reporter, watch: Watch) -> RunDirectory:
        directory = whole(plan, out_dir, report, watch)
        if plan.generation == "0.10":
            return directory
        directory.finish("abandoned", 1.0, "schedule[3]: it did not come true.")
        raise runner.BrokenOff(InvalidRun("schedule[3]: it did not come true."), directory.path)

    monkeypatch.setattr(runner, "run", broken)
    said = seawall("demo", "--out", tmp_path)
    assert said.code == 3
    assert "schedule[3]: it did not come true." in said.complaint
    assert said.out.count("report: ") == 3
    again = f"--generation {CURRENT_GENERATION} --seed 101"
    assert said.last_line == f"reproduce: seawall run kip-101-double-failover {again}"


def test_a_loss_in_a_run_that_broke_off_is_still_a_loss(
    seawall: Seawall, tmp_path: Path, recorded: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(plan: Plan, out_dir: Path, report: Reporter, watch: Watch) -> RunDirectory:
        directory = RunDirectory(lossy(out_dir / "1", ()))
        directory.finish("abandoned", 1.0, "the cluster did not settle.")
        raise runner.BrokenOff(InvalidRun("the cluster did not settle."), directory.path)

    monkeypatch.setattr(runner, "run", broken)
    said = seawall("run", "random-chaos", "--seed", "7", "--out", tmp_path)
    assert said.code == 1
    assert "the cluster did not settle." in said.complaint


@pytest.mark.parametrize("end", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_check_that_ends_early_is_done_again_without_a_new_run(
    seawall: Seawall, tmp_path: Path, recorded: list[Plan], monkeypatch: pytest.MonkeyPatch, end: BaseException
) -> None:
    def ended(*_: object, **__: object) -> None:
        raise end

    monkeypatch.setattr("checkers.check", ended)
    for words in (("run", "random-chaos", "--duration-s", "3"), ("demo",)):
        recorded.clear()
        said = seawall(*words, "--out", tmp_path / words[0])
        assert said.code == (ExitCode.INTERRUPTED if isinstance(end, KeyboardInterrupt) else ExitCode.ENVIRONMENT)
        assert said.last_line.startswith(f"reproduce: seawall check {tmp_path / words[0]}/")
        assert len(said.last_line.split()) == 3 + len(recorded)
        if said.code == ExitCode.INTERRUPTED:
            assert f"interrupted while checking what is recorded in {tmp_path / words[0]}/" in said.complaint
