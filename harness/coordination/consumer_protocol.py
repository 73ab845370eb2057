"""The subscriptions and assignments that members of a classic group exchange through their coordinator.

Kafka's ``ConsumerProtocolSubscription.json`` and ``ConsumerProtocolAssignment.json``, of which version 0 is written.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from harness.model import TopicPartition
from harness.wire.declaration import LATEST, Message, Struct, array, int32s, stored, string, strings
from harness.wire.declaration import struct as part
from harness.wire.decoding import decoder
from harness.wire.encoding import encoder
from harness.wire.errors import WireError

KindT = TypeVar("KindT", bound=Message)

_VERSION = struct.Struct(">h")
_NO_USER_DATA = b"\xff\xff\xff\xff"
_MALFORMED = (struct.error, IndexError, UnicodeDecodeError, WireError)


@stored(versions=(0, 0), flexible=LATEST)
class Subscription(Message):
    """The topics of a member; what versions add to it follows and is not read."""

    topics: list[str] = strings()


@part
class AssignedTopic(Struct):
    """Partitions of one topic."""

    topic: str = string()
    partitions: list[int] = int32s()


@stored(versions=(0, 0), flexible=LATEST)
class Assignment(Message):
    """The partitions of a member; user data follow and are not read."""

    topics: list[AssignedTopic] = array(AssignedTopic)


def subscription(topics: Sequence[str]) -> bytes:
    """The metadata of a member that subscribes to ``topics``."""
    return _written(Subscription(list(topics)))


def subscribed_topics(metadata: Iterable[bytes]) -> set[str] | None:
    """The topics that some member subscribes to, by what each has sent; None where one has sent something else."""
    topics: set[str] = set()
    for one in metadata:
        said = _read(Subscription, one)
        if said is None:
            return None
        topics.update(said.topics)
    return topics


def assignment(partitions: Sequence[TopicPartition]) -> bytes:
    """What the leader assigns a member."""
    topics: dict[str, list[int]] = {}
    for name in partitions:
        topics.setdefault(name.topic, []).append(name.partition)
    return _written(Assignment([AssignedTopic(topic, numbers) for topic, numbers in topics.items()]))


def assigned(data: bytes) -> list[TopicPartition]:
    """The partitions that a member was assigned; none where it was assigned nothing at all."""
    said = _read(Assignment, data) if data else None
    return (
        [] if said is None else [TopicPartition(one.topic, number) for one in said.topics for number in one.partitions]
    )


def ranges(
    partitions: Sequence[TopicPartition], members: Mapping[str, Iterable[str]]
) -> dict[str, list[TopicPartition]]:
    """Kafka's range assignor: of each topic, every member that subscribes to it gets a run of neighbours.

    Args:
        partitions: of all topics.
        members: the topics that each member subscribes to.
    """
    shares: dict[str, list[TopicPartition]] = {member: [] for member in members}
    for topic in sorted({name.topic for name in partitions}):
        names = sorted(name for name in partitions if name.topic == topic)
        interested = sorted(member for member, topics in members.items() if topic in topics)
        for number, member in enumerate(interested):
            first = number * len(names) // len(interested)
            shares[member] += names[first : (number + 1) * len(names) // len(interested)]
    return shares


def _written(message: Message) -> bytes:
    out = bytearray(_VERSION.pack(0))
    encoder(type(message), 0)(message, out, [])
    return bytes(out) + _NO_USER_DATA


def _read(cls: type[KindT], data: bytes) -> KindT | None:
    view = memoryview(data)
    try:
        message, position = decoder(cls, 0)(view, _VERSION.size)
    except _MALFORMED:
        return None
    return message if position <= len(view) and isinstance(message, cls) else None
