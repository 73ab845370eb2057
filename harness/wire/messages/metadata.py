"""Metadata: brokers, topics and leaders (``MetadataRequest.json``, ``MetadataResponse.json``)."""

from __future__ import annotations

from harness.wire.declaration import (
    Message,
    Struct,
    array,
    boolean,
    int16,
    int32,
    int32s,
    nullable_array,
    nullable_string,
    request,
    response,
    string,
    struct,
    uuid,
)
from harness.wire.keys import ApiKey

NO_AUTHORIZED_OPERATIONS = -(2**31)
"""``*_authorized_operations`` if the request did not ask for them."""


@struct
class MetadataRequestTopic(Struct):
    """A topic by id (v10+) or by name; the name may be null from v10 on."""

    topic_id: bytes = uuid(since=10)
    name: str | None = nullable_string(nullable=10, default="")


@request(ApiKey.METADATA, versions=(0, 13), flexible=9)
class MetadataRequest(Message):
    """Asks for the brokers, and the leaders of topics.

    ``topics`` None: every topic; v0 has no null and uses an empty list instead.
    """

    topics: list[MetadataRequestTopic] | None = nullable_array(MetadataRequestTopic, nullable=1)
    allow_auto_topic_creation: bool = boolean(since=4, default=True)
    include_cluster_authorized_operations: bool = boolean(since=8, until=10)
    include_topic_authorized_operations: bool = boolean(since=8)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`."""
        return MetadataResponse(
            topics=[MetadataResponseTopic(error, topic.name or "", topic.topic_id) for topic in self.topics or ()],
            error_code=error,
        )


@struct
class MetadataResponseBroker(Struct):
    """A live broker and its address for clients."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = nullable_string(since=1)


@struct
class MetadataResponsePartition(Struct):
    """A partition: ``leader_id`` -1 when it has none."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(since=7, default=-1)
    replica_nodes: list[int] = int32s()
    isr_nodes: list[int] = int32s()
    offline_replicas: list[int] = int32s(since=5)


@struct
class MetadataResponseTopic(Struct):
    """A topic; the name may be null from v12 on (an unknown topic id)."""

    error_code: int = int16()
    name: str | None = nullable_string(nullable=12, default="")
    topic_id: bytes = uuid(since=10)
    is_internal: bool = boolean(since=1)
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
    topic_authorized_operations: int = int32(since=8, default=NO_AUTHORIZED_OPERATIONS)


@response(ApiKey.METADATA, versions=(0, 13), flexible=9)
class MetadataResponse(Message):
    """The cluster as this broker knows it; ``controller_id`` -1 when it knows none."""

    throttle_time_ms: int = int32(since=3)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = nullable_string(since=2)
    controller_id: int = int32(since=1, default=-1)
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32(since=8, until=10, default=NO_AUTHORIZED_OPERATIONS)
    error_code: int = int16(since=13)
