"""The *truth*: the record that a leader committed at each offset below the true high watermark."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model import NO_LEADER, NodeId, Offset
from harness.replication.controller_messages import Elected
from harness.simulation.core.configuration import Configuration
from harness.simulation.core.disk import Batch, Record
from harness.simulation.invariants.forks import Forks
from harness.simulation.witnessed import Broker


class CommittedLog:
    """See the module.

    Attributes:
        records: by offset, below the true high watermark.
        epochs: likewise, the epoch of the leader whose watermark passed it, or of the last one that was elected
            although it might have lacked it, and had it.
        ever: (offset, value) of everything that was ever below a leader's high watermark.
        forks: what elections that may lose records gave up, and what they did not.
        given_up: the newest leader epoch that began with such an election; -1: none did. What leaders of older epochs
            wrote may be lost, even what they acknowledge before they learn that they lead no more.
        unclean_epochs: all of them.
        deleted: below this offset records have been deleted on purpose, on some broker at least. What a log holds there
            is not compared any more, but a log that ends there lacks what was committed.
        compared: up to where each replica's log has been compared with this one.
    """

    def __init__(self, configuration: Configuration) -> None:
        self.records: list[Record] = []
        self.epochs: list[int] = []
        self.ever: set[tuple[Offset, int]] = set()
        self.forks = Forks()
        self.given_up = -1
        self.unclean_epochs: set[int] = set()
        self.deleted: Offset = 0
        self.compared: dict[NodeId, Offset] = {}
        self._may_give_up = (
            configuration.unclean_leader_election_enable or configuration.lossy_budget >= configuration.minimal_isr
        )

    @property
    def end(self) -> Offset:
        """The true high watermark."""
        return len(self.records)

    # ------------------------------------------------------------------------------------------------ what it tells

    def missing(self, broker: Broker, before_epoch: int | None = None) -> Offset | None:
        """The first committed offset at which a replica's log does not hold the truth; None: it is complete.

        Args:
            broker: whose log.
            before_epoch: look only at what leaders of earlier epochs committed; None: at everything.
        """
        for offset in self.lacking(broker, min(self.deleted, broker.disk.end), self.end):
            if before_epoch is None or self.epochs[offset] < before_epoch:
                return offset
        return None

    def lacking(self, broker: Broker, first: Offset, end: Offset) -> list[Offset]:
        """The offsets from ``first`` up to ``end`` (exclusive) at which a replica's log does not hold the truth."""
        records, start = broker.disk.records, broker.disk.start
        if first >= start and records[first - start : end - start] == self.records[first:end]:
            return []
        held = dict(enumerate(records, start))
        return [offset for offset in range(first, end) if held.get(offset) != self.records[offset]]

    def lacked_by(self, broker: Broker, first: Offset) -> Offset | None:
        """The first offset from ``first`` on that a replica which may be elected must have, and lacks."""
        for offset in self.lacking(broker, max(first, min(self.deleted, broker.disk.end)), self.end):
            if self.epochs[offset] >= self.given_up:
                return offset
        return None

    def among(self, batches: list[Batch]) -> Iterator[Offset]:
        """The offsets of records in ``batches`` that are committed, and not deleted."""
        for span, records in batches:
            for offset, record in enumerate(records, span.base_offset):
                if self.deleted <= offset < self.end and self.records[offset] == record:
                    yield offset

    def may_differ(self, broker: Broker, offset: Offset) -> bool:
        """Whether ``offset`` was committed before records were given up, or the replica does not know of that yet."""
        older = broker.replica is not None and broker.replica.leader_epoch < self.given_up
        return older or self.epochs[offset] < self.given_up

    # -------------------------------------------------------------------------------------------- what changes it

    def shortened(self, broker: Broker, end: Offset) -> None:
        """A replica's log ends at ``end`` now: what comes after that is to be compared again."""
        self.compared[broker.node] = min(self.compared.get(broker.node, 0), end)

    def delete(self, before: Offset) -> None:
        """Records before that offset are deleted on purpose."""
        self.deleted = max(self.deleted, before)

    def commit(self, leader: Broker, epoch: int, high_watermark: Offset) -> Offset:
        """Take what a leader's watermark has passed; returns the first offset of it that the leader has."""
        disk = leader.disk
        if disk.start > self.end:
            unknown = disk.start - self.end
            self.epochs += [epoch] * unknown
            self.records += [Record(-1, -1)] * unknown
            self.delete(disk.start)
        first = max(self.end, disk.start)
        records = disk.records[first - disk.start : high_watermark - disk.start]
        self.ever.update((offset, record.value) for offset, record in enumerate(records, first))
        if epoch >= self.given_up:
            self.records += records
            self.epochs += [epoch] * len(records)
        return first

    def elected(self, effect: Elected) -> None:
        """The controller has changed the leader: an election that is not clean may lose what was committed.

        Where unclean elections are disabled, one that is not clean elects the last known leader (KIP-966), and that one
        has everything, as long as no more brokers lose power than the fault budget allows.
        """
        state = effect.partition
        if not effect.clean and state.leader != NO_LEADER and self._may_give_up:
            self.given_up = state.leader_epoch
            self.forks.elected(state.leader_epoch)
            self.unclean_epochs.add(state.leader_epoch)

    def took_office(self, leader: Broker, epoch: int) -> None:
        """A replica leads; the first since an election that may lose records decides what is committed."""
        if self.forks.took_office(epoch, leader.disk):
            lacking = self.missing(leader)
            end = self.end if lacking is None else lacking
            self.epochs[:end] = [epoch] * end

    def cut(self, offset: Offset) -> None:
        """The leader lacks what was committed from ``offset`` on: it will commit something else there."""
        del self.records[offset:], self.epochs[offset:]
        self.deleted = min(self.deleted, offset)
        for node, compared in self.compared.items():
            self.compared[node] = min(compared, offset)
