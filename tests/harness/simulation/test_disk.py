"""The simulated disk, and what a broker finds on it."""

from __future__ import annotations

from harness.replication.messages import BatchSpan, EpochEntry
from harness.simulation.core.disk import Disk, laid_out


def _record(offset: int, leader_epoch: int) -> BatchSpan:
    return BatchSpan(offset, offset + 1, leader_epoch)


def test_an_epoch_without_records_that_a_power_loss_brings_back_does_not_claim_an_older_epochs_record() -> None:
    disk = Disk(flush_messages=1, checkpoints_flushed=False)
    disk.append([laid_out(_record(0, 0), [10])])
    disk.checkpoint_epochs((EpochEntry(0, 0), EpochEntry(1, 1)))  # it led in epoch 1, and nobody sent anything
    disk.flush_all()
    disk.checkpoint_epochs((EpochEntry(0, 0),))
    disk.append([laid_out(_record(1, 0), [11])])
    disk.checkpoint_epochs((EpochEntry(0, 0), EpochEntry(2, 2)))
    disk.append([laid_out(_record(2, 2), [12])])
    disk.lose_power(lambda: 0.5)
    assert disk.recover_epochs() == (EpochEntry(0, 0), EpochEntry(2, 2))
