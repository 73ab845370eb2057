from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checkers import check
from harness.checker import Anomaly, Outcome, Verdict, from_json, to_json
from harness.errors import ExitCode, InvalidRun, UsageError
from harness.findings import KEPT_PER_GROUP, RANGES_KEPT
from harness.history.run_directory import RunDirectory
from harness.history.schema import TABLES
from tests.checkers.story import Story


def quiet(run: str = "r", records: int = 3) -> Story:
    story = Story(run)
    for _ in range(records):
        story.send()
    return story.finish()


def lossy(records: int = 3, left: int = 2) -> Story:
    story = Story()
    for _ in range(records):
        story.send()
    story.poll(5, range(records))
    story.fault("cut")
    story.cut(1, left)
    story.elect(1)
    story.send(result="info")
    return story.finish()


def lost(path: Path) -> Anomaly:
    [verdict] = check([path], engine="reference")
    return next(a for a in verdict.anomalies if a.kind == "lost-write")


def test_the_verdict_is_written_into_the_run_directory(tmp_path: Path) -> None:
    path = quiet().write(tmp_path / "r")
    [verdict] = check([path], engine="reference")
    written = RunDirectory.open(path).read_verdict()
    assert written is not None
    assert from_json(written).outcome is verdict.outcome is Outcome.PASS
    assert written["exit_code"] == ExitCode.PASS


def test_verdicts_come_in_the_order_of_the_directories(tmp_path: Path) -> None:
    paths = [quiet(name).write(tmp_path / name) for name in ("b", "a", "c")]
    assert [verdict.run for verdict in check(paths, engine="reference")] == ["b", "a", "c"]


def test_a_run_is_not_checked_twice_at_once(tmp_path: Path) -> None:
    path = quiet().write(tmp_path / "r")
    (tmp_path / "latest").symlink_to(path)
    with pytest.raises(UsageError, match="hold the same run 'r'"):
        check([path, tmp_path / "latest"], engine="reference")


def test_what_is_no_run_directory_is_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(InvalidRun, match=r"run\.json is missing"):
        check([tmp_path], engine="reference")


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_missing_table_makes_the_run_invalid_and_is_named(tmp_path: Path, name: str) -> None:
    path = quiet().write(tmp_path / "r")
    for file in RunDirectory.open(path).table_files(name):
        file.unlink()
    [verdict] = check([path], engine="reference")
    assert verdict.outcome is Outcome.INVALID
    assert f"{TABLES[name].path}" in verdict.reasons[0]
    assert "is missing" in verdict.reasons[0]


def test_that_a_run_did_not_come_to_its_end_and_why_comes_before_what_is_missing_for_that(tmp_path: Path) -> None:
    directory = RunDirectory.open(quiet().write(tmp_path / "r"))
    directory.write_manifest(replace(directory.manifest(), state="abandoned", why="It broke."))
    for file in directory.table_files("timeline"):
        file.unlink()
    [verdict] = check([directory.path], engine="reference")
    assert verdict.reasons[0] == "The run's state is 'abandoned', not 'complete': it did not come to its end. It broke."
    assert "is missing" in verdict.reasons[1]


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_truncated_file_makes_the_run_invalid_and_is_named(tmp_path: Path, name: str) -> None:
    path = quiet().write(tmp_path / "r")
    [file] = RunDirectory.open(path).table_files(name)
    file.write_bytes(file.read_bytes()[:-9])
    [verdict] = check([path], engine="reference")
    assert verdict.outcome is Outcome.INVALID
    assert f"{file} is truncated" in verdict.reasons[0]


def test_a_replica_log_that_cannot_be_read_is_no_divergence(tmp_path: Path) -> None:
    path = quiet().write(tmp_path / "r")
    directory = RunDirectory.open(path)
    rows = directory.read_table("replica_logs")
    [file] = directory.table_files("replica_logs")
    directory.write_table("replica_logs", [row for row in rows if row["node"] != 2])
    file.with_name("part-00001.parquet").write_bytes(b"PAR1")
    [verdict] = check([path], engine="reference")
    assert verdict.outcome is Outcome.INVALID
    assert {a.verdict.value for a in verdict.anomalies} == {"INDETERMINATE"}


def test_a_part_of_a_sampled_timeline_that_is_lost_makes_the_run_invalid(tmp_path: Path) -> None:
    sampled = {"min_insync_replicas": 2, "unclean_election": False, "timeline": "sampled"}
    path = quiet().write(tmp_path / "r", guarantees=sampled)
    directory = RunDirectory.open(path)
    rows = directory.read_table("timeline")
    assert check([path], engine="reference")[0].outcome is Outcome.PASS
    directory.write_table("timeline", [row for row in rows if (row["node"], row["sequence"]) != (1, 2)])
    [verdict] = check([path], engine="reference")
    assert verdict.outcome is Outcome.INVALID
    lacking = f"The table timeline has {len(rows) - 1} rows in 1 files, where run.json says {len(rows)} rows in 1."
    assert lacking in verdict.reasons


