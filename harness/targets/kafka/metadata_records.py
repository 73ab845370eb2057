"""Decodes the records of KRaft's metadata log about partitions, brokers and controllers (Kafka's ``*Record.json``).

A record's value is a frame: its own version (1), the record's type and the version of its body, each an unsigned
varint, and then the body, which is always flexible.
"""

from __future__ import annotations

import struct as structs
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

from harness.errors import EnvironmentFault
from harness.wire.declaration import (
    Buffer,
    Message,
    Struct,
    array,
    boolean,
    int8,
    int32,
    int32s,
    int64,
    nullable_int32s,
    nullable_string,
    nullable_uuids,
    string,
    struct,
    uuid,
    uuids,
)
from harness.wire.decoding import decoder
from harness.wire.errors import WireError
from harness.wire.messages.control import Feature, Listener
from harness.wire.primitives import decode_uvarint

NO_LEADER_CHANGE = -2
"""``PartitionChangeRecord.leader``: the leader stays the same, and so does the leader epoch."""

_FRAME_VERSION = 1
_CONTROL_KEY, _VERSION = structs.Struct(">hh"), structs.Struct(">h")
_LEADER_CHANGE = 2
"""``ControlRecordType.LEADER_CHANGE``."""
_MALFORMED = (structs.error, IndexError, UnicodeDecodeError, WireError)

RECORDS: dict[int, type[Message]] = {}
"""The records that are understood, by their type."""

RecordType = TypeVar("RecordType", bound=Message)


@dataclass_transform()
def _record(record_type: int, *, newest: int) -> Callable[[type[RecordType]], type[RecordType]]:
    """Make a class the body of a record, in its versions from 0 to ``newest``."""

    def declare(cls: type[RecordType]) -> type[RecordType]:
        made = struct(cls)
        made.versions, made.flexible = (0, newest), 0
        RECORDS[record_type] = made
        return made

    return declare


@_record(0, newest=4)
class RegisterBrokerRecord(Message):
    """A process of a broker has registered. A ``fenced`` one may not lead or be in sync."""

    broker_id: int = int32()
    is_migrating_zk_broker: bool = boolean(since=2)
    incarnation_id: bytes = uuid()
    broker_epoch: int = int64()
    end_points: list[Listener] = array(Listener)
    features: list[Feature] = array(Feature)
    rack: str | None = nullable_string()
    fenced: bool = boolean(default=True)
    in_controlled_shutdown: bool = boolean(since=1)


@_record(1, newest=0)
class UnregisterBrokerRecord(Message):
    """A broker is no member of the cluster any more."""

    broker_id: int = int32()
    broker_epoch: int = int64()


@_record(2, newest=0)
class TopicRecord(Message):
    """A topic has been created."""

    name: str = string()
    topic_id: bytes = uuid()


@_record(3, newest=2)
class PartitionRecord(Message):
    """A partition as a whole: when it is created, and in snapshots."""

    partition_id: int = int32(default=-1)
    topic_id: bytes = uuid()
    replicas: list[int] = int32s()
    isr: list[int] = int32s()
    removing_replicas: list[int] = int32s()
    adding_replicas: list[int] = int32s()
    leader: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)
    partition_epoch: int = int32(default=-1)
    directories: list[bytes] = uuids(since=1)
    eligible_leader_replicas: list[int] | None = nullable_int32s(since=2, tag=1)
    last_known_elr: list[int] | None = nullable_int32s(since=2, tag=2)


@_record(5, newest=2)
class PartitionChangeRecord(Message):
    """The changed fields of a partition; None: unchanged."""

    partition_id: int = int32(default=-1)
    topic_id: bytes = uuid()
    isr: list[int] | None = nullable_int32s(tag=0)
    leader: int = int32(default=NO_LEADER_CHANGE, tag=1)
    replicas: list[int] | None = nullable_int32s(tag=2)
    eligible_leader_replicas: list[int] | None = nullable_int32s(since=2, tag=6)
    last_known_elr: list[int] | None = nullable_int32s(since=2, tag=7)
    directories: list[bytes] | None = nullable_uuids(since=1, tag=8)


@_record(7, newest=0)
class FenceBrokerRecord(Message):
    """A broker has lost its session."""

    broker_id: int = int32()
    broker_epoch: int = int64()


@_record(8, newest=0)
class UnfenceBrokerRecord(Message):
    """A broker has a session."""

    broker_id: int = int32()
    broker_epoch: int = int64()


@_record(9, newest=0)
class RemoveTopicRecord(Message):
    """A topic has been deleted."""

    topic_id: bytes = uuid()


@_record(17, newest=3)
class BrokerRegistrationChangeRecord(Message):
    """A change of a broker's registration; ``fenced``: -1 its session has begun, 1 it has ended."""

    broker_id: int = int32()
    broker_epoch: int = int64()
    fenced: int = int8(tag=0)


@struct
class Voter(Struct):
    """One of the controllers."""

    voter_id: int = int32()
    voter_directory_id: bytes = uuid(since=1)


@struct
class LeaderChangeMessage(Message):
    """The first record of a newly elected controller (``LeaderChangeMessage.json``)."""

    leader_id: int = int32()
    voters: list[Voter] = array(Voter)
    granting_voters: list[Voter] = array(Voter)


LeaderChangeMessage.versions, LeaderChangeMessage.flexible = (0, 1), 0


def leader_change(key: Buffer, value: Buffer) -> LeaderChangeMessage | None:
    """The election that a control record is about; None: it is about something else.

    Raises:
        EnvironmentFault: it is of a version that is not known, or malformed.
    """
    try:
        _, control_type = _CONTROL_KEY.unpack_from(key)
        if control_type != _LEADER_CHANGE:
            return None
        (version,) = _VERSION.unpack_from(value)
        if version > LeaderChangeMessage.versions[1]:
            raise EnvironmentFault(
                f"the metadata log has a LeaderChangeMessage of version {version}, and only versions up to "
                f"{LeaderChangeMessage.versions[1]} are understood.",
                "Run a release of Kafka that `seawall kafka list` names.",
            )
        body: Any
        body, _ = decoder(LeaderChangeMessage, version)(memoryview(value), _VERSION.size)
    except _MALFORMED as problem:
        raise EnvironmentFault(f"a control record of the metadata log is malformed: {problem}.") from None
    assert isinstance(body, LeaderChangeMessage)
    return body


def decode(value: Buffer) -> Message | None:
    """The record whose frame ``value`` is; None when it is about something else.

    Raises:
        EnvironmentFault: it is of a version that is not known, or malformed.
    """
    view = memoryview(value)
    try:
        frame_version, position = decode_uvarint(view, 0)
        record_type, position = decode_uvarint(view, position)
        version, position = decode_uvarint(view, position)
        cls = RECORDS.get(record_type)
        if cls is None:
            return None
        if frame_version != _FRAME_VERSION or version > cls.versions[1]:
            raise EnvironmentFault(
                f"the metadata log has a {cls.__name__} of version {version} in a frame of version {frame_version}, "
                f"and only versions up to {cls.versions[1]} in frames of version {_FRAME_VERSION} are understood.",
                "Run a release of Kafka that `seawall kafka list` names.",
            )
        body: Any
        body, position = decoder(cls, version)(view, position)
    except _MALFORMED as problem:
        raise EnvironmentFault(f"a record of the metadata log is malformed: {problem}.") from None
    if position != len(view):
        raise EnvironmentFault(f"a {cls.__name__} fills {position} of its {len(view)} bytes in the metadata log.")
    assert isinstance(body, Message)
    return body
