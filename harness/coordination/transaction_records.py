"""The records of ``__transaction_state`` (``TransactionLogKey.json``, ``TransactionLogValue.json``)."""

from __future__ import annotations

from enum import IntEnum

from harness.coordination.ports import LogRecord
from harness.coordination.stored import body_of, encoded, value_of, version_of
from harness.wire.declaration import (
    LATEST,
    Message,
    Struct,
    int8,
    int16,
    int32,
    int32s,
    int64,
    nullable_array,
    stored,
    string,
    struct,
)
from harness.wire.errors import WireError

_KEY_VERSION = 0
_PLAIN, _TAGGED = 0, 1
"""Versions of values: the second one has tagged fields, for what transaction version 2 needs."""


class State(IntEnum):
    """How far the transaction of a transactional id is (``TransactionState.java``)."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5

    @property
    def title(self) -> str:
        """As Kafka's tools show it."""
        return self.name.title().replace("_", "")


@stored(versions=(0, 0), flexible=LATEST)
class TransactionKey(Message):
    """Of a transactional id."""

    transactional_id: str = string()


@struct
class TransactionPartitions(Struct):
    """The partitions of one topic that are in a transaction."""

    topic: str = string()
    partition_ids: list[int] = int32s()


@stored(versions=(0, 1), flexible=1)
class TransactionValue(Message):
    """The producer that has a transactional id, and its transaction; times in milliseconds, -1 for none.

    The id of the producer is another one in its next transaction if it has used up its epochs: ``previous_producer_id``
    is the one before, and ``next_producer_id`` the one after. ``client_transaction_version`` is by which version of the
    protocol the transaction is run.
    """

    producer_id: int = int64()
    previous_producer_id: int = int64(since=1, default=-1, tag=0)
    next_producer_id: int = int64(since=1, default=-1, tag=1)
    producer_epoch: int = int16()
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()
    transaction_partitions: list[TransactionPartitions] | None = nullable_array(TransactionPartitions)
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    client_transaction_version: int = int16(since=1, default=0, tag=2)


def transaction_record(key: TransactionKey, value: TransactionValue | None) -> LogRecord:
    """The record of a transactional id; None deletes it."""
    if value is None:
        return LogRecord(encoded(key, _KEY_VERSION), None)
    version = _TAGGED if value.client_transaction_version else _PLAIN
    return LogRecord(encoded(key, _KEY_VERSION), encoded(value, version))


def decoded(key: bytes, value: bytes | None) -> tuple[TransactionKey, TransactionValue | None] | None:
    """What a record says; None where its key is of a kind that is not known here, which Kafka skips, too.

    Raises:
        WireError: it is malformed.
    """
    if version_of(key) != _KEY_VERSION:
        return None
    said = None if value is None else value_of(TransactionValue, value)
    if said is not None and said.transaction_status not in State.__members__.values():
        raise WireError(f"a transaction in state {said.transaction_status}")
    return body_of(TransactionKey, _KEY_VERSION, key), said
