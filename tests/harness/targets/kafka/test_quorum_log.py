"""The metadata log of three controllers, any of which may be away or behind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.targets.kafka.decisions import PartitionDecision, Withdrawal
from harness.targets.kafka.metadata_records import PartitionChangeRecord
from harness.targets.kafka.quorum_log import QuorumLog
from tests.harness.targets.kafka.test_decisions import CREATED, LEDGER, TOPIC_ID, batch, elected


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


def test_what_an_older_epoch_left_is_not_decided_before_something_of_the_newest_is(quorum: Quorum) -> None:
    """Raft, figure 8: controllers 0 and 2 have it, and controller 1, whose epoch is newer, may still overwrite it."""
    quorum.write(leads(2, 1, leader_epoch=1), 0)
    quorum.write(leads(2, 2, leader_epoch=2), 1)
    quorum.write(leads(3, 0, leader_epoch=3), 0)
    quorum.write(leads(2, 1, leader_epoch=1), 2)
    assert not quorum.leaders()
    quorum.write(leads(3, 0, leader_epoch=3), 2)
    assert quorum.leaders() == [1, 0]


def test_what_a_power_loss_takes_from_a_majority_is_withdrawn_though_a_dead_controller_still_has_it(
    quorum: Quorum,
) -> None:
    quorum.write(leads(2, 1), 0, 1)
    assert quorum.leaders() == [1]
    (quorum.directories[1] / "00000000000000000000.log").write_bytes(batch(0, *CREATED))
    quorum.write(leads(2, 2, leader_epoch=2), 1, 2)
    withdrawn, told = quorum.log.read_on()
    assert isinstance(withdrawn, Withdrawal)
    assert [one.after.leader for one in withdrawn.decisions if isinstance(one, PartitionDecision)] == [1]
    assert isinstance(told, PartitionDecision)
    assert told.after.leader == 2
    assert quorum.log.partitions[LEDGER].leader_epoch == 1
    quorum.write(leads(3, 0, leader_epoch=2), 1, 2)
    assert quorum.leaders() == [0]


def test_a_controller_whose_disk_was_wiped_takes_nothing_back(quorum: Quorum) -> None:
    quorum.write(leads(2, 1))
    assert quorum.leaders() == [1]
    for number in (0, 1):
        (quorum.directories[number] / "00000000000000000000.log").unlink()
        quorum.write(leads(3 + number, number), *({0, 1, 2} - {number}))
        assert quorum.leaders() == [number]
        quorum.write(batch(0, *CREATED) + leads(2, 1) + b"".join(leads(3 + n, n) for n in range(number + 1)), number)
        assert not quorum.leaders()


def test_the_newest_controller_is_the_one_that_a_majority_has_heard_of(quorum: Quorum) -> None:
    quorum.write(elected(2, 102, leader_epoch=2), 1)
    quorum.leaders()
    assert quorum.log.controller is None
    quorum.write(elected(2, 102, leader_epoch=2), 2)
    quorum.leaders()
    assert quorum.log.controller == 102
