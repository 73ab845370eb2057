"""The metadata log of three controllers, any of which may be away or behind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.targets.compose.quorum_log import QuorumLog
from harness.targets.kafka.decisions import PartitionDecision
from harness.targets.kafka.metadata_records import PartitionChangeRecord
from tests.harness.targets.kafka.test_decisions import CREATED, TOPIC_ID, batch


def leads(offset: int, leader: int, leader_epoch: int = 1) -> bytes:
    return batch(offset, PartitionChangeRecord(0, TOPIC_ID, leader=leader), leader_epoch=leader_epoch)


class Quorum:
    """The directories of three controllers, and what is read from them together."""

    def __init__(self, directory: Path) -> None:
        self.directories = [directory / str(number) for number in range(3)]
        self.log = QuorumLog(self.directories)

    def write(self, data: bytes, *controllers: int) -> None:
        for number in controllers or range(3):
            self.directories[number].mkdir(exist_ok=True)
            with (self.directories[number] / "00000000000000000000.log").open("ab") as file:
                file.write(data)

    def leaders(self) -> Sequence[int]:
        return [one.after.leader for one in self.log.read_on() if isinstance(one, PartitionDecision)]


@pytest.fixture
def quorum(tmp_path: Path) -> Quorum:
    quorum = Quorum(tmp_path)
    assert not quorum.leaders(), "there is nothing yet"
    quorum.write(batch(0, *CREATED))
    assert quorum.leaders() == [0]
    return quorum


def test_what_one_controller_alone_has_is_not_decided(quorum: Quorum) -> None:
    quorum.write(leads(2, 1), 0)
    assert not quorum.leaders()
    quorum.write(leads(2, 1), 2)
    assert quorum.leaders() == [1]
    quorum.write(leads(2, 1), 1)
    assert not quorum.leaders(), "it was told already"


def test_decisions_are_read_on_whoever_is_away(quorum: Quorum) -> None:
    for offset, (away, present) in enumerate([(0, (1, 2)), (1, (0, 2)), (2, (0, 1))], 2):
        quorum.write(leads(offset, away), *present)
        assert quorum.leaders() == [away]
        quorum.write(leads(offset, away), away)
        assert not quorum.leaders()


def test_what_a_deposed_controller_wrote_to_itself_was_never_decided(quorum: Quorum) -> None:
    quorum.write(leads(2, 1) + leads(3, 1) + leads(4, 1), 0)
    quorum.write(leads(2, 2, leader_epoch=2), 1, 2)
    assert quorum.leaders() == [2]


def test_a_controller_that_cuts_its_log_and_gets_it_anew_changes_nothing(quorum: Quorum) -> None:
    quorum.write(leads(2, 1), 0)
    quorum.write(leads(2, 2, leader_epoch=2), 1, 2)
    (quorum.directories[0] / "00000000000000000000.log").write_bytes(batch(0, *CREATED))
    assert quorum.leaders() == [2]
    quorum.write(leads(2, 2, leader_epoch=2), 0)
    quorum.write(leads(3, 1, leader_epoch=2))
    assert quorum.leaders() == [1]


def test_what_others_hold_of_another_epoch_makes_no_majority(quorum: Quorum) -> None:
    quorum.write(leads(2, 1, leader_epoch=1) + leads(3, 1, leader_epoch=1), 0)
    quorum.write(leads(2, 2, leader_epoch=2) + leads(3, 2, leader_epoch=2), 1)
    assert not quorum.leaders(), "controllers 0 and 1 go equally far, and share nothing of it"
    quorum.write(leads(2, 2, leader_epoch=2), 2)
    assert quorum.leaders() == [2]


def test_a_log_that_was_cut_and_is_as_long_again_is_measured_again(quorum: Quorum) -> None:
    quorum.write(leads(2, 1), 0)
    assert not quorum.leaders()
    (quorum.directories[0] / "00000000000000000000.log").write_bytes(
        batch(0, *CREATED) + leads(2, 2, leader_epoch=2) + leads(3, 2, leader_epoch=2)
    )
    quorum.write(leads(2, 2, leader_epoch=2), 1)
    assert quorum.leaders() == [2]