def test_who_was_looked_at_nobody_says_without_a_timeline(tmp_path: Path) -> None:
    sampled = {"min_insync_replicas": 2, "unclean_election": False, "timeline": "sampled"}
    path = quiet().write(tmp_path / "r", guarantees=sampled)
    [file] = RunDirectory.open(path).table_files("timeline")
    file.unlink()
    [verdict] = check([path], engine="reference")
    assert verdict.outcome is Outcome.INVALID
    assert any(re.search("timeline.* is missing", reason) for reason in verdict.reasons)
    assert not any("never looked at" in reason for reason in verdict.reasons)


def test_a_run_that_an_older_version_recorded_is_not_compared(tmp_path: Path) -> None:
    path = quiet().write(tmp_path / "r")
    directory = RunDirectory.open(path)
    directory.write_manifest(replace(directory.manifest(), tables={}))
    assert check([path], engine="reference")[0].outcome is Outcome.PASS


def test_faults_that_cannot_be_read_may_hold_an_excuse(tmp_path: Path) -> None:
    path = lossy().write(tmp_path / "r")
    RunDirectory.open(path).table_files("faults")[0].write_bytes(b"PAR1")
    [verdict] = check([path], engine="reference")
    assert verdict.outcome is Outcome.INVALID
    assert {anomaly.verdict.value for anomaly in verdict.anomalies} == {"INDETERMINATE"}


def test_that_another_record_was_committed_there_is_not_said_of_one_that_never_was(tmp_path: Path) -> None:
    story = Story()
    story.send()
    story.send(acks=1, append=False, offset=1)
    story.send()
    anomaly = lost(story.finish().write(tmp_path / "r"))
    assert "Value 1 was acknowledged at offset 1 (acks=1)" in anomaly.why
    assert "It had been committed" not in anomaly.why
    assert not any("had committed up to there" in evidence.says for evidence in anomaly.evidence)


def test_the_evidence_of_a_lost_write_tells_its_life_in_order(tmp_path: Path) -> None:
    anomaly = lost(lossy().write(tmp_path / "r"))
    assert anomaly.leader_epoch == 0
    assert "Value 2 was acknowledged at offset 2 (acks=all)" in anomaly.why
    assert "it delivers value 3 instead" in anomaly.why
    assert "It had been committed" in anomaly.why
    said = [(evidence.table, evidence.says) for evidence in anomaly.evidence]
    for (table, says), (expected_table, part) in zip(said, EXPECTED, strict=True):
        assert table == expected_table
        assert part in says


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({}, []),
        ({"kind": "power_loss", "proof": "it is gone; dropped from the page cache: other-0/0.log (9 bytes)"}, []),
        (
            {"kind": "power_loss", "proof": "it is gone; dropped from the page cache: ledger-0/0.log (9 bytes)"},
            ["fault 'f' (power_loss of 1) dropped ledger-0/0.log (9 bytes)"],
        ),
        ({"kind": "wipe_disk", "proof": "its disk is empty"}, ["fault 'f' (wipe_disk of 1) emptied the disk"]),
        ({"kind": "wipe_disk", "proof": "its disk is empty", "proven_ns": 1}, []),
    ],
)
def test_where_no_cut_is_known_only_faults_are_named_that_took_something(
    tmp_path: Path, columns: dict[str, Any], says: list[str]
) -> None:
    story = lossy()
    story.timeline = [row for row in story.timeline if row["kind"] != "truncation"]
    story.faults.clear()
    story.fault("f", **columns)
    story.fault("later", kind="kill")
    evidence = lost(story.write(tmp_path / "r")).evidence
    assert [one.says for one in evidence if one.table == "faults"] == says


EXPECTED = (
    ("history", "process 0: the send of value 2 ended ok at offset 2 (acks=all)"),
    ("timeline", "node 0 led ledger-0 in epoch 0 from here on"),
    ("timeline", "node 0 led ledger-0 in epoch 0 and had committed up to there (high watermark 3, log end 3)"),
    ("history", "process 5 was delivered value 2 at offset 2"),
    ("timeline", "node 1 cut offsets 2 to 2 off its log of ledger-0 (leader said so)"),
    ("timeline", "node 0 cut offsets 2 to 2 off its log of ledger-0 (leader said so)"),
    ("timeline", "node 2 cut offsets 2 to 2 off its log of ledger-0 (leader said so)"),
    ("faults", "fault 'cut' (partition of 1) was injected 0.001 s before the first of these cuts"),
    ("replica_logs", "no replica's log holds value 2"),
    ("replica_logs", "node 0's log holds value 3 of epoch 1 at offset 2"),
    ("replica_logs", "node 1's log holds value 3 of epoch 1 at offset 2"),
    ("replica_logs", "node 2's log holds value 3 of epoch 1 at offset 2"),
)


