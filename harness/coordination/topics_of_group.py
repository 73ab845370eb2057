"""The topics that the members of a group of the consumer protocol subscribe to, as the coordinator knows them."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from harness.coordination.consumer_member import ConsumerMember
from harness.coordination.heartbeat import Refusal
from harness.coordination.internal_topics import INTERNAL_TOPICS
from harness.coordination.ports import Topics
from harness.coordination.topic_pattern import BadPattern, topic_pattern
from harness.error_codes import ErrorCode
from harness.wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest


class KnownTopic(NamedTuple):
    """A topic: its id, and how many partitions it has."""

    topic_id: bytes
    partitions: int


def topics_of(topics: Topics, member: ConsumerMember) -> dict[str, KnownTopic]:
    """The topics that a member subscribes to, by their names, without those that do not exist."""
    names = set(member.topics)
    if member.regex is not None:
        pattern = topic_pattern(member.regex)
        names.update(name for name in topics.names() if name not in INTERNAL_TOPICS and pattern.matches(name))
    known = {name: topics.topic_id(name) for name in sorted(names)}
    return {name: KnownTopic(found, topics.partition_count(name)) for name, found in known.items() if found is not None}


def topics_of_all(topics: Topics, members: Iterable[ConsumerMember]) -> dict[str, KnownTopic]:
    """The same of all members."""
    return {name: known for member in members for name, known in topics_of(topics, member).items()}


def metadata_hash(topics: dict[str, KnownTopic]) -> int:
    """A number that is another one when topics are added, created anew, or get more partitions.

    Kafka computes another number of the same. A coordinator compares it with its own alone: a Kafka that takes over
    such a log begins one more epoch. 0: there are no topics.
    """
    if not topics:
        return 0
    told = sha256()
    for name, (topic_id, partitions) in sorted(topics.items()):
        told.update(f"{name}/{topic_id.hex()}/{partitions};".encode())
    return int.from_bytes(told.digest()[:8], "big", signed=True)


def pattern_error(request: ConsumerGroupHeartbeatRequest) -> Refusal | None:
    """Why the pattern in a request is refused."""
    try:
        topic_pattern(request.subscribed_topic_regex or "")
    except BadPattern as error:
        return Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error))
    return None
