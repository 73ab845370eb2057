"""A client in virtual time that fetches and commits the offsets of a consumer group at its coordinator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, cast

from confluent_kafka import KafkaError

from harness.client_ports import CommittedOffset
from harness.model import NO_GENERATION, TopicPartition
from harness.simulation.stack.client import Call, Client, Silence
from harness.simulation.stack.coordinator import coordinator_of
from harness.wire.keys import ApiKey
from harness.wire.messages.consumers import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseTopic,
)

OFFSET_COMMIT_VERSION = 7
OFFSET_FETCH_VERSION = 7
_ASK_TIMEOUT_S = 1.0
TIMED_OUT = "_TIMED_OUT"


class GroupMetadata(NamedTuple):
    """What a member is in its group: its generation, id and static name."""

    group: str
    generation: int
    member_id: str
    instance: str | None


class GroupOffsets:
    """Implements :class:`harness.client_ports.GroupOffsets`."""

    def __init__(self, client: Client, group: str) -> None:
        self._client = client
        self._group = group

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: float
    ) -> Mapping[TopicPartition, CommittedOffset] | str:
        """See :class:`harness.client_ports.GroupOffsets`."""
        request = fetch_request(self._group, partitions)
        version = self._client.version(ApiKey.OFFSET_FETCH, OFFSET_FETCH_VERSION)
        answer = await self._ask_coordinator(Call(ApiKey.OFFSET_FETCH, version, request, timeout_s))
        return committed_offsets(cast("OffsetFetchResponse | None", answer))

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> str | None:
        """See :class:`harness.client_ports.GroupOffsets`."""
        request = commit_request(self._group, offsets)
        call = Call(ApiKey.OFFSET_COMMIT, OFFSET_COMMIT_VERSION, request, _ASK_TIMEOUT_S)
        answer = cast("OffsetCommitResponse | None", await self._ask_coordinator(call))
        if answer is None:
            return TIMED_OUT
        code = commit_error(answer)
        return KafkaError(code).name() if code else None

    def close(self) -> None:
        """See :class:`harness.client_ports.GroupOffsets`."""
        self._client.close()

    async def _ask_coordinator(self, call: Call) -> object | None:
        """Find the group's coordinator and ask it; None when there is no answer."""
        address = await coordinator_of(self._client, self._group)
        answer = None if address is None else await self._client.ask(address, call)
        return None if isinstance(answer, Silence) else answer


def commit_error(answer: OffsetCommitResponse) -> int:
    """The first error code in the answer to a commit; 0: there is none."""
    return next((one.error_code for topic in answer.topics for one in topic.partitions if one.error_code), 0)


def fetch_request(group: str, partitions: Iterable[TopicPartition]) -> OffsetFetchRequest:
    """The request for what ``group`` has committed of ``partitions``, once no transaction may change it (KIP-447)."""
    topics: dict[str, list[int]] = {}
    for name in partitions:
        topics.setdefault(name.topic, []).append(name.partition)
    asked = [OffsetFetchRequestTopic(topic, numbers) for topic, numbers in topics.items()]
    return OffsetFetchRequest(group_id=group, topics=asked, require_stable=True)


def of_member(group: str, partitions: Iterable[TopicPartition], member_id: str, epoch: int) -> OffsetFetchRequest:
    """The same, asked as a member in this epoch (KIP-848)."""
    topics = fetch_request(group, partitions).topics
    asked = [OffsetFetchRequestGroup(group, member_id, epoch, topics)]
    return OffsetFetchRequest(groups=asked, require_stable=True)


def commit_request(
    group: str,
    offsets: Mapping[TopicPartition, CommittedOffset],
    who: tuple[int, str, str | None] = (NO_GENERATION, "", None),
) -> OffsetCommitRequest:
    """The request to commit ``offsets``; ``who``: generation, member id and static name of a member."""
    generation, member_id, instance = who
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for name, (offset, epoch) in offsets.items():
        topics.setdefault(name.topic, []).append(OffsetCommitRequestPartition(name.partition, offset, epoch))
    stored = [OffsetCommitRequestTopic(topic, partitions) for topic, partitions in topics.items()]
    return OffsetCommitRequest(group, generation, member_id, instance, topics=stored)


def committed_offsets(answer: OffsetFetchResponse | None) -> dict[TopicPartition, CommittedOffset] | str:
    """What a coordinator has answered, partitions without a commit left out; or the error's name."""
    return TIMED_OUT if answer is None else found_offsets(answer.error_code, answer.topics)


def found_offsets(
    error: int, topics: Sequence[OffsetFetchResponseTopic]
) -> dict[TopicPartition, CommittedOffset] | str:  # fmt: skip
    """The offsets in an answer, partitions without a commit left out; or the name of the first error in it."""
    codes = [error, *(one.error_code for topic in topics for one in topic.partitions)]
    if any(codes):
        return KafkaError(next(filter(None, codes))).name()
    return {
        TopicPartition(topic.name, one.partition_index): CommittedOffset(
            one.committed_offset, one.committed_leader_epoch
        )
        for topic in topics
        for one in topic.partitions
        if one.committed_offset >= 0
    }
