"""CreateTopics, DeleteTopics and CreatePartitions (the ``*.json`` of those names)."""

from __future__ import annotations

from harness.wire.declaration import (
    NO_UUID,
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
    request,
    response,
    sentence,
    string,
    strings,
    struct,
    uuid,
)
from harness.wire.keys import ApiKey


@struct
class CreatableReplicaAssignment(Struct):
    """The replicas of one partition; the first is the preferred leader."""

    partition_index: int = int32()
    broker_ids: list[int] = int32s()


@struct
class CreatableTopicConfig(Struct):
    """A configuration to set; value None is the default."""

    name: str = string()
    value: str | None = nullable_string()


@struct
class CreatableTopic(Struct):
    """A topic to create. Counts are -1 for the default (v4+) or when ``assignments`` are given."""

    name: str = string()
    num_partitions: int = int32()
    replication_factor: int = int16()
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)


@request(ApiKey.CREATE_TOPICS, versions=(1, 7), flexible=5)
class CreateTopicsRequest(Message):
    """Creates topics; with ``validate_only`` it only checks the request."""

    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean()

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return CreateTopicsResponse(topics=[CreatableTopicResult(topic.name, NO_UUID, error) for topic in self.topics])


@struct
class CreatableTopicConfigs(Struct):
    """A configuration of the new topic."""

    name: str = string(since=5)
    value: str | None = nullable_string(since=5)
    read_only: bool = boolean(since=5)
    config_source: int = int8(since=5, default=-1)
    is_sensitive: bool = boolean(since=5)


@struct
class CreatableTopicResult(Struct):
    """The result for one topic."""

    name: str = string()
    topic_id: bytes = uuid(since=7)
    error_code: int = int16()
    error_message: str | None = sentence()
    topic_config_error_code: int = int16(since=5, tag=0)
    num_partitions: int = int32(since=5, default=-1)
    replication_factor: int = int16(since=5, default=-1)
    configs: list[CreatableTopicConfigs] | None = nullable_array(CreatableTopicConfigs, since=5)


@response(ApiKey.CREATE_TOPICS, versions=(1, 7), flexible=5)
class CreateTopicsResponse(Message):
    """The results for the topics."""

    throttle_time_ms: int = int32(since=2)
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)


@struct
class DeleteTopicState(Struct):
    """A topic to delete: its name, or (name None) its id."""

    name: str | None = nullable_string(since=6)
    topic_id: bytes = uuid(since=6)


@request(ApiKey.DELETE_TOPICS, versions=(1, 6), flexible=4)
class DeleteTopicsRequest(Message):
    """Deletes topics; from v6 on by name or id (KIP-516)."""

    topics: list[DeleteTopicState] = array(DeleteTopicState, since=6)
    topic_names: list[str] = strings(until=5)
    timeout_ms: int = int32()

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        named = [DeletableTopicResult(name, NO_UUID, error) for name in self.topic_names]
        asked = [DeletableTopicResult(topic.name, topic.topic_id, error) for topic in self.topics]
        return DeleteTopicsResponse(responses=named + asked)


@struct
class DeletableTopicResult(Struct):
    """The result for one topic."""

    name: str | None = nullable_string(nullable=6, default="")
    topic_id: bytes = uuid(since=6)
    error_code: int = int16()
    error_message: str | None = sentence(since=5)


@response(ApiKey.DELETE_TOPICS, versions=(1, 6), flexible=4)
class DeleteTopicsResponse(Message):
    """The results for the topics."""

    throttle_time_ms: int = int32()
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)


@struct
class CreatePartitionsAssignment(Struct):
    """The replicas of one new partition; the first is the preferred leader."""

    broker_ids: list[int] = int32s()


@struct
class CreatePartitionsTopic(Struct):
    """A topic that is to have ``count`` partitions in all; ``assignments`` are those of the new ones."""

    name: str = string()
    count: int = int32()
    assignments: list[CreatePartitionsAssignment] | None = nullable_array(CreatePartitionsAssignment)


@request(ApiKey.CREATE_PARTITIONS, versions=(0, 3), flexible=2)
class CreatePartitionsRequest(Message):
    """Adds partitions to topics (KIP-195); with ``validate_only`` it only checks the request."""

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return CreatePartitionsResponse(results=[CreatePartitionsTopicResult(one.name, error) for one in self.topics])


@struct
class CreatePartitionsTopicResult(Struct):
    """The result for one topic."""

    name: str = string()
    error_code: int = int16()
    error_message: str | None = sentence()


@response(ApiKey.CREATE_PARTITIONS, versions=(0, 3), flexible=2)
class CreatePartitionsResponse(Message):
    """The results for the topics."""

    throttle_time_ms: int = int32()
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)
