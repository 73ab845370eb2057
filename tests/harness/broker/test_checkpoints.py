import pytest

from harness.broker.checkpoints import (
    GarbledCheckpoint,
    format_epochs,
    format_offsets,
    parse_epochs,
    parse_offsets,
)
from harness.model import TopicPartition
from harness.replication.messages import EpochEntry


def test_epochs_are_written_as_kafka_writes_them() -> None:
    assert format_epochs([EpochEntry(0, 0), EpochEntry(3, 17)]) == "0\n2\n0 0\n3 17\n"


def test_epochs_survive_the_round_trip() -> None:
    entries = (EpochEntry(0, 0), EpochEntry(3, 17), EpochEntry(4, 17))
    assert parse_epochs(format_epochs(entries)) == entries


def test_high_watermarks_are_written_sorted_and_survive_the_round_trip() -> None:
    watermarks = {TopicPartition("b", 0): 5, TopicPartition("a", 10): 2, TopicPartition("a", 9): 0}
    text = format_offsets(watermarks)
    assert text == "0\n3\na 9 0\na 10 2\nb 0 5\n"
    assert parse_offsets(text) == watermarks


@pytest.mark.parametrize(
    "text",
    ["", "0", "0\n", "1\n0\n", "0\n2\n0 0\n", "0\n1\n0 0\n1 1\n", "0\n1\n0\n", "0\n1\nx 0\n", "0\n1\n-1 0\n",
     "0\n2\n1 5\n1 6\n", "0\n2\n1 5\n2 4\n", "\ufffd\n1\n0 0\n"],
)  # fmt: skip
def test_a_garbled_epoch_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(GarbledCheckpoint):
        parse_epochs(text)
