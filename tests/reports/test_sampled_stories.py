"""The story of a loss where somebody looked at the brokers now and then: from which look it knows what it tells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from checkers import check
from harness.checker import Anomaly, Outcome, RunVerdict, Verdict
from harness.history.run_directory import Manifest
from reports import lost_records, story
from reports.incidents import incidents
from reports.lost_range import Loss
from reports.run import Run, read
from tests.checkers.sampled_stories import Looks, last_page_cache, two_failovers
from tests.reports.conftest import Recording, manifest, page

STORIES = Path(__file__).parent / "stories"


def run_of(told: Looks, path: Path) -> Run:
    check([told.kept(path / "run")], engine="reference")
    return read(path / "run")


def events(run: Run) -> list[str]:
    """Everything that is told of the run's first loss, with its time in seconds."""
    lost = lost_records.lost(incidents(run.verdict)[0])[0]
    loss = Loss(run, run.rows_of(lost.partition), lost.offset, lost.end_offset)
    return [
        f"{'after' if e.time_ns is None else f'{(e.time_ns - run.start_ns) / 1e9:.3f}'} {e.words} [{e.source}]"
        for e in story.events(loss)
    ]


@pytest.mark.parametrize("tell", [two_failovers, last_page_cache])
def test_a_story_of_looks_is_told_as_ever(tell: Callable[[], Looks], tmp_path: Path) -> None:
    golden = (STORIES / f"{tell.__name__}.txt").read_text()
    assert events(run_of(tell(), tmp_path)) == golden.splitlines()


def test_a_kill_after_the_acknowledgement_is_told_although_no_row_says_that_a_log_was_cut(tmp_path: Path) -> None:
    said = "\n".join(events(run_of(two_failovers(), tmp_path)))
    assert "Fault dead: kill on 0 injected" in said
    assert "Fault frozen: pause on 1 injected" in said


def test_a_power_loss_that_dropped_something_else_is_not_said_to_have_dropped_it(tmp_path: Path) -> None:
    told = last_page_cache()
    told.faults[-1]["proof"] = "node 2: process 9 is gone; dropped from the page cache: ledger-01/0.log (106 bytes)"
    said = "\n".join(events(run_of(told, tmp_path)))
    assert "Gone from broker 2 between 1.900 s and 4.500 s" in said
    assert "in between it was started anew." in said
    assert "in between, power_loss" not in said


def test_a_look_of_a_later_epoch_does_not_say_who_held_it(tmp_path: Path) -> None:
    told = two_failovers()
    [look] = [r for r in told.timeline if r["node"] == 1 and r["kind"] == "state" and r["time_ns"] == 1_010_000_000]
    told.timeline.remove(look)
    said = next(line for line in events(run_of(told, tmp_path)) if "afterwards" in line)
    assert "broker 2" in said
    assert "broker 1" not in said


def test_a_loss_that_no_look_shows_is_said_to_be_unseen(tmp_path: Path) -> None:
    told = two_failovers()
    for row in told.timeline:
        if row["kind"] == "state" and row["time_ns"] > 4_000_000_000:
            row["log_end_offset"] = 2
    said = "\n".join(events(run_of(told, tmp_path)))
    assert "No look found a log that had lost offset 1: what removed it, and when, was not seen." in said
    assert "Fault frozen healed." in said


def test_disks_on_which_nothing_is_were_looked_at_all_the_same(
    tmp_path: Path, new_recording: Callable[[Manifest], Recording]
) -> None:
    recording = new_recording(manifest("wiped", "empty-disk-leads"))
    recording.send(1.0, 7, 0)
    gone = Anomaly("lost-write", Verdict.VIOLATION, "ledger", 0, 0, 7, 0, "it is gone.")
    directory = recording.write(tmp_path / "run", RunVerdict("", Outcome.VIOLATION, "python", [gone]))
    assert "after On disk after the run, no broker had it any more. [replica_logs]" in events(read(directory))


def test_a_strip_of_looks_does_not_say_that_nothing_was_truncated(tmp_path: Path) -> None:
    run_of(two_failovers(), tmp_path)
    said = page(tmp_path / "run")
    assert "not recorded: the timeline is sampled" in said
    assert "truncations not recorded." in said
    assert "0 truncations" not in said
