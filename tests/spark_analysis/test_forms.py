"""Rows and values that break the schema: the run is INVALID, by both engines, and the sentence says what."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers import check
from harness.checker import Outcome, RunVerdict, Verdict
from harness.cli import main
from harness.errors import ExitCode
from harness.history.run_directory import RunDirectory
from harness.history.run_json import VERDICTS
from tests.checkers.story import Story
from tests.spark_analysis.one_job import OneJob

Row = dict[str, Any]
Broken = Callable[[Story], None]


def row_of(rows: list[Row], **columns: object) -> Row:
    return next(row for row in rows if all(row[name] == value for name, value in columns.items()))


def in_history(column: str, value: object) -> Broken:
    return lambda story: row_of(story.history, f="send", type="ok").update({column: value})


def in_timeline(column: str, value: object, **which: object) -> Broken:
    return lambda story: row_of(story.timeline, **which).update({column: value})


BREACHES: Mapping[str, tuple[Broken, str]] = {
    "null-f": (in_history("f", None), "history/part-00000.parquet: row 1 has no f."),
    "type": (in_history("type", "OK"), "row 1 has the type 'OK', which is none of invoke, ok, fail, info."),
    "f": (in_history("f", "sned"), "row 1 has the f 'sned', which is none of"),
    "negative-ack": (in_history("offset", -1), "row 1 has the offset -1, and below 0 there is none."),
    "negative-delivery": (
        lambda story: row_of(story.history, f="poll", type="ok", offset=0).update(offset=-1),
        "row 7 has the offset -1, and below 0 there is none.",
    ),
    "no-topic": (in_history("topic", None), "row 1 names half of a partition: a topic or a number, and not both."),
    "no-place": (
        lambda story: row_of(story.history, f="send", type="ok").update(topic=None, partition=None),
        "row 1 is about a partition and names none.",
    ),
    "no-value": (in_history("value", None), "row 1 has no value, and is about a record that was sent."),
    "no-offset": (
        lambda story: row_of(story.history, f="poll", type="ok", offset=0).update(offset=None),
        "row 7 has no offset, and is about a record that a poll delivered.",
    ),
    "null-node": (in_timeline("node", None, kind="state"), "row 7 has no node."),
    "no-epoch": (in_timeline("leader_epoch", None, role="leader"), "has no leader_epoch, and is about a leader."),
    "no-mark": (in_timeline("high_watermark", None, role="leader"), "has no high_watermark, and is about a leader."),
    "no-end": (in_timeline("log_end_offset", None, role="leader"), "has no log_end_offset, and is about a leader."),
    "detail": (in_timeline("detail", "{clean: tru", kind="election"), "has a detail that is no JSON: '{clean: tru'."),
    "detail-list": (in_timeline("detail", "[1,2]", kind="election"), "has a detail that is no JSON object: '[1,2]'."),
    "isr": (in_timeline("isr", [0, None], role="leader"), "has a null among its isr."),
    "log": (lambda story: story.logs[0].update(control="Abort"), "row 0 has the control 'Abort', which is none of"),
    "fault": (lambda story: story.faults[0].update(parameters="x"), "row 0 has a parameters that is no JSON: 'x'."),
}  # fmt: skip


def written(path: Path, change: Broken | None = None, **manifest: Any) -> Path:
    """A quiet run; what ``change`` makes of its rows is written although the schema does not permit it."""
    story = Story(path.name)
    for _ in range(3):
        story.send()
    story.poll(5, range(3))
    story.elect(1)
    story.fault()
    story.finish().write(path, **manifest)
    if change is not None:
        tables = {"history": story.history, "timeline": story.timeline, "replica_logs": story.logs}
        tables["faults"] = story.faults
        before = deepcopy(tables)
        marks = {"timeline": story.collected(sampled=False)[len(story.timeline) :]}
        change(story)
        for name, changed in ((name, rows) for name, rows in tables.items() if rows != before[name]):
            rows = [*changed, *marks.get(name, ())]
            [file] = RunDirectory(path).table_files(name)
            schema = pa.schema([field.with_nullable(True) for field in pq.read_schema(file)])
            pq.write_table(pa.Table.from_pylist(rows, schema=schema), file)
    return path


BY_SPARK = ("null-node", "type", "negative-delivery", "detail")
LIKE_OTHERS = pytest.mark.nightly("by day a command checks a run for each sort of breach, and the checker all of them")
BY_URI = ("null-node", "type", "detail", "no-topic", "no-place", "no-value", "no-offset")


def write_runs(root: Path) -> list[Path | str]:
    """Runs that break the schema, by path and by URI, and then a sound one of each."""
    places = [written(root / f"formless-{name}", BREACHES[name][0]) for name in BY_SPARK]
    uris = [written(root / f"far-{name}", BREACHES[name][0]).as_uri() for name in BY_URI]
    return [*places, *uris, written(root / "formed"), written(root / "far-formed").as_uri()]


def require_refused(verdicts: Sequence[RunVerdict], names: Sequence[str]) -> None:
    """The first ones are of runs that break the schema in these ways, the others of sound runs."""
    assert {verdict.outcome for verdict in verdicts[len(names) :]} == {Outcome.PASS}
    for name, verdict in zip(names, verdicts, strict=False):
        _, sentence = BREACHES[name]
        assert verdict.outcome is Outcome.INVALID, name
        assert sentence in verdict.reasons[0], name
        assert not [one for one in verdict.anomalies if one.verdict is not Verdict.INDETERMINATE], name


def test_rows_that_break_the_schema_make_that_run_invalid_and_no_other(tmp_path: Path) -> None:
    places = [written(tmp_path / name, breach) for name, (breach, _) in BREACHES.items()]
    require_refused(check([*places, written(tmp_path / "sound")], engine="reference"), list(BREACHES))


def test_spark_judges_the_other_runs_of_its_job(one_job: OneJob) -> None:
    require_refused(list(one_job.spark(__name__).values()), [*BY_SPARK, *BY_URI])


@pytest.mark.parametrize("name", [one if one in BY_SPARK else pytest.param(one, marks=LIKE_OTHERS) for one in BREACHES])
def test_a_run_of_such_rows_is_exit_code_3_with_a_report(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / name, BREACHES[name][0])
    assert main(["check", str(path), "--engine", "reference"]) == ExitCode.INVALID
    assert "Not looked at" in (path / "report.html").read_text()


@pytest.mark.parametrize("engine", ["reference", "spark"])
def test_a_run_json_with_a_value_that_is_none_is_exit_code_3_and_one_sentence(
    tmp_path: Path, engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "r")
    file = path / "run.json"
    document = json.loads(file.read_text())
    document["guarantees"]["min_insync_replicas"] = "2"
    file.write_text(json.dumps(document))
    assert main(["check", str(path), "--engine", engine]) == ExitCode.INVALID
    printed = "".join("".join(capsys.readouterr()).split())
    assert "guarantees.min_insync_replicas:'2'isrefused:inputshouldbeavalidinteger" in printed
    assert "Traceback" not in printed


def test_a_predicted_anomaly_that_no_checker_knows_is_no_failed_reproduction(tmp_path: Path) -> None:
    path = written(tmp_path / "r", predictions=[{"kind": "lostwrite"}])
    [verdict] = check([path], engine="reference")
    assert verdict.outcome is Outcome.INVALID
    assert verdict.reasons[0] == "run.json predicts 'lostwrite', and there is no such anomaly."


def test_a_final_row_that_does_not_say_where_the_log_ends_is_no_finding(tmp_path: Path) -> None:
    story = Story("r")
    story.send()
    story.poll(5, [0])
    story.finish()
    row_of(story.timeline, kind="final", node=2)["log_end_offset"] = None
    guarantees = {"min_insync_replicas": 2, "unclean_election": False, "settles": True}
    [verdict] = check([story.write(tmp_path / "r", guarantees=guarantees)], engine="reference")
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert not verdict.anomalies


def test_what_a_prediction_s_verdict_may_be_is_what_verdicts_are() -> None:
    assert tuple(Verdict) == VERDICTS
