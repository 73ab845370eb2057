"""The records of ``__consumer_offsets``: their keys and values, as Kafka writes them (the ``*.json`` of those names).

A key begins with a version that says what it is a key of, a value with a version of its own. A tombstone of a key
deletes what earlier records with this key say.
"""

from __future__ import annotations

from dataclasses import replace

from harness.coordination.consumer_records import ConsumerKey, ConsumerValue, decoded_consumer_record
from harness.coordination.ports import LogRecord
from harness.coordination.stored import body_of, encoded, value_of, version_of
from harness.model import NO_EPOCH
from harness.wire.declaration import (
    LATEST,
    Message,
    Struct,
    array,
    int32,
    int64,
    nullable_string,
    octets,
    stored,
    string,
    struct,
)


@stored(versions=(0, 1), flexible=LATEST)
class OffsetCommitKey(Message):
    """Of the offset that a group has committed for a partition."""

    group: str = string()
    topic: str = string()
    partition: int = int32()


@stored(versions=(0, 3), flexible=LATEST)
class OffsetCommitValue(Message):
    """The committed offset; times in milliseconds since the Unix epoch. ``expire_timestamp``: -1: not stated."""

    offset: int = int64()
    leader_epoch: int = int32(since=3, default=NO_EPOCH)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64(since=1, until=1, default=-1)


@stored(versions=(2, 2), flexible=LATEST)
class GroupMetadataKey(Message):
    """Of a group of the classic protocol."""

    group: str = string()


@struct
class MemberMetadata(Struct):
    """A member of a stable group; times in milliseconds."""

    member_id: str = string()
    group_instance_id: str | None = nullable_string(since=3)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32(since=1)
    session_timeout: int = int32()
    subscription: bytes = octets()
    assignment: bytes = octets()


@stored(versions=(0, 3), flexible=LATEST)
class GroupMetadataValue(Message):
    """A generation of a group, complete with the assignment of its members."""

    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = nullable_string()
    leader: str | None = nullable_string()
    current_state_timestamp: int = int64(since=2, default=-1)
    members: list[MemberMetadata] = array(MemberMetadata)


_OFFSET_KEY, _GROUP_KEY = 1, 2
_OFFSET_VALUE, _GROUP_VALUE = 3, 3
_OFFSET_THAT_EXPIRES = 1
"""The version of the value of an offset that states when it expires."""

Key = OffsetCommitKey | GroupMetadataKey | ConsumerKey
Value = OffsetCommitValue | GroupMetadataValue | ConsumerValue


def offset_record(key: OffsetCommitKey, value: OffsetCommitValue | None) -> LogRecord:
    """The record of a committed offset; None deletes it. One that states when it expires has no leader epoch."""
    if value is None:
        return LogRecord(encoded(key, _OFFSET_KEY), None)
    if value.expire_timestamp < 0:
        return LogRecord(encoded(key, _OFFSET_KEY), encoded(value, _OFFSET_VALUE))
    return LogRecord(encoded(key, _OFFSET_KEY), encoded(replace(value, leader_epoch=NO_EPOCH), _OFFSET_THAT_EXPIRES))


def group_record(key: GroupMetadataKey, value: GroupMetadataValue | None) -> LogRecord:
    """The record of a group; None deletes it."""
    return LogRecord(encoded(key, _GROUP_KEY), None if value is None else encoded(value, _GROUP_VALUE))


def decoded(key: bytes, value: bytes | None) -> tuple[Key, Value | None] | None:
    """What a record says; None where its key is of a kind that is not known here, which Kafka skips, too.

    Raises:
        WireError: it is malformed.
    """
    kind = version_of(key)
    if kind in (0, _OFFSET_KEY):
        offset = None if value is None else value_of(OffsetCommitValue, value)
        return body_of(OffsetCommitKey, kind, key), offset
    if kind == _GROUP_KEY:
        group = None if value is None else value_of(GroupMetadataValue, value)
        return body_of(GroupMetadataKey, kind, key), group
    return decoded_consumer_record(kind, key, value)
