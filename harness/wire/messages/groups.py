"""Consumer groups of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and what operators ask."""

from __future__ import annotations

from harness.model import NO_GENERATION
from harness.wire.declaration import (
    LATEST,
    Message,
    Struct,
    array,
    boolean,
    int16,
    int32,
    nullable_string,
    octets,
    request,
    response,
    sentence,
    string,
    strings,
    struct,
)
from harness.wire.keys import ApiKey

_NO_OPERATIONS = -(2**31)


@struct
class JoinGroupRequestProtocol(Struct):
    """An assignment protocol that the member knows, and what it tells the leader of the group for it."""

    name: str = string()
    metadata: bytes = octets()


@request(ApiKey.JOIN_GROUP, versions=(0, 9), flexible=6)
class JoinGroupRequest(Message):
    """Joins a group, or joins it again; ``member_id`` is empty the first time. Times in milliseconds."""

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32(since=1, default=-1)
    member_id: str = string()
    group_instance_id: str | None = nullable_string(since=5)
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = nullable_string(since=8)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return JoinGroupResponse(error_code=error, member_id=self.member_id)


@struct
class JoinGroupResponseMember(Struct):
    """A member, for the leader of the group."""

    member_id: str = string()
    group_instance_id: str | None = nullable_string(since=5)
    metadata: bytes = octets()


@response(ApiKey.JOIN_GROUP, versions=(0, 9), flexible=6)
class JoinGroupResponse(Message):
    """The generation that has begun; ``members`` are for its leader alone, who assigns the partitions."""

    throttle_time_ms: int = int32(since=2)
    error_code: int = int16()
    generation_id: int = int32(default=NO_GENERATION)
    protocol_type: str | None = nullable_string(since=7)
    protocol_name: str | None = nullable_string(nullable=7, default="")
    leader: str = string()
    skip_assignment: bool = boolean(since=9)
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)


@request(ApiKey.HEARTBEAT, versions=(0, 4), flexible=4)
class HeartbeatRequest(Message):
    """Shows that a member is alive, and asks whether the group rebalances."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = nullable_string(since=3)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return HeartbeatResponse(error_code=error)


@response(ApiKey.HEARTBEAT, versions=(0, 4), flexible=4)
class HeartbeatResponse(Message):
    """Whether the member still belongs to the generation."""

    throttle_time_ms: int = int32(since=1)
    error_code: int = int16()


@struct
class MemberIdentity(Struct):
    """A member that leaves, by its id or as a static member."""

    member_id: str = string(since=3)
    group_instance_id: str | None = nullable_string(since=3)
    reason: str | None = nullable_string(since=5)


@request(ApiKey.LEAVE_GROUP, versions=(0, 5), flexible=4)
class LeaveGroupRequest(Message):
    """Members leave: the sender up to v2, any of the group from v3 on."""

    group_id: str = string()
    member_id: str = string(until=2)
    members: list[MemberIdentity] = array(MemberIdentity, since=3)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return LeaveGroupResponse(error_code=error)


@struct
class MemberResponse(Struct):
    """The result for one member that leaves."""

    member_id: str = string(since=3)
    group_instance_id: str | None = nullable_string(since=3)
    error_code: int = int16(since=3)


@response(ApiKey.LEAVE_GROUP, versions=(0, 5), flexible=4)
class LeaveGroupResponse(Message):
    """The results; up to v2 that of the only member is ``error_code``."""

    throttle_time_ms: int = int32(since=1)
    error_code: int = int16()
    members: list[MemberResponse] = array(MemberResponse, since=3)


@struct
class SyncGroupRequestAssignment(Struct):
    """What the leader of the group assigns a member."""

    member_id: str = string()
    assignment: bytes = octets()


@request(ApiKey.SYNC_GROUP, versions=(0, 5), flexible=4)
class SyncGroupRequest(Message):
    """Asks for the sender's assignment; that of the leader brings all of them."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = nullable_string(since=3)
    protocol_type: str | None = nullable_string(since=5)
    protocol_name: str | None = nullable_string(since=5)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return SyncGroupResponse(error_code=error)


