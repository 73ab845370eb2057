"""The story of a lost range, as data, where somebody looked at the brokers now and then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from checkers import check
from harness.checker import LossStory
from tests.checkers.sampled_stories import Looks, last_page_cache, two_failovers
from tests.checkers.story import Row


def loss_of(told: Looks, path: Path) -> LossStory:
    [verdict] = check([told.kept(path / "r")], engine="reference")
    [loss] = verdict.losses
    return loss


def ms(time_ns: int | None) -> int | None:
    return None if time_ns is None else time_ns // 1_000_000


def looks(told: Looks, node: int) -> list[Row]:
    return [row for row in told.timeline if row["node"] == node and row["kind"] == "state"]


def test_records_without_epochs_are_found_by_who_led_and_by_their_values(tmp_path: Path) -> None:
    loss = loss_of(two_failovers(), tmp_path)
    assert (loss.leader_epoch, loss.acknowledged_by, loss.committed_by, ms(loss.committed_ns)) == (None, 0, 0, 1005)
    assert [(c.node, c.event, ms(c.seen_ns), ms(c.gone_ns)) for c in loss.copies] == [
        (0, None, None, None),
        (1, "truncation", 7101, 7501),
        (2, "truncation", 4101, 4301),
    ]
    assert (loss.survivors, loss.last_copy, loss.fault) == ((0,), None, "frozen")
    assert loss.words == "Offset 1 was seen on nodes 0, 1, 2; still on the disk of node 0."


def test_the_power_loss_whose_proof_names_the_log_took_the_last_copy_in_the_isr(tmp_path: Path) -> None:
    loss = loss_of(last_page_cache(), tmp_path)
    assert loss.last_copy is not None
    assert (loss.last_copy.node, loss.last_copy.event, loss.fault) == (2, "power_loss", "dark")
    assert {c.node: c.event for c in loss.copies} == {0: "unseen", 1: "unseen", 2: "power_loss"}
    assert loss.words == (
        "Offset 1 of epoch 0 was seen on nodes 0, 1, 2; the last copy in the ISR went from node 2: "
        "power_loss dark dropped ledger-0/0.log (106 bytes)."
    )


@pytest.mark.parametrize(
    "proof", ["everything had reached the disk", "dropped from the page cache: other-0/0.log (9 b)"]
)
def test_a_power_loss_that_took_nothing_of_the_log_is_not_what_took_the_copy(tmp_path: Path, proof: str) -> None:
    told = last_page_cache()
    told.faults[-1]["proof"] = f"node 2: process 9 is gone, by SIGKILL; {proof}"
    loss = loss_of(told, tmp_path)
    assert {c.event for c in loss.copies} == {"unseen"}
    assert (
        "the last copy in the ISR went from node 2 between two looks, and it was started anew in between" in loss.words
    )


def test_which_copy_went_last_is_not_said_when_the_looks_do_not_show_it(tmp_path: Path) -> None:
    told = last_page_cache()
    for row in told.timeline:
        if row["kind"] == "isr":
            row["isr"] = [2, 1, 0]
    loss = loss_of(told, tmp_path)
    assert loss.last_copy is None
    assert loss.words == "Offset 1 of epoch 0 was seen on nodes 0, 1, 2; how the last copy went, no look shows."


def test_what_a_log_grew_by_between_two_epochs_is_nobodys_copy(tmp_path: Path) -> None:
    told = two_failovers()
    for row in looks(told, 1):
        if 1_000 < row["time_ns"] // 1_000_000 < 4_000:
            told.timeline.remove(row)
    assert {copy.node for copy in loss_of(told, tmp_path).copies} == {0, 2}


def test_nobody_is_said_to_have_acknowledged_what_two_leaders_may_have(tmp_path: Path) -> None:
    told = two_failovers()
    stale = looks(told, 2)[1]
    stale.update(role="leader", leader=2, leader_epoch=5)
    loss = loss_of(told, tmp_path)
    assert (loss.acknowledged_by, loss.committed_by, loss.copies) == (None, None, ())
    assert loss.words == "Offset 1: no look shows which logs held it; still on the disk of node 0."


def test_a_wiped_disk_took_a_copy_although_the_log_is_as_long_as_before_when_it_is_looked_at_again(
    tmp_path: Path,
) -> None:
    told = last_page_cache()
    dark = told.faults[-1]
    dark.update(kind="wipe_disk", proof="node 2: process 9 is gone, by SIGKILL; node 2: its disk is empty")
    for row in looks(told, 2):
        if 4_000 < row["time_ns"] // 1_000_000 < 5_000:
            row["log_end_offset"] = 2
    loss = loss_of(told, tmp_path)
    assert loss.last_copy is not None
    assert loss.last_copy.reason == "wipe_disk dark emptied the disk"


def test_copies_that_a_log_start_has_passed_are_told_as_that(tmp_path: Path) -> None:
    told = last_page_cache()
    for row in told.timeline:
        if row["kind"] == "state" and row["time_ns"] > 2_500_000_000:
            row["log_start_offset"] = row["high_watermark"] = row["log_end_offset"] = 2
    assert loss_of(told, tmp_path).words.endswith("every log that held it was seen to begin behind it.")


def test_verdict_json_says_between_which_two_looks_a_copy_went(tmp_path: Path) -> None:
    loss_of(two_failovers(), tmp_path)
    written = json.loads((tmp_path / "r" / "verdict.json").read_text())
    assert [ms(copy["seen_ns"]) for copy in written["losses"][0]["copies"]] == [None, 7101, 4101]
