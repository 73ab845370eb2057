"""Groups of which no member was ever given a partition, and clients that were to be killed: what was not tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers import check
from checkers.completeness.history_is_complete import idle, unharmed
from harness.checker import Outcome
from harness.history.run_directory import Manifest
from tests.checkers.cases import write
from tests.checkers.clients import move, poll
from tests.checkers.story import Story

MEMBERS = {"subscriptions": 4, "partitions_given": 0}


def manifest(**configuration: object) -> Manifest:
    return Manifest("r", "story", 1, "2025-01-01T00:00:00+00:00", configuration=configuration)


def test_members_that_were_given_nothing_leave_a_run_of_a_target_open() -> None:
    [said] = idle(manifest(target="builtin"), MEMBERS)
    assert said == "Clients subscribed as members of groups, and none of them was ever given a partition."


def test_one_partition_is_enough_and_a_history_of_somebody_elses_need_not_name_rebalances() -> None:
    assert not list(idle(manifest(target="builtin"), MEMBERS | {"partitions_given": 1}))
    assert not list(idle(manifest(target="builtin"), {"subscriptions": 0, "partitions_given": 0}))
    assert not list(idle(manifest(imported={}), MEMBERS))


@pytest.mark.parametrize("given", [0, 1])
def test_subscriptions_and_what_they_gave_are_counted(given: int, tmp_path: Path) -> None:
    story = Story()
    write(story, 2)
    move(story, 5, "subscribe", 0)
    op = poll(story, 5, [0])
    for _ in range(given):
        move(story, 5, "assigned", 0, result="info", op=op)
    [verdict] = check([story.finish().write(tmp_path / "r")], engine="reference")
    assert (verdict.counts["subscriptions"], verdict.counts["partitions_given"]) == (1, given)
    assert verdict.outcome is Outcome.PASS  # its manifest names no target


@pytest.mark.parametrize(
    ("killed", "crashes", "is_open"), [(0.5, 0, True), (0.5, 1, False), (0, 0, False), (None, 0, False)]
)
def test_a_run_that_was_to_kill_clients_and_has_killed_none_is_open(
    killed: float | None, crashes: int, is_open: bool
) -> None:
    asked = manifest(target="simulated", workload={"name": "consume_transform_produce", "killed": killed})
    assert [said.partition(",")[0] for said in unharmed(asked, {"crashes": crashes})] == (
        ["The workload was to kill clients"] if is_open else []
    )
