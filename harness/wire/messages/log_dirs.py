"""The log directories of a broker's replicas: DescribeLogDirs, AlterReplicaLogDirs (KIP-113, the ``*.json``).

Version 0, which is like 1, is for real brokers of 1.0 and 1.1, which know no later one.
"""

from __future__ import annotations

from harness.wire.declaration import (
    Message,
    Struct,
    array,
    boolean,
    int16,
    int32,
    int32s,
    int64,
    nullable_array,
    request,
    response,
    string,
    struct,
)
from harness.wire.keys import ApiKey


@struct
class DescribableLogDirTopic(Struct):
    """The partitions of one topic."""

    topic: str = string()
    partitions: list[int] = int32s()


@request(ApiKey.DESCRIBE_LOG_DIRS, versions=(0, 4), flexible=2)
class DescribeLogDirsRequest(Message):
    """Asks for the log directories of replicas; ``topics`` None: of all."""

    topics: list[DescribableLogDirTopic] | None = nullable_array(DescribableLogDirTopic)

    def error_response(self, error: int) -> Message:
        """See :meth:`Message.error_response`. As in Kafka, before version 3 it has no log directories."""
        return DescribeLogDirsResponse(error_code=error)


@struct
class DescribeLogDirsPartition(Struct):
    """One replica; ``offset_lag`` is how far its end is behind its high watermark."""

    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64()
    is_future_key: bool = boolean()


@struct
class DescribeLogDirsTopic(Struct):
    """The replicas of one topic."""

    name: str = string()
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


@struct
class DescribeLogDirsResult(Struct):
    """One log directory; the sizes of its volume are -1 where they are not known."""

    error_code: int = int16()
    log_dir: str = string()
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = int64(since=4, default=-1)
    usable_bytes: int = int64(since=4, default=-1)


@response(ApiKey.DESCRIBE_LOG_DIRS, versions=(0, 4), flexible=2)
class DescribeLogDirsResponse(Message):
    """Every log directory of the broker."""

    throttle_time_ms: int = int32()
    error_code: int = int16(since=3)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)


@struct
class AlterReplicaLogDirTopic(Struct):
    """Some replicas of one topic."""

    name: str = string()
    partitions: list[int] = int32s()


@struct
class AlterReplicaLogDir(Struct):
    """The replicas to move to one log directory, which is named by its path."""

    path: str = string()
    topics: list[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic)


@request(ApiKey.ALTER_REPLICA_LOG_DIRS, versions=(0, 2), flexible=2)
class AlterReplicaLogDirsRequest(Message):
    """Moves replicas to log directories; the broker creates later ones there, too."""

    dirs: list[AlterReplicaLogDir] = array(AlterReplicaLogDir)


@struct
class AlterReplicaLogDirPartitionResult(Struct):
    """The result for one replica; an error if there is none yet, although the broker remembers the directory."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class AlterReplicaLogDirTopicResult(Struct):
    """The results for one topic."""

    topic_name: str = string()
    partitions: list[AlterReplicaLogDirPartitionResult] = array(AlterReplicaLogDirPartitionResult)


@response(ApiKey.ALTER_REPLICA_LOG_DIRS, versions=(0, 2), flexible=2)
class AlterReplicaLogDirsResponse(Message):
    """The results for all topics."""

    throttle_time_ms: int = int32()
    results: list[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult)