@response(ApiKey.SYNC_GROUP, versions=(0, 5), flexible=4)
class SyncGroupResponse(Message):
    """The assignment of the member."""

    throttle_time_ms: int = int32(since=1)
    error_code: int = int16()
    protocol_type: str | None = nullable_string(since=5)
    protocol_name: str | None = nullable_string(since=5)
    assignment: bytes = octets()


@request(ApiKey.DESCRIBE_GROUPS, versions=(0, 6), flexible=5)
class DescribeGroupsRequest(Message):
    """Asks for the states of groups and for their members."""

    groups: list[str] = strings()
    include_authorized_operations: bool = boolean(since=3)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return DescribeGroupsResponse(groups=[DescribedGroup(error, group_id=group) for group in self.groups])


@struct
class DescribedGroupMember(Struct):
    """A member; ``member_metadata`` is its word for the protocol that the group has chosen."""

    member_id: str = string()
    group_instance_id: str | None = nullable_string(since=4)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = octets()
    member_assignment: bytes = octets()


@struct
class DescribedGroup(Struct):
    """One group; ``protocol_data`` is the name of its assignment protocol."""

    error_code: int = int16()
    error_message: str | None = sentence(since=6)
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = int32(since=3, default=_NO_OPERATIONS)


@response(ApiKey.DESCRIBE_GROUPS, versions=(0, 6), flexible=5)
class DescribeGroupsResponse(Message):
    """The groups."""

    throttle_time_ms: int = int32(since=1)
    groups: list[DescribedGroup] = array(DescribedGroup)


@request(ApiKey.LIST_GROUPS, versions=(0, 5), flexible=3)
class ListGroupsRequest(Message):
    """Asks a broker for the groups that it coordinates, in given states and of given types; empty: in all, of all."""

    states_filter: list[str] = strings(since=4)
    types_filter: list[str] = strings(since=5)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return ListGroupsResponse(error_code=error)


@struct
class ListedGroup(Struct):
    """One group."""

    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string(since=4)
    group_type: str = string(since=5)


@response(ApiKey.LIST_GROUPS, versions=(0, 5), flexible=3)
class ListGroupsResponse(Message):
    """The groups of one coordinator."""

    throttle_time_ms: int = int32(since=1)
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)


@request(ApiKey.DELETE_GROUPS, versions=(0, 2), flexible=2)
class DeleteGroupsRequest(Message):
    """Deletes groups that have no members."""

    groups_names: list[str] = strings()

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return DeleteGroupsResponse(results=[DeletableGroupResult(group, error) for group in self.groups_names])


@struct
class DeletableGroupResult(Struct):
    """The result for one group."""

    group_id: str = string()
    error_code: int = int16()


@response(ApiKey.DELETE_GROUPS, versions=(0, 2), flexible=2)
class DeleteGroupsResponse(Message):
    """The results."""

    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array(DeletableGroupResult)


@struct
class OffsetDeleteRequestPartition(Struct):
    """A partition whose committed offset is to be deleted."""

    partition_index: int = int32()


@struct
class OffsetDeleteRequestTopic(Struct):
    """The partitions of one topic."""

    name: str = string()
    partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition)


@request(ApiKey.OFFSET_DELETE, versions=(0, 0), flexible=LATEST)
class OffsetDeleteRequest(Message):
    """Deletes committed offsets of a group that does not subscribe to their topics."""

    group_id: str = string()
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return OffsetDeleteResponse(error_code=error)


@struct
class OffsetDeleteResponsePartition(Struct):
    """The result for one partition."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class OffsetDeleteResponseTopic(Struct):
    """The results for one topic."""

    name: str = string()
    partitions: list[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition)


@response(ApiKey.OFFSET_DELETE, versions=(0, 0), flexible=LATEST)
class OffsetDeleteResponse(Message):
    """The results; ``error_code`` is that of the whole group."""

    error_code: int = int16()
    throttle_time_ms: int = int32()
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic)
