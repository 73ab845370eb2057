"""Requests about consumer groups, as the coordinator serves them to clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from harness.broker.group_coordinator import GroupCoordinator
from harness.broker.metadata import ClusterMetadata
from harness.broker.session import Request
from harness.clock import Clock
from harness.coordination.group_commits import Committer
from harness.coordination.groups import Groups
from harness.coordination.heartbeat import Heartbeat
from harness.coordination.member import Join
from harness.coordination.offsets import NOT_COMMITTED, CommittedOffset
from harness.coordination.ports import Caller
from harness.error_codes import ErrorCode
from harness.model import TopicPartition
from harness.wire.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    DescribedConsumerGroup,
)
from harness.wire.messages.consumers import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from harness.wire.messages.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
    SyncGroupRequest,
)
from harness.wire.messages.transactions import TxnOffsetCommitRequestTopic

_MAX_METADATA_BYTES = 4_096
"""Kafka's ``offset.metadata.max.bytes``."""

_NAMES_EPOCHS_SINCE = 9
"""The version of OffsetCommit from which on a generation may be a member epoch (KIP-848)."""


def join_group(coordinator: GroupCoordinator, request: Request) -> None:
    """Serve JoinGroup: the answer waits for the other members."""
    body = cast("JoinGroupRequest", request.body)
    caller = Caller(request.header.client_id or "", request.session.host)
    asked = Join(body, request.version, caller, request.answer)
    _at(coordinator, body.group_id, request, lambda groups: groups.join(asked))


def sync_group(coordinator: GroupCoordinator, request: Request) -> None:
    """Serve SyncGroup: the answer waits for the leader of the group."""
    body = cast("SyncGroupRequest", request.body)
    _at(coordinator, body.group_id, request, lambda groups: groups.sync(body, request.answer))


def heartbeat(coordinator: GroupCoordinator, request: Request) -> None:
    """Serve Heartbeat."""
    body = cast("HeartbeatRequest", request.body)
    _at(coordinator, body.group_id, request, lambda groups: groups.heartbeat(body, request.answer))


def leave_group(coordinator: GroupCoordinator, request: Request) -> None:
    """Serve LeaveGroup."""
    body = cast("LeaveGroupRequest", request.body)
    _at(coordinator, body.group_id, request, lambda groups: groups.leave(body, request.version, request.answer))


def consumer_group_heartbeat(coordinator: GroupCoordinator, request: Request) -> None:
    """Serve ConsumerGroupHeartbeat: the answer waits until what it leads to is stored."""
    body = cast("ConsumerGroupHeartbeatRequest", request.body)
    client_id = request.header.client_id or ""
    asked = Heartbeat(
        body,
        request.version,
        body.member_id or coordinator.new_member_id(client_id),
        Caller(client_id, request.session.host),
        request.answer,
    )
    _at(coordinator, body.group_id, request, lambda groups: groups.member_heartbeat(asked))


def consumer_group_describe(coordinator: GroupCoordinator, request: Request) -> None:
    """Serve ConsumerGroupDescribe: each group on its own."""
    body = cast("ConsumerGroupDescribeRequest", request.body)
    described = []
    for group in dict.fromkeys(body.group_ids):
        groups = coordinator.groups_of(group)
        if isinstance(groups, ErrorCode):
            described.append(DescribedConsumerGroup(groups, group_id=group))
        else:
            described.append(groups.describe_consumer_group(group))
    request.answer(ConsumerGroupDescribeResponse(groups=described))


def describe_groups(coordinator: GroupCoordinator, request: Request) -> None:
    """Serve DescribeGroups: each group on its own."""
    body = cast("DescribeGroupsRequest", request.body)
    described = []
    for group in dict.fromkeys(body.groups):
        groups = coordinator.groups_of(group)
        if isinstance(groups, ErrorCode):
            described.append(DescribedGroup(groups, group_id=group))
        else:
            described.append(groups.describe(group, request.version))
    request.answer(DescribeGroupsResponse(groups=described))


def list_groups(coordinator: GroupCoordinator, request: Request) -> None:
    """Serve ListGroups: those that this broker coordinates."""
    body = cast("ListGroupsRequest", request.body)
    found = coordinator.all_groups()
    if isinstance(found, ErrorCode):
        request.answer(ListGroupsResponse(error_code=found))
        return
    listed = [one for groups in found for one in groups.listed(body.states_filter, body.types_filter)]
    request.answer(ListGroupsResponse(groups=listed))


def delete_groups(coordinator: GroupCoordinator, request: Request) -> None:
    """Serve DeleteGroups: each group on its own; the answer waits until all are stored."""
    body = cast("DeleteGroupsRequest", request.body)
    names = list(dict.fromkeys(body.groups_names))
    results: dict[str, int] = {}

    def deleted(group: str, error: int) -> None:
        results[group] = error
        if len(results) == len(names):
            request.answer(DeleteGroupsResponse(results=[DeletableGroupResult(one, results[one]) for one in names]))

    if not names:
        request.answer(DeleteGroupsResponse())
    for name in names:
        groups = coordinator.groups_of(name)
        if isinstance(groups, ErrorCode):
            deleted(name, groups)
        else:
            groups.delete(name, partial(deleted, name))


