"""The records of ``__consumer_offsets``: their keys and values, as Kafka writes them (the ``*.json`` of those names).

A key begins with a version that says what it is a key of, a value with a version of its own. A tombstone of a key
deletes what earlier records with this key say.
"""

from __future__ import annotations

import struct
from typing import TypeVar

from harness.coordination.surroundings import GroupRecord
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
)
from harness.wire.declaration import struct as part
from harness.wire.decoding import decoder
from harness.wire.encoding import encoder
from harness.wire.errors import WireError

GROUPS_TOPIC = "__consumer_offsets"

_VERSION = struct.Struct(">h")
_MALFORMED = (struct.error, IndexError, UnicodeDecodeError)

Kind = TypeVar("Kind", bound=Message)


@stored(versions=(0, 1), flexible=LATEST)
class OffsetCommitKey(Message):
    """Of the offset that a group has committed for a partition."""

    group: str = string()
    topic: str = string()
    partition: int = int32()


@stored(versions=(0, 3), flexible=LATEST)
class OffsetCommitValue(Message):
    """The committed offset; ``commit_timestamp`` in milliseconds since the Unix epoch."""

    offset: int = int64()
    leader_epoch: int = int32(since=3, default=NO_EPOCH)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64(since=1, until=1, default=-1)


@stored(versions=(2, 2), flexible=LATEST)
class GroupMetadataKey(Message):
    """Of a group of the classic protocol."""

    group: str = string()


@part
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

Key = OffsetCommitKey | GroupMetadataKey
Value = OffsetCommitValue | GroupMetadataValue


def offset_record(key: OffsetCommitKey, value: OffsetCommitValue | None) -> GroupRecord:
    """The record of a committed offset; None deletes it."""
    return GroupRecord(_encoded(key, _OFFSET_KEY), None if value is None else _encoded(value, _OFFSET_VALUE))


def group_record(key: GroupMetadataKey, value: GroupMetadataValue | None) -> GroupRecord:
    """The record of a group; None deletes it."""
    return GroupRecord(_encoded(key, _GROUP_KEY), None if value is None else _encoded(value, _GROUP_VALUE))


def decoded(key: bytes, value: bytes | None) -> tuple[Key, Value | None] | None:
    """What a record says; None where its key is of a kind that is not known here, which Kafka skips, too.

    Raises:
        WireError: it is malformed.
    """
    kind = _version(key)
    if kind in (0, _OFFSET_KEY):
        offset = None if value is None else _decoded(OffsetCommitValue, value)
        return _body(OffsetCommitKey, kind, key), offset
    if kind == _GROUP_KEY:
        group = None if value is None else _decoded(GroupMetadataValue, value)
        return _body(GroupMetadataKey, kind, key), group
    return None


def _encoded(message: Message, version: int) -> bytes:
    out = bytearray(_VERSION.pack(version))
    encoder(type(message), version)(message, out, [])
    return bytes(out)


def _decoded(cls: type[Kind], data: bytes) -> Kind:
    version = _version(data)
    if not cls.versions[0] <= version <= cls.versions[1]:
        raise WireError(f"a {cls.__name__} of version {version}")
    return _body(cls, version, data)


def _version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise WireError(f"a key or value of {len(data)} bytes")
    return int(_VERSION.unpack_from(data)[0])


def _body(cls: type[Kind], version: int, data: bytes) -> Kind:
    view = memoryview(data)
    try:
        message, position = decoder(cls, version)(view, _VERSION.size)
    except _MALFORMED as error:
        raise WireError(f"a {cls.__name__} is malformed: {error}") from error
    if position != len(view):
        raise WireError(f"a {cls.__name__} of {position} bytes in {len(view)}")
    assert isinstance(message, cls)
    return message
