"""The story of a lost range, as data."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers import check
from harness.checker import LossStory, from_json
from harness.findings import KEPT_PER_GROUP
from harness.history.run_directory import RunDirectory
from tests.checkers.story import Story


def losses(story: Story, path: Path) -> list[LossStory]:
    [verdict] = check([story.finish().write(path / "r")], engine="reference")
    return list(verdict.losses)


def test_a_loss_names_its_promise_its_copies_and_what_took_the_last(tmp_path: Path) -> None:
    story = Story()
    for _ in range(3):
        story.send()
    story.fault("cut")
    story.cut(1, 2)
    story.elect(1)
    [loss] = losses(story, tmp_path)
    assert (loss.first_offset, loss.end_offset, loss.leader_epoch, loss.acks) == (2, 3, 0, -1)
    assert (loss.acknowledged_by, loss.committed_by, loss.fault) == (0, 0, "cut")
    assert sorted((copy.node, copy.event) for copy in loss.copies if copy.end_offset > 2) == [
        (0, "truncation"),
        (1, "truncation"),
        (2, "truncation"),
    ]
    assert not loss.survivors
    assert loss.last_copy is not None
    assert (loss.last_copy.node, loss.last_copy.reason) == (2, "leader said so")
    assert loss.election is not None
    assert (loss.election["leader"], loss.election["clean"]) == (1, True)
    assert "the last copy went when node 2 cut it off (leader said so), after fault cut" in loss.words


def test_what_is_still_on_a_disk_can_be_recovered(tmp_path: Path) -> None:
    story = Story()
    for _ in range(3):
        story.send()
    tail = list(story.partitions[0].logs[2])
    story.cut(1, 2)
    story.elect(1)
    story.partitions[0].logs[2] = tail
    [loss] = losses(story, tmp_path)
    assert loss.survivors == (2,)
    assert loss.last_copy is None
    assert "still on the disk of node 2" in loss.words


@pytest.mark.parametrize(("hole", "left"), [
    ((0, 1, 2), "whether the disk of node 0, 1 or 2 still holds it is not known, for the log has gaps there"),
    ((0, 2), "still on the disk of node 1"),
])  # fmt: skip
def test_a_log_with_a_hole_is_not_said_to_hold_what_may_be_the_hole(
    tmp_path: Path, hole: tuple[int, ...], left: str
) -> None:
    story = Story()
    for _ in range(4):
        story.send()
    story.finish()
    story.forget(*(row for row in story.final_rows() if row["offset"] == 2))
    for row in [row for row in story.logs if row["offset"] == 2 and row["node"] in hole]:
        story.logs.remove(row)
    [verdict] = check([story.write(tmp_path / "r")], engine="reference")
    [loss] = verdict.losses
    assert loss.survivors == tuple({0, 1, 2} - set(hole))
    assert loss.words == f"Offset 2 of epoch 0 had been on nodes 0, 1, 2; {left}."


def test_what_a_power_loss_took_is_told_apart_from_what_was_cut(tmp_path: Path) -> None:
    story = Story()
    for _ in range(3):
        story.send()
    for node in (0, 1, 2):
        story.fault(f"dark{node}", kind="power_loss", nodes=[str(node)])
        del story.partitions[0].logs[node][1:]
        story.partitions[0].marks[node] = 1
        story.restart(node)
    story.elect(1)
    [loss] = losses(story, tmp_path)
    assert (loss.first_offset, loss.end_offset) == (1, 3)
    assert {copy.event for copy in loss.copies if copy.first_offset >= 1} == {"power_loss"}
    assert loss.last_copy is not None
    assert loss.last_copy.reason == "fault dark2"


def test_a_long_tail_is_one_range_however_many_of_its_losses_are_shown(tmp_path: Path) -> None:
    story = Story()
    for _ in range(KEPT_PER_GROUP + 15):
        story.send()
    story.cut(1, 1)
    story.elect(1)
    [loss] = losses(story, tmp_path)
    assert (loss.first_offset, loss.end_offset) == (1, KEPT_PER_GROUP + 15)


def test_stories_survive_verdict_json(tmp_path: Path) -> None:
    story = Story()
    story.send()
    story.cut(1, 0)
    story.elect(1)
    expected = losses(story, tmp_path)
    written = RunDirectory.open(tmp_path / "r").read_verdict()
    assert written is not None
    assert list(from_json(written).losses) == expected
