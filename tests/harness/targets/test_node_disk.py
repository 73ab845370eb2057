"""What is done to the logs of a node that is not running, in every message format."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import EnvironmentFault
from harness.model import NodeId, TopicPartition
from harness.payload import FOREIGN_VALUE
from harness.target import LogDamage, Receipt
from harness.targets.node_disk import damage, inspect
from tests.harness.targets.logs_on_disk import GZIP, LZ4, SNAPPY, batch, compressed_batch, data_dir, message, wrapper
from tests.replica_rows import on_disk

LEDGER = TopicPartition("ledger", 0)

LOGS = {
    "messages of format 0": message(0, 70, 0) + message(1, 71, 0) + message(2, 72, 0),
    "messages of format 1": message(0, 70, 1) + message(1, 71, 1) + message(2, 72, 1),
    "a wrapper of format 0": message(0, 70, 0) + wrapper(LZ4, 1, 71, magic=0) + message(2, 72, 0),
    "a wrapper of format 1": message(0, 70, 1) + wrapper(SNAPPY, 1, 71, magic=1) + message(2, 72, 1),
    "batches": batch(0, 70) + batch(1, 71) + batch(2, 72),
}


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
@pytest.mark.parametrize("how", ["flip", "cut"])
def test_the_batch_that_is_named_is_damaged_and_the_one_before_is_not(tmp_path: Path, log: bytes, how: str) -> None:
    data = data_dir(tmp_path, log)
    harm = LogDamage(LEDGER, 1, "flip" if how == "flip" else "cut")
    assert inspect(data, harm).seen == "ledger-0 at offset 1: the batch is sound"
    damage(data, harm)
    assert inspect(data, harm).holds
    assert not inspect(data, LogDamage(LEDGER, 0, harm.how)).holds
    assert ("the checksum of the batch is wrong" in inspect(data, harm).seen) == (how == "flip")


def test_a_foreign_batch_has_the_place_of_another_and_values_that_nobody_sent(tmp_path: Path) -> None:
    data = data_dir(
        tmp_path, batch(0, 70, leader_epoch=3) + batch(1, 71, 72, leader_epoch=3) + batch(3, 73, leader_epoch=3)
    )
    harm = LogDamage(LEDGER, 2, "foreign")
    assert inspect(data, harm).seen == "ledger-0 at offset 2: the batch is sound"
    damage(data, harm)
    assert inspect(data, harm) == Receipt(
        True, "ledger-0 at offset 2: the batch is sound, and no producer of this run sent it"
    )
    rows = on_disk(NodeId(0), data)
    told = [(row["offset"], row["leader_epoch"], row["value"], row["intact"]) for row in rows]
    assert told == [(0, 3, 70, True), (1, 3, FOREIGN_VALUE, True), (2, 3, FOREIGN_VALUE + 1, True), (3, 3, 73, True)]


def test_a_message_of_an_old_format_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="a message of format 1 cannot be replaced"):
        damage(data_dir(tmp_path, LOGS["messages of format 1"]), LogDamage(LEDGER, 1, "foreign"))


@pytest.mark.parametrize("log", [wrapper(GZIP, 0, 70, 71, 72), compressed_batch(SNAPPY, 70, 71, 72)])
def test_any_record_of_a_compressed_batch_names_it(tmp_path: Path, log: bytes) -> None:
    data = data_dir(tmp_path, log)
    damage(data, LogDamage(LEDGER, 1, "cut"))
    assert (tmp_path / "ledger-0" / f"{0:020d}.log").stat().st_size == len(log) // 2


def test_a_batch_that_is_not_there_cannot_be_damaged(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="no batch of ledger-0 holds offset 3"):
        damage(data_dir(tmp_path, LOGS["batches"]), LogDamage(LEDGER, 3, "flip"))