def test_every_evidence_names_a_row_that_exists(tmp_path: Path) -> None:
    path = lossy().write(tmp_path / "r")
    directory = RunDirectory.open(path)
    tables = {name: directory.read_table(name) for name in TABLES}
    [verdict] = check([path], engine="reference")
    for evidence in [e for anomaly in verdict.anomalies for e in anomaly.evidence]:
        matching = [row for row in tables[evidence.table] if evidence.row.items() <= row.items()]
        assert len(matching) == ("no replica's log" not in evidence.says), evidence


def test_what_follows_from_a_loss_says_so(tmp_path: Path) -> None:
    path = lossy().write(tmp_path / "r")
    [verdict] = check([path], engine="reference")
    why = {a.kind: a.why for a in verdict.anomalies if a.kind != "lost-write"}
    assert set(why) == {"vanished-read", "inconsistent-offsets", "hw-regression"}
    assert all("It follows from the lost-write of value 2 at offset 2." in sentence for sentence in why.values())


def test_of_very_many_losses_the_first_are_shown_and_all_are_counted(tmp_path: Path) -> None:
    path = lossy(records=KEPT_PER_GROUP + 15, left=1).write(tmp_path / "r")
    [verdict] = check([path], engine="reference")
    offsets = [a.offset for a in verdict.anomalies if a.kind == "lost-write"]
    assert offsets == list(range(1, 1 + KEPT_PER_GROUP))
    assert verdict.counts["lost-write"] == KEPT_PER_GROUP + 14


def test_the_ranges_of_a_verdict_are_of_all_losses_and_not_of_the_examples(tmp_path: Path) -> None:
    path = lossy(records=KEPT_PER_GROUP + 15, left=1).write(tmp_path / "r")
    [verdict] = check([path], engine="reference")
    [extent] = [one for one in verdict.extents if one.kind == "lost-write"]
    [span] = extent.ranges
    assert (span.first_offset, span.end_offset, span.count) == (1, KEPT_PER_GROUP + 15, KEPT_PER_GROUP + 14)
    assert (span.lowest_value, span.highest_value) == (1, KEPT_PER_GROUP + 14)
    assert (extent.count, extent.examples, extent.more_ranges) == (KEPT_PER_GROUP + 14, KEPT_PER_GROUP, 0)
    assert extent.verdicts == (Verdict.VIOLATION,)
    assert from_json(to_json(verdict)).extents == verdict.extents


def test_of_very_many_ranges_the_first_are_listed_and_all_are_counted(tmp_path: Path) -> None:
    story = Story()
    for _ in range(2 * RANGES_KEPT + 11):
        story.send()
    story.finish()
    gone = [row for row in story.final_rows() if row["offset"] is not None and row["offset"] % 2]
    story.forget(*gone)
    [verdict] = check([story.write(tmp_path / "r")], engine="reference")
    [extent] = [one for one in verdict.extents if one.kind == "lost-write"]
    assert (extent.count, len(extent.ranges)) == (RANGES_KEPT + 5, RANGES_KEPT)
    assert (extent.more_ranges, extent.in_more_ranges, extent.without_offset) == (5, 5, 0)


def test_losses_without_an_offset_are_counted_beside_the_ranges(tmp_path: Path) -> None:
    story = Story()
    for _ in range(3):
        story.send()
    story.send(acks=0, offset=None, append=False)
    [verdict] = check([story.finish().write(tmp_path / "r")], engine="reference")
    [extent] = [one for one in verdict.extents if one.kind == "lost-write"]
    assert (extent.count, extent.ranges, extent.without_offset) == (1, (), 1)


def test_the_counts_say_how_much_there_was(tmp_path: Path) -> None:
    story = Story(partitions=2)
    for _ in range(3):
        story.send(0)
    story.send(1, acks=1)
    for result in ("fail", "info", "invoke"):
        story.send(0, result=result, append=False)
    story.poll(5, [0, 1])
    story.poll(5)
    story.fault()
    path = story.finish().write(tmp_path / "r")
    [verdict] = check([path], engine="reference")
    expected = {
        "sends": 7, "sends_ok": 4, "sends_fail": 1, "sends_info": 2, "acked_all": 3, "acked_below_high_watermark": 3,
        "polls": 4, "polled_records": 2, "final_records": 4, "partitions": 2, "faults": 1, "faults_proven": 1,
    }  # fmt: skip
    assert expected.items() <= verdict.counts.items()


@pytest.mark.parametrize("kind", ["state", "election"])
def test_what_rests_on_an_isr_that_nobody_names_is_said_not_to_be_judged(kind: str, tmp_path: Path) -> None:
    story = Story()
    story.send()
    story.elect(1)
    story.send()
    path = story.finish().write(tmp_path / "whole")
    assert check([path], engine="reference")[0].limits == ()
    for row in story.timeline:
        row["isr"] = None if row["kind"] == kind else row["isr"]
    [verdict] = check([story.write(tmp_path / "silent")], engine="reference")
    [said] = verdict.limits
    assert re.search(r"ledger-0 that name no ISR.*illegal-isr.*unjustified-join", said)