def offset_commit(coordinator: GroupCoordinator, cluster: ClusterMetadata, clock: Clock, request: Request) -> None:
    """Serve OffsetCommit: the in-sync replicas of the coordinator's log have the offsets before the answer."""
    body = cast("OffsetCommitRequest", request.body)
    accepted, errors = acceptable(cluster, clock, body.topics, body.retention_time_ms)

    def committed(error: int) -> None:
        topics = [
            OffsetCommitResponseTopic(
                topic, [OffsetCommitResponsePartition(one.partition, errors.get(one, error)) for one in names]
            )
            for topic, names in named(body.topics)
        ]
        request.answer(OffsetCommitResponse(topics=topics))

    who = Committer(
        body.member_id,
        body.group_instance_id,
        body.generation_id_or_member_epoch,
        names_epochs=request.version >= _NAMES_EPOCHS_SINCE,
    )
    _at(
        coordinator, body.group_id, request,
        lambda groups: groups.commits.commit(body.group_id, who, accepted, committed),
    )  # fmt: skip


def acceptable(
    cluster: ClusterMetadata,
    clock: Clock,
    topics: Sequence[OffsetCommitRequestTopic | TxnOffsetCommitRequestTopic],
    retention_ms: int = -1,
) -> tuple[dict[TopicPartition, CommittedOffset], dict[TopicPartition, int]]:
    """What of a commit may be stored, and for the other partitions the error.

    ``retention_ms``: for how long its client wants it to be kept; -1: for as long as the broker does.
    """
    now_ms = clock.wall_ms()
    times = now_ms, now_ms + retention_ms if retention_ms >= 0 else -1
    accepted: dict[TopicPartition, CommittedOffset] = {}
    errors: dict[TopicPartition, int] = {}
    for topic in topics:
        for one in topic.partitions:
            name = TopicPartition(topic.name, one.partition_index)
            metadata = one.committed_metadata or ""
            if not cluster.knows(*name):
                errors[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif len(metadata.encode()) > _MAX_METADATA_BYTES:
                errors[name] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                accepted[name] = CommittedOffset(one.committed_offset, one.committed_leader_epoch, metadata, *times)
    return accepted, errors


def offset_fetch(coordinator: GroupCoordinator, request: Request) -> None:
    """Serve OffsetFetch: of one group up to version 7, and of several, each on its own, from version 8 on."""
    body = cast("OffsetFetchRequest", request.body)
    if not body.groups:
        _at(
            coordinator, body.group_id, request,
            lambda groups: request.answer(
                OffsetFetchResponse(topics=_fetched(groups, body.group_id, body.topics, stable=body.require_stable))
            ),
        )  # fmt: skip
        return
    answers = []
    for group, asked in {one.group_id: one for one in body.groups}.items():
        groups = coordinator.groups_of(group)
        error = groups if isinstance(groups, ErrorCode) else _fetch_error(groups, asked)
        if error or isinstance(groups, ErrorCode):
            answers.append(OffsetFetchResponseGroup(group, error_code=error))
        else:
            found = _fetched(groups, group, asked.topics, stable=body.require_stable)
            answers.append(OffsetFetchResponseGroup(group, found))
    request.answer(OffsetFetchResponse(groups=answers))


def offset_delete(coordinator: GroupCoordinator, cluster: ClusterMetadata, request: Request) -> None:
    """Serve OffsetDelete."""
    body = cast("OffsetDeleteRequest", request.body)

    def deleted(error: int, errors: dict[TopicPartition, int]) -> None:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        topics = [
            OffsetDeleteResponseTopic(
                topic, [OffsetDeleteResponsePartition(one.partition, errors.get(one, unknown)) for one in names]
            )
            for topic, names in named(body.topics)
        ]
        request.answer(OffsetDeleteResponse(error_code=error, topics=[] if error else topics))

    known = [name for _, names in named(body.topics) for name in names if cluster.knows(*name)]
    group = body.group_id
    _at(coordinator, group, request, lambda groups: groups.commits.delete_offsets(group, known, deleted))


def named(
    topics: Sequence[OffsetCommitRequestTopic | OffsetDeleteRequestTopic | TxnOffsetCommitRequestTopic],
) -> list[tuple[str, list[TopicPartition]]]:
    """Each topic of a request with its partitions."""
    return [
        (topic.name, [TopicPartition(topic.name, one.partition_index) for one in topic.partitions]) for topic in topics
    ]


def _at(coordinator: GroupCoordinator, group: str, request: Request, serve: Callable[[Groups], None]) -> None:
    """Serve a request about ``group`` if this broker coordinates it."""
    groups = coordinator.groups_of(group)
    if isinstance(groups, ErrorCode):
        request.answer(request.body.error_response(groups))
    else:
        serve(groups)


def _fetch_error(groups: Groups, asked: OffsetFetchRequestGroup) -> ErrorCode:
    """Why a member must not ask what its group has committed; a client that names no member may."""
    if asked.member_id is None and asked.member_epoch < 0:
        return ErrorCode.NONE
    return groups.commits.fetch_error(asked.group_id, asked.member_id or "", asked.member_epoch)


def _fetched(
    groups: Groups, group: str, asked: list[OffsetFetchRequestTopic] | None, *, stable: bool
) -> list[OffsetFetchResponseTopic]:
    """What a group has committed; if it has to be ``stable``, not where an open transaction commits (KIP-447)."""
    wanted = None
    if asked is not None:
        wanted = [TopicPartition(topic.name, index) for topic in asked for index in topic.partition_indexes]
    topics: dict[str, OffsetFetchResponseTopic] = {}
    for name, committed in groups.commits.committed(group, wanted).items():
        topic = topics.setdefault(name.topic, OffsetFetchResponseTopic(name.topic))
        is_open = stable and not groups.commits.is_stable(group, name)
        known = NOT_COMMITTED if is_open else committed
        error = ErrorCode.UNSTABLE_OFFSET_COMMIT if is_open else ErrorCode.NONE
        topic.partitions.append(OffsetFetchResponsePartition(name.partition, *known[:3], error))
    return list(topics.values())
