"""What proofs say that faults took."""

from __future__ import annotations

import pytest

from harness.fault import DiskEffect
from harness.fault_losses import taken
from harness.model import TopicPartition

GONE = "node 2: process 9 is gone, by SIGKILL"


@pytest.mark.parametrize(
    ("disk", "proof", "words"),
    [
        (
            DiskEffect.UNFLUSHED,
            f"{GONE}; dropped from the page cache: ledger-0/0.log (106 bytes)",
            "ledger-0/0.log (106 bytes)",
        ),
        (
            DiskEffect.UNFLUSHED,
            f"{GONE}; dropped from the page cache: other-0/0.log (9 bytes), ledger-0/1.log (7 bytes) and 2 more",
            "ledger-0/1.log (7 bytes)",
        ),
    ],
)
def test_a_power_loss_names_the_files_of_which_it_dropped_something(disk: DiskEffect, proof: str, words: str) -> None:
    assert taken(disk, proof, TopicPartition("ledger", 0)) == f"dropped {words}"


@pytest.mark.parametrize(
    ("disk", "proof"),
    [
        (DiskEffect.UNFLUSHED, f"{GONE}; everything had reached the disk"),
        (DiskEffect.UNFLUSHED, f"{GONE}; dropped from the page cache: ledger-01/0.log (106 bytes) and 2 more"),
        (DiskEffect.UNFLUSHED, None),
        (DiskEffect.EVERYTHING, GONE),
        (DiskEffect.NOTHING, f"{GONE}; its disk is empty"),
        (DiskEffect.DAMAGE, f"{GONE}; ledger-01 at offset 1: the checksum of the batch is wrong"),
    ],
)
def test_what_a_proof_does_not_say_of_a_log_was_not_taken_from_it(disk: DiskEffect, proof: str | None) -> None:
    assert taken(disk, proof, TopicPartition("ledger", 0)) is None


def test_a_wiped_disk_held_everything_and_a_damaged_log_is_named() -> None:
    place = TopicPartition("ledger", 0)
    assert taken(DiskEffect.EVERYTHING, f"{GONE}; node 2: its disk is empty", place) == "emptied the disk"
    rot = f"{GONE}; ledger-0 at offset 1: the checksum of the batch is wrong"
    assert taken(DiskEffect.DAMAGE, rot, place) == "damaged ledger-0 at offset 1"
