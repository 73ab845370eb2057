"""The records of a group of the consumer protocol (KIP-848), as Kafka 4.1 writes them (the ``*.json`` of those names).

The number with which a key begins says what it is a key of; the number with which a value begins is 0. A group that
:class:`ConsumerGroupMetadataKey` names has a record of each kind for each of its members.
"""

from __future__ import annotations

from harness.coordination.ports import LogRecord
from harness.coordination.stored import body_of, encoded, value_of
from harness.wire.declaration import (
    LATEST,
    Message,
    Struct,
    array,
    int8,
    int32,
    int32s,
    int64,
    nullable_string,
    stored,
    string,
    strings,
    struct,
    uuid,
)


@stored(versions=(3, 3), flexible=LATEST)
class ConsumerGroupMetadataKey(Message):
    """Of a group."""

    group_id: str = string()


@stored(versions=(0, 0), flexible=0)
class ConsumerGroupMetadataValue(Message):
    """Its epoch, and a hash of the topics that it subscribes to."""

    epoch: int = int32()
    metadata_hash: int = int64(tag=0)


@stored(versions=(5, 5), flexible=LATEST)
class ConsumerGroupMemberMetadataKey(Message):
    """Of what a member has said about itself."""

    group_id: str = string()
    member_id: str = string()


@stored(versions=(0, 0), flexible=0)
class ConsumerGroupMemberMetadataValue(Message):
    """What it has said; the timeout in milliseconds."""

    instance_id: str | None = nullable_string()
    rack_id: str | None = nullable_string()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = strings()
    subscribed_topic_regex: str | None = nullable_string()
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = nullable_string()


@stored(versions=(6, 6), flexible=LATEST)
class ConsumerGroupTargetAssignmentMetadataKey(Message):
    """Of the group's target assignment."""

    group_id: str = string()


@stored(versions=(0, 0), flexible=0)
class ConsumerGroupTargetAssignmentMetadataValue(Message):
    """The epoch of the group for which it was computed."""

    assignment_epoch: int = int32()


@struct
class StoredPartitions(Struct):
    """Partitions of one topic."""

    topic_id: bytes = uuid()
    partitions: list[int] = int32s()


@stored(versions=(7, 7), flexible=LATEST)
class ConsumerGroupTargetAssignmentMemberKey(Message):
    """Of a member's part in the target assignment."""

    group_id: str = string()
    member_id: str = string()


@stored(versions=(0, 0), flexible=0)
class ConsumerGroupTargetAssignmentMemberValue(Message):
    """The partitions that it is meant to have."""

    topic_partitions: list[StoredPartitions] = array(StoredPartitions)


@stored(versions=(8, 8), flexible=LATEST)
class ConsumerGroupCurrentMemberAssignmentKey(Message):
    """Of what a member has."""

    group_id: str = string()
    member_id: str = string()


@stored(versions=(0, 0), flexible=0)
class ConsumerGroupCurrentMemberAssignmentValue(Message):
    """The partitions that it has, and those that it has yet to give up; ``state`` is Kafka's ``MemberState``."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[StoredPartitions] = array(StoredPartitions)
    partitions_pending_revocation: list[StoredPartitions] = array(StoredPartitions)


ConsumerKey = (
    ConsumerGroupMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
)
ConsumerValue = (
    ConsumerGroupMetadataValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
)
ConsumerRecord = tuple[ConsumerKey, ConsumerValue | None]
"""A key, and its value or None for a tombstone."""

_KINDS: dict[int, tuple[type[ConsumerKey], type[ConsumerValue]]] = {
    3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    5: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    6: (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    7: (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    8: (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
}
_VALUE_VERSION = 0


def consumer_record(key: ConsumerKey, value: ConsumerValue | None) -> LogRecord:
    """The record; a value of None deletes what earlier ones say."""
    return LogRecord(encoded(key, type(key).versions[0]), None if value is None else encoded(value, _VALUE_VERSION))


def decoded_consumer_record(kind: int, key: bytes, value: bytes | None) -> ConsumerRecord | None:
    """What a record says whose key begins with ``kind``; None where that is not one of these.

    Raises:
        WireError: it is malformed.
    """
    if kind not in _KINDS:
        return None
    key_class, value_class = _KINDS[kind]
    return body_of(key_class, kind, key), None if value is None else value_of(value_class, value)
