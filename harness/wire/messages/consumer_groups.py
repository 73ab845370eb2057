"""Consumer groups of the protocol of KIP-848: ConsumerGroupHeartbeat, and what operators ask about such a group."""

from __future__ import annotations

from harness.wire.declaration import (
    Message,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    int32s,
    nullable_array,
    nullable_string,
    nullable_strings,
    nullable_struct,
    part,
    request,
    response,
    sentence,
    string,
    strings,
    struct,
    uuid,
)
from harness.wire.keys import ApiKey

_NO_OPERATIONS = -(2**31)


@struct
class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: bytes = uuid()
    partitions: list[int] = int32s()


@request(ApiKey.CONSUMER_GROUP_HEARTBEAT, versions=(0, 1), flexible=0)
class ConsumerGroupHeartbeatRequest(Message):
    """Joins a group (``member_epoch`` 0), stays in it, or leaves it (-1; -2: a static member that will come back).

    What has not changed since the last heartbeat may be null, or -1. ``topic_partitions`` are those that the member
    owns. Times in milliseconds.
    """

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = nullable_string()
    rack_id: str | None = nullable_string()
    rebalance_timeout_ms: int = int32(default=-1)
    subscribed_topic_names: list[str] | None = nullable_strings()
    subscribed_topic_regex: str | None = nullable_string(since=1)
    server_assignor: str | None = nullable_string()
    topic_partitions: list[TopicPartitions] | None = nullable_array(TopicPartitions)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return ConsumerGroupHeartbeatResponse(error_code=error)


@struct
class HeartbeatAssignment(Struct):
    """The partitions that a member may use from now on."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


@response(ApiKey.CONSUMER_GROUP_HEARTBEAT, versions=(0, 1), flexible=0)
class ConsumerGroupHeartbeatResponse(Message):
    """The epoch that the member is in; ``assignment`` None: as in the last answer."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = sentence()
    member_id: str | None = nullable_string()
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: HeartbeatAssignment | None = nullable_struct(HeartbeatAssignment)


@request(ApiKey.CONSUMER_GROUP_DESCRIBE, versions=(0, 1), flexible=0)
class ConsumerGroupDescribeRequest(Message):
    """Asks for the states of groups and for their members."""

    group_ids: list[str] = strings()
    include_authorized_operations: bool = boolean()

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        groups = [DescribedConsumerGroup(error, group_id=group) for group in self.group_ids]
        return ConsumerGroupDescribeResponse(groups=groups)


@struct
class DescribedTopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: list[int] = int32s()


@struct
class DescribedAssignment(Struct):
    """The partitions of a member."""

    topic_partitions: list[DescribedTopicPartitions] = array(DescribedTopicPartitions)


@struct
class DescribedConsumerMember(Struct):
    """A member; ``member_type`` -1: not known, 0: it speaks the classic protocol, 1: the consumer protocol."""

    member_id: str = string()
    instance_id: str | None = nullable_string()
    rack_id: str | None = nullable_string()
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = strings()
    subscribed_topic_regex: str | None = nullable_string()
    assignment: DescribedAssignment = part(DescribedAssignment)
    target_assignment: DescribedAssignment = part(DescribedAssignment)
    member_type: int = int8(since=1, default=-1)


@struct
class DescribedConsumerGroup(Struct):
    """One group."""

    error_code: int = int16()
    error_message: str | None = sentence()
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[DescribedConsumerMember] = array(DescribedConsumerMember)
    authorized_operations: int = int32(default=_NO_OPERATIONS)


@response(ApiKey.CONSUMER_GROUP_DESCRIBE, versions=(0, 1), flexible=0)
class ConsumerGroupDescribeResponse(Message):
    """The groups."""

    throttle_time_ms: int = int32()
    groups: list[DescribedConsumerGroup] = array(DescribedConsumerGroup)
