"""How soon a partition was in service again, in numbers."""

from __future__ import annotations

from pathlib import Path

from checkers import check
from harness.checker import Recovery, from_json
from harness.history.run_directory import RunDirectory
from tests.checkers.story import CONTROLLER, NODES, Story

S = 1_000_000_000


def recovery(story: Story, path: Path) -> Recovery:
    [verdict] = check([story.finish().write(path / "r")], engine="reference")
    [only] = verdict.recovery
    return only


def next_ack(story: Story, after_ns: int) -> int:
    rows = [r for r in story.history if r["f"] == "send" and r["type"] == "ok" and r["time_ns"] > after_ns]
    return int(rows[0]["time_ns"])


def test_an_outage_lasts_from_one_acknowledgement_to_the_next_if_somebody_tried(tmp_path: Path) -> None:
    story = Story()
    story.send()
    last_ack = story.history[-1]["time_ns"]
    story.now += 2 * S
    story.send(result="info")
    story.now += S
    story.send()
    found = recovery(story, tmp_path)
    assert [(one.begin_ns, one.end_ns) for one in found.outages] == [(last_ack, next_ack(story, last_ack))]
    assert 3 <= found.longest_outage_s < 3.1


def test_what_is_slow_in_coming_is_an_outage_from_the_first_attempt(tmp_path: Path) -> None:
    story = Story()
    story.send(result="info")
    begun = story.history[0]["time_ns"]
    story.now += 2 * S
    story.send()
    assert [one.begin_ns for one in recovery(story, tmp_path).outages] == [begun]


def test_an_outage_that_no_acknowledgement_ends_lasts_until_the_last_attempt_has_ended(tmp_path: Path) -> None:
    story = Story()
    story.send()
    last_ack = story.history[-1]["time_ns"]
    for _ in range(3):
        story.now += S
        story.send(result="info")
    last_end = story.history[-1]["time_ns"]
    assert [(one.begin_ns, one.end_ns) for one in recovery(story, tmp_path).outages] == [(last_ack, last_end)]


def test_attempts_of_which_none_is_acknowledged_are_an_outage(tmp_path: Path) -> None:
    story = Story()
    story.send(result="info")
    begun = story.history[0]["time_ns"]
    story.now += 2 * S
    story.send(result="fail")
    last_end = story.history[-1]["time_ns"]
    assert [(one.begin_ns, one.end_ns) for one in recovery(story, tmp_path).outages] == [(begun, last_end)]


def test_what_ends_late_and_was_tried_before_the_last_acknowledgement_is_no_outage(tmp_path: Path) -> None:
    story = Story()
    story.send()
    story.send(result="invoke", process=1)
    slow = story.history[-1]
    story.send()
    story.now += 2 * S
    story.row(**{**slow, "type": "info", "error": "timeout"})
    assert recovery(story, tmp_path).outages == ()


def test_less_than_a_second_is_no_outage(tmp_path: Path) -> None:
    story = Story()
    for _ in range(4):
        story.send()
        story.now += S // 2
    assert recovery(story, tmp_path).outages == ()


def test_recovery_begins_with_the_last_healing(tmp_path: Path) -> None:
    story = Story()
    story.send()
    story.fault()
    healed = story.faults[0]["heal_proven_ns"]
    for epoch, isr in enumerate(([0, 1, 2], [0, 1], [0, 1, 2])):
        story.say(CONTROLLER, "isr", 0, {}, leader=0, leader_epoch=0, partition_epoch=epoch, isr=isr)
    full = story.now
    story.send()
    found = recovery(story, tmp_path)
    assert (found.healed_ns, found.isr_full_ns) == (healed, full)
    assert found.first_ack_ns == next_ack(story, healed)
    assert found.isr_full_after_s == (full - healed) / S


def test_an_isr_that_never_fills_again_has_no_time(tmp_path: Path) -> None:
    story = Story()
    story.send()
    for epoch, isr in enumerate((list(NODES), [0, 1])):
        story.say(CONTROLLER, "isr", 0, {}, leader=0, leader_epoch=0, partition_epoch=epoch, isr=isr)
    found = recovery(story, tmp_path)
    assert found.isr_full_ns is None
    assert found.isr_full_after_s is None


def test_recovery_survives_verdict_json(tmp_path: Path) -> None:
    story = Story()
    story.send()
    story.now += 2 * S
    story.send()
    expected = recovery(story, tmp_path)
    written = RunDirectory.open(tmp_path / "r").read_verdict()
    assert written is not None
    assert from_json(written).recovery == (expected,)
