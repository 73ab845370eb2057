"""The server-side assignors of the consumer protocol (KIP-848): they compute the target assignment of a group.

Kafka's ``UniformAssignor`` and ``RangeAssignor``. Each is a pure function of the topics that the members subscribe to,
and of what they were meant to have before. Whatever the order of its arguments, it gives the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple


class TopicIdPartition(NamedTuple):
    """A partition, by its topic's id: the UUID of 16 raw bytes."""

    topic_id: bytes
    partition: int


Share = frozenset[TopicIdPartition]
"""The partitions of one member."""

NOTHING: Share = frozenset()


class Subscriber(NamedTuple):
    """A member, as an assignor sees it.

    Attributes:
        topics: the ids of the topics that it subscribes to.
        before: what it was meant to have before.
        instance_id: of a static member.
    """

    topics: frozenset[bytes]
    before: Share
    instance_id: str | None = None


Assignor = Callable[[Mapping[str, Subscriber], Mapping[bytes, int]], dict[str, Share]]
"""Takes the members by their ids, and how many partitions each topic has by its id; returns the members' shares."""


def uniform(members: Mapping[str, Subscriber], partitions: Mapping[bytes, int]) -> dict[str, Share]:
    """Give all members about as many partitions, and leave them what they had as far as that permits.

    Where all subscribe to the same topics, no member has two partitions more than another one. Otherwise each partition
    that has no owner goes to the member with the fewest that subscribes to its topic: fewer of them move than in
    Kafka's builder for that case, and the shares may differ more.
    """
    wanted = sorted(TopicIdPartition(topic, number) for topic in partitions for number in range(partitions[topic]))
    by_topic = {
        topic: sorted(name for name, member in members.items() if topic in member.topics) for topic in partitions
    }
    shares: dict[str, set[TopicIdPartition]] = {name: set() for name in sorted(members)}
    most = _quotas(members, sum(1 for one in wanted if by_topic[one.topic_id]))
    owners = {one: name for name in sorted(members) for one in sorted(members[name].before)}
    unowned = []
    for one in wanted:
        owner = owners.get(one)
        if owner is not None and owner in by_topic[one.topic_id] and len(shares[owner]) < most[owner]:
            shares[owner].add(one)
        elif by_topic[one.topic_id]:
            unowned.append(one)
    for one in unowned:
        shares[min(by_topic[one.topic_id], key=lambda name: (len(shares[name]), name))].add(one)
    return {name: frozenset(share) for name, share in shares.items()}


def _quotas(members: Mapping[str, Subscriber], count: int) -> dict[str, int]:
    """How many partitions each member may keep: those that had most may have one more where they do not divide."""
    least, rest = divmod(count, len(members)) if members else (0, 0)
    richest = sorted(members, key=lambda name: (-len(members[name].before), name))
    return {name: least + (number < rest) for number, name in enumerate(richest)}


def ranges(members: Mapping[str, Subscriber], partitions: Mapping[bytes, int]) -> dict[str, Share]:
    """Give each member that subscribes to a topic a run of neighbours, static members by their names first."""
    order = sorted(members, key=lambda name: (members[name].instance_id is None, members[name].instance_id or name))
    shares: dict[str, set[TopicIdPartition]] = {name: set() for name in order}
    for topic, count in sorted(partitions.items()):
        interested = [name for name in order if topic in members[name].topics]
        for number, name in enumerate(interested):
            run = range(_bound(number, count, len(interested)), _bound(number + 1, count, len(interested)))
            shares[name].update(TopicIdPartition(topic, one) for one in run)
    return {name: frozenset(share) for name, share in shares.items()}


def _bound(number: int, count: int, members: int) -> int:
    """Where the run of a member begins: the first ones have one partition more where they do not divide."""
    least, rest = divmod(count, members)
    return number * least + min(number, rest)


ASSIGNORS: Mapping[str, Assignor] = MappingProxyType({"uniform": uniform, "range": ranges})
"""By name; the first one is the default of ``group.consumer.assignors``."""

DEFAULT_ASSIGNOR = next(iter(ASSIGNORS))


def by_topic(share: Iterable[TopicIdPartition]) -> list[tuple[bytes, list[int]]]:
    """The partitions of a share, topic by topic, in order."""
    topics: dict[bytes, list[int]] = {}
    for one in sorted(share):
        topics.setdefault(one.topic_id, []).append(one.partition)
    return list(topics.items())
