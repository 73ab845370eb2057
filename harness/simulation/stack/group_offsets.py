"""A client in virtual time that fetches and commits the offsets of a consumer group at its coordinator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

from confluent_kafka import KafkaError

from harness.client_ports import CommittedOffset
from harness.coordination.errors import GroupError
from harness.model import NO_GENERATION, TopicPartition
from harness.simulation.stack.client import Call, Client, Silence
from harness.simulation.stack.links import Address
from harness.wire.keys import ApiKey
from harness.wire.messages.consumers import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from harness.wire.messages.coordination import FindCoordinatorRequest, FindCoordinatorResponse

_FIND_COORDINATOR_VERSION = 2
_GROUP = 0
OFFSET_COMMIT_VERSION = 7
OFFSET_FETCH_VERSION = 7
_ASK_TIMEOUT_S = 1.0
TIMED_OUT = "_TIMED_OUT"
ELSEWHERE = frozenset(
    {GroupError.NOT_COORDINATOR, GroupError.COORDINATOR_NOT_AVAILABLE, GroupError.COORDINATOR_LOAD_IN_PROGRESS}
)
"""After these errors a client looks for the coordinator again."""


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


async def coordinator_of(client: Client, key: str, kind: int = _GROUP) -> Address | None:
    """Where the coordinator of a group or a transactional id is, by the word of one of the brokers; None: of none."""
    wanted = FindCoordinatorRequest(key, kind)
    found = await client.ask_anybody(Call(ApiKey.FIND_COORDINATOR, _FIND_COORDINATOR_VERSION, wanted, _ASK_TIMEOUT_S))
    if not isinstance(found, FindCoordinatorResponse) or found.error_code:
        return None
    return found.host, found.port


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
    if answer is None:
        return TIMED_OUT
    codes = [answer.error_code, *(one.error_code for topic in answer.topics for one in topic.partitions)]
    if any(codes):
        return KafkaError(next(filter(None, codes))).name()
    return {
        TopicPartition(topic.name, one.partition_index): CommittedOffset(
            one.committed_offset, one.committed_leader_epoch
        )
        for topic in answer.topics
        for one in topic.partitions
        if one.committed_offset >= 0
    }
