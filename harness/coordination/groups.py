"""The groups whose coordinator is the leader of one partition of ``__consumer_offsets``.

What they say is in the log of that partition: a new leader reads it, from the first record to the last, before it
serves a request (:meth:`Groups.replay`, :meth:`Groups.begin`).

A group is of the classic protocol or of the consumer protocol (KIP-848). One without members takes up the protocol of
the first member that joins it; a member of the other protocol than that of the others is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from harness.coordination.append_errors import of_commit
from harness.coordination.classic_group import MEMBER_BYTES, ClassicGroup
from harness.coordination.consumer_group import ConsumerGroup
from harness.coordination.consumer_member import JOINING, ConsumerMember
from harness.coordination.consumer_records import ConsumerGroupMetadataKey, consumer_record
from harness.coordination.described_group import described
from harness.coordination.expiry import expired
from harness.coordination.group_commits import CONSUMER, GroupCommits
from harness.coordination.heartbeat import Heartbeat, malformed
from harness.coordination.kept_groups import GROUP_BYTES, GroupLimits, KeptGroup, KeptGroups
from harness.coordination.member import Join
from harness.coordination.offsets import CommittedOffset
from harness.coordination.ports import Answer, GroupPorts, LogRecord, Timer
from harness.coordination.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    Key,
    OffsetCommitKey,
    OffsetCommitValue,
    Value,
    group_record,
)
from harness.coordination.topics_of_group import pattern_error
from harness.error_codes import ErrorCode
from harness.model import TopicPartition
from harness.wire.declaration import Message
from harness.wire.messages.consumer_groups import DescribedConsumerGroup
from harness.wire.messages.groups import (
    DescribedGroup,
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListedGroup,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

_LEAVES_OTHERS_SINCE = 3
_NOT_FOUND_SINCE = 6


class Groups:
    """The groups of one partition.

    Args:
        ports: the broker.
        limits: see :class:`harness.coordination.kept_groups.GroupLimits`.
        bugs: the injected ones of :data:`harness.replication.bugs.BUGS`.

    Attributes:
        commits: what they have committed.
    """

    def __init__(self, ports: GroupPorts, limits: GroupLimits, bugs: Collection[str]) -> None:
        self._ports = ports
        self._limits = limits
        self._bugs = bugs
        self._groups = KeptGroups(ports, limits, bugs)
        self._read: frozenset[str] = frozenset()
        self._checks: Timer | None = None
        self.commits = GroupCommits(ports, self._groups, limits.offsets, bugs)

    # ------------------------------------------------------------------------------------ the log

    def replay(self, key: Key, value: Value | None, producer_id: int | None = None) -> None:
        """A record is in the log, perhaps as a part of the transaction of a producer."""
        match key, value:
            case OffsetCommitKey(), OffsetCommitValue():
                name = TopicPartition(key.topic, key.partition)
                times = value.commit_timestamp, value.expire_timestamp
                committed = CommittedOffset(value.offset, value.leader_epoch, value.metadata, *times)
                self.commits.replay(key.group, name, committed, producer_id)
            case OffsetCommitKey(), _:
                group = self._groups.get(key.group)
                if group is not None:
                    group.offsets.forget(TopicPartition(key.topic, key.partition))
            case GroupMetadataKey(), GroupMetadataValue():
                self._groups.classic(key.group).restore(value)
            case GroupMetadataKey(), _:
                self._forget(key.group, ClassicGroup)
            case ConsumerGroupMetadataKey(), None:
                self._forget(key.group_id, ConsumerGroup)
            case _:
                assert not isinstance(key, GroupMetadataKey | OffsetCommitKey)
                assert not isinstance(value, GroupMetadataValue | OffsetCommitValue)
                group = self._groups.get(key.group_id)
                if value is not None or (group is not None and group.consumer is not None):
                    self._groups.consumer(key.group_id).known.replay(key, value)

    def _forget(self, group_id: str, protocol: type[ClassicGroup | ConsumerGroup]) -> None:
        """A tombstone is in the log, by which a group had no members of a protocol any more."""
        group = self._groups.get(group_id)
        if group is not None and isinstance(group.members, protocol):
            self._groups.forget_members(group_id)

    def begin(self) -> None:
        """All of the log has been read: the members' sessions begin."""
        self._groups.count()
        self._read = frozenset(name for name, _ in self._groups)
        for _, group in self._groups:
            group.members.begin()
        self._check_later()

    def end(self) -> None:
        """The broker has resigned."""
        if self._checks is not None:
            self._checks.cancel()
        for _, group in self._groups:
            group.members.end()

    def _check_later(self) -> None:
        self._checks = self._ports.call_later(self._limits.offsets.check_interval_ms, self._expire)

    def _expire(self) -> None:
        """Delete the offsets whose time is over, and groups without members of which no offset is left."""
        now_ms = self._ports.wall_ms()
        for group_id, group in list(self._groups):
            names = expired(group, now_ms, self._limits.offsets)
            gone = group.offsets.tombstones(names)
            for name in names:
                group.offsets.forget(name)
            if names and group.is_empty and not group.offsets:
                self._groups.drop(group_id)
                gone += _tombstones(group_id, group)
            if gone:
                self._groups.free()
                self._ports.store(gone, lambda _: None)
        self._check_later()

    # ------------------------------------------------------------------------------------ members

    def join(self, asked: Join) -> None:
        """Serve JoinGroup."""
        request, group = asked.request, self._groups.get(asked.request.group_id)
        limits = self._limits
        in_bounds = limits.min_session_timeout_ms <= request.session_timeout_ms <= limits.max_session_timeout_ms
        if not request.group_id:
            asked.refuse(ErrorCode.INVALID_GROUP_ID)
        elif not in_bounds:
            asked.refuse(ErrorCode.INVALID_SESSION_TIMEOUT)
        elif group is None and request.member_id:
            asked.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        elif request.group_id in self._read and "joins_unanswered_after_a_failover" in self._bugs:
            pass
        elif self._is_full(asked, group):
            asked.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED)
        elif group is not None and group.consumer is not None and not group.is_empty:
            asked.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        else:
            self._take_up_classic(request.group_id)
            self._groups.classic(request.group_id).join(asked)
            self._groups.free()  # it may have been refused, or have been counted before

    def _take_up_classic(self, group_id: str) -> None:
        group = self._groups.get(group_id)
        if group is not None and group.consumer is not None and group.consumer.known.epoch:
            tombstones = [consumer_record(*one) for one in group.consumer.known.tombstones()]
            self._ports.store(tombstones, lambda _: None)

    def sync(self, request: SyncGroupRequest, answer: Answer) -> None:
        """Serve SyncGroup."""
        group = self._classic(request.group_id)
        if group is None:
            answer(SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            group.sync(request, _answering(group, answer, self._bugs))

    def heartbeat(self, request: HeartbeatRequest, answer: Answer) -> None:
        """Serve Heartbeat."""
        group = self._classic(request.group_id)
        if group is None:
            answer(HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            group.heartbeat(request, answer)

    def leave(self, request: LeaveGroupRequest, version: int, answer: Answer) -> None:
        """Serve LeaveGroup."""
        group = self._classic(request.group_id)
        leaving = request.members if version >= _LEAVES_OTHERS_SINCE else [MemberIdentity(request.member_id)]
        self._groups.free()
        results = [
            MemberResponse(
                one.member_id,
                one.group_instance_id,
                ErrorCode.UNKNOWN_MEMBER_ID if group is None else group.leave(one),
            )
            for one in leaving
        ]
        error = results[0].error_code if version < _LEAVES_OTHERS_SINCE else ErrorCode.NONE
        answer(LeaveGroupResponse(error_code=error, members=results))

    def member_heartbeat(self, asked: Heartbeat) -> None:
        """Serve ConsumerGroupHeartbeat."""
        request, group = asked.request, self._groups.get(asked.request.group_id)
        joins = request.member_epoch == JOINING
        refusal = malformed(asked) or pattern_error(request)
        if refusal is not None:
            asked.refuse(*refusal)
        elif group is None and not joins:
            asked.refuse(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {request.group_id} not found.")
        elif group is not None and group.classic is not None and not (joins and group.is_empty):
            asked.refuse(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} is not a consumer group.")
        elif request.group_id in self._read and joins and "joins_unanswered_after_a_failover" in self._bugs:
            pass
        elif not self._has_room_for_heartbeat(asked, group):
            asked.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED, "The coordinator has no room for what the member sends.")
        else:
            if group is not None and group.classic is not None and group.classic.generation:
                tombstone = group_record(GroupMetadataKey(request.group_id), None)
                self._ports.store([tombstone], lambda _: None)
            self._groups.consumer(request.group_id).heartbeat(asked)

    def describe(self, group_id: str, version: int) -> DescribedGroup:
        """One group of a DescribeGroups request; one that does not exist, or is of the other protocol, is dead."""
        group = self._groups.get(group_id)
        if group is not None and group.classic is not None:
            return group.classic.described()
        error = ErrorCode.GROUP_ID_NOT_FOUND if version >= _NOT_FOUND_SINCE else ErrorCode.NONE
        what = "not found" if group is None else "is not a classic group"
        return DescribedGroup(error, f"Group {group_id} {what}." if error else None, group_id, "Dead")

    def describe_consumer_group(self, group_id: str) -> DescribedConsumerGroup:
        """One group of a ConsumerGroupDescribe request."""
        group = self._groups.get(group_id)
        if group is not None and group.consumer is not None:
            return described(group.consumer.known, self._ports.topics)
        what = "not found" if group is None else "is not a consumer group"
        error = ErrorCode.GROUP_ID_NOT_FOUND
        return DescribedConsumerGroup(error, f"Group {group_id} {what}.", group_id)

    def listed(self, states: Sequence[str], types: Sequence[str]) -> list[ListedGroup]:
        """The groups in these states and of these types, empty meaning all; Kafka compares without case."""
        wanted, kinds = {one.lower() for one in states}, {one.lower() for one in types}
        listed = [_listed(name, group) for name, group in self._groups]
        return [
            one
            for one in listed
            if (not wanted or one.group_state.lower() in wanted) and (not kinds or one.group_type in kinds)
        ]

    def delete(self, group_id: str, deleted: Callable[[int], None]) -> None:
        """Delete a group without members, and its offsets; calls ``deleted`` with the error, now or later."""
        group = self._groups.get(group_id)
        if group is None:
            deleted(ErrorCode.GROUP_ID_NOT_FOUND)
        elif _state(group) != "Empty":
            deleted(ErrorCode.NON_EMPTY_GROUP)
        else:
            self._groups.drop(group_id)
            gone = [*group.offsets.tombstones(), *_tombstones(group_id, group)]
            self._ports.store(gone, lambda error: deleted(of_commit(error)))

    def status(self) -> list[dict[str, Any]]:
        """What every group has committed, for the control channel."""
        return [
            {"group": group, "topic": name.topic, "partition": name.partition, "offset": one.offset}
            for group, (_, offsets) in self._groups
            for name, one in offsets
        ]

    def _classic(self, group_id: str) -> ClassicGroup | None:
        group = self._groups.get(group_id)
        return None if group is None else group.classic

    def _is_full(self, asked: Join, group: KeptGroup | None) -> bool:
        """Whether there is no room for a new member, or for what it has sent."""
        classic = None if group is None else group.classic
        known = classic is not None and asked.request.member_id in classic.members
        if known:
            new = 0
            self._groups.free()  # what it has sent before is replaced
        elif group is None:
            new = GROUP_BYTES + MEMBER_BYTES
        else:
            new = MEMBER_BYTES
            expected = classic is not None and classic.expects(asked.request.member_id)
            if classic is not None and classic.count >= self._limits.max_size and not expected:
                return True
        return not self._groups.has_room_for(new + sum(len(one.metadata) for one in asked.request.protocols))

    def _has_room_for_heartbeat(self, asked: Heartbeat, group: KeptGroup | None) -> bool:
        """Whether there is room for a new member, or for the topics of one that says them again."""
        request = asked.request
        is_new = request.member_epoch == JOINING
        if not is_new and request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            return True
        said = asked.updated(ConsumerMember(asked.member_id)).said_bytes
        self._groups.free()  # a member that joins again, or says its topics again, has been counted before
        return self._groups.has_room_for(said + is_new * MEMBER_BYTES + (group is None) * GROUP_BYTES)


def _state(group: KeptGroup) -> str:
    return group.members.state if isinstance(group.members, ClassicGroup) else group.members.known.state


def _listed(name: str, group: KeptGroup) -> ListedGroup:
    if isinstance(group.members, ClassicGroup):
        return ListedGroup(name, group.members.protocol_type or "", group.members.state, "classic")
    return ListedGroup(name, CONSUMER, group.members.known.state, "consumer")


def _tombstones(group_id: str, group: KeptGroup) -> list[LogRecord]:
    """The records by which a group without members is gone."""
    if isinstance(group.members, ClassicGroup):
        return [group_record(GroupMetadataKey(group_id), None)]
    return [consumer_record(*one) for one in group.members.known.tombstones()]


def _answering(members: ClassicGroup, answer: Answer, bugs: Collection[str]) -> Answer:
    """How a coordinator answers SyncGroup: with the assignment of the member that asks, but for an injected bug."""

    def mixed_up(response: Message) -> None:
        assert isinstance(response, SyncGroupResponse)
        leader = members.members.leader
        if leader is not None and not response.error_code:
            response.assignment = members.members[leader].assignment
        answer(response)

    return mixed_up if "assignments_mixed_up" in bugs else answer
