"""What a coordinator knows of one transactional id: its producer, and the producer's transaction."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from harness.coordination.ports import ProducerIdentity
from harness.coordination.transaction_records import State, TransactionPartitions, TransactionValue
from harness.model import TopicPartition

NO_PRODUCER_EPOCH = -1
NO_PRODUCER_ID = -1
NUMBERED = 2
"""The version of the protocol in which each transaction has an epoch of its own."""

LAST_EPOCH = 32_766
"""A producer with this epoch gets a new id: the largest 16-bit integer is for fencing it off."""
NEVER_MS = -1


class Transaction(NamedTuple):
    """A transaction, or that none is open.

    Attributes:
        producer: the process that has the transactional id; epoch -1 until it is stored for the first time.
        timeout_ms: after how long, in milliseconds, the coordinator aborts it.
        state: how far it is.
        partitions: where it has records, or may have.
        start_ms: when it began, in milliseconds since the Unix epoch; -1: none has.
        update_ms: when this was decided.
        last_epoch: the epoch of the producer before it asked for this one (KIP-360); it is not in the log.
        version: by which version of the protocol it is run, or was the last one: 0, or 2 with an epoch for each
            transaction (KIP-890).
        previous_id: with version 2 the id that the producer had in its last transaction, if that is another one.
        next_id: the id that it has after this transaction; -1: the same.
    """

    producer: ProducerIdentity
    timeout_ms: int
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NEVER_MS
    update_ms: int = NEVER_MS
    last_epoch: int = NO_PRODUCER_EPOCH
    version: int = 0
    previous_id: int = NO_PRODUCER_ID
    next_id: int = NO_PRODUCER_ID

    @classmethod
    def stored(cls, value: TransactionValue) -> Transaction:
        """What a record of the log says."""
        return cls(
            ProducerIdentity(value.producer_id, value.producer_epoch),
            value.transaction_timeout_ms,
            State(value.transaction_status),
            frozenset(
                TopicPartition(topic.topic, partition)
                for topic in value.transaction_partitions or ()
                for partition in topic.partition_ids
            ),
            value.transaction_start_timestamp_ms,
            value.transaction_last_update_timestamp_ms,
            version=value.client_transaction_version,
            previous_id=value.previous_producer_id,
            next_id=value.next_producer_id,
        )

    def value(self) -> TransactionValue:
        """The record of it."""
        topics: dict[str, list[int]] = {}
        for topic, partition in sorted(self.partitions):
            topics.setdefault(topic, []).append(partition)
        return TransactionValue(
            self.producer.producer_id,
            self.previous_id,
            self.next_id,
            self.producer.epoch,
            self.timeout_ms,
            self.state,
            None if self.state is State.EMPTY else [TransactionPartitions(*one) for one in topics.items()],
            self.update_ms,
            self.start_ms,
            self.version,
        )

    def may_go_on(self, before: ProducerIdentity | None) -> bool:
        """Whether the producer that it has been may have a new epoch (KIP-360); None: a new process always may."""
        if before is None or self.producer.epoch == NO_PRODUCER_EPOCH:
            return True
        return before.producer_id == self.producer.producer_id and before.epoch in (
            self.producer.epoch,
            self.last_epoch,
        )

    def initialised(self, before: ProducerIdentity | None, timeout_ms: int, now_ms: int) -> Transaction:
        """After InitProducerId: the epoch is raised, unless its answer was lost and the producer asks for it again."""
        epoch = self.producer.epoch
        if before is not None and before.epoch == self.last_epoch and epoch != NO_PRODUCER_EPOCH:
            return self._replace(timeout_ms=timeout_ms, update_ms=now_ms)
        last = NO_PRODUCER_EPOCH if before is None else epoch
        return self._emptied(ProducerIdentity(self.producer.producer_id, epoch + 1), timeout_ms, now_ms, last)

    def renewed(self, producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
        """After InitProducerId, where the producer id has used all of its epochs."""
        return self._emptied(ProducerIdentity(producer_id, 0), timeout_ms, now_ms, NO_PRODUCER_EPOCH)

    def _emptied(self, producer: ProducerIdentity, timeout_ms: int, now_ms: int, last_epoch: int) -> Transaction:
        return Transaction(producer, timeout_ms, update_ms=now_ms, last_epoch=last_epoch)

    def with_partitions(self, partitions: Collection[TopicPartition], now_ms: int, version: int = 0) -> Transaction:
        """With these partitions, too; it begins now, by a version of the protocol, unless it is open."""
        is_open = self.state is State.ONGOING
        return self._replace(
            state=State.ONGOING,
            partitions=(self.partitions if is_open else frozenset()).union(partitions),
            start_ms=self.start_ms if is_open else now_ms,
            update_ms=now_ms,
            version=version,
        )

    def fenced(self) -> Transaction:
        """With an epoch that its producer does not have."""
        producer = self.producer._replace(epoch=self.producer.epoch + 1)
        return self._replace(producer=producer, last_epoch=NO_PRODUCER_EPOCH)

    def prepared(self, now_ms: int, *, commits: bool) -> Transaction:
        """It is decided how it ends."""
        return self._replace(state=State.PREPARE_COMMIT if commits else State.PREPARE_ABORT, update_ms=now_ms)

    def numbered(self, next_id: int) -> Transaction:
        """With the epoch in which it ends, that of the next one; ``next_id``: its producer has used up its epochs."""
        bumped = self.producer._replace(epoch=self.producer.epoch + 1)
        return self._replace(
            producer=bumped, last_epoch=self.producer.epoch, version=NUMBERED, next_id=next_id,
            previous_id=NO_PRODUCER_ID, partitions=self.partitions if self.state is State.ONGOING else frozenset(),
        )  # fmt: skip

    @property
    def next_producer(self) -> ProducerIdentity:
        """Who the producer is in its next transaction, once it is decided how this one ends."""
        return self.producer if self.next_id == NO_PRODUCER_ID else ProducerIdentity(self.next_id, 0)

    def has_ended_for(self, producer: ProducerIdentity) -> bool:
        """Whether this is what the producer's transaction has become that was numbered, and has ended, or is ending."""
        if self.version != NUMBERED or self.state in (State.EMPTY, State.ONGOING):
            return False
        if self.previous_id != NO_PRODUCER_ID:
            return producer == (self.previous_id, LAST_EPOCH)
        return producer == self.producer._replace(epoch=self.producer.epoch - 1)

    def completed(self, now_ms: int) -> Transaction:
        """All of its partitions have their markers."""
        done = State.COMPLETE_COMMIT if self.state is State.PREPARE_COMMIT else State.COMPLETE_ABORT
        renewed = self.next_id != NO_PRODUCER_ID
        return self._replace(
            producer=self.next_producer,
            previous_id=self.producer.producer_id if renewed else NO_PRODUCER_ID,
            next_id=NO_PRODUCER_ID,
            state=done,
            partitions=frozenset(),
            update_ms=now_ms,
        )
