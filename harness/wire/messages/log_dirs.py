"""What lies where on a broker's disks, and what is to: DescribeLogDirs, AlterReplicaLogDirs (KIP-113, the ``*.json``).

Version 0, which is like 1, is for asking real brokers of 1.0 and 1.1, which know no later one.
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
    """Where do these replicas lie; ``topics`` None: all that there are."""

    topics: list[DescribableLogDirTopic] | None = nullable_array(DescribableLogDirTopic)


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
    """Every log directory of the broker that was asked."""

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
    """The replicas that are to be in one log directory, called by its path."""

    path: str = string()
    topics: list[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic)


@request(ApiKey.ALTER_REPLICA_LOG_DIRS, versions=(0, 2), flexible=2)
class AlterReplicaLogDirsRequest(Message):
    """Move these replicas of yours; those that you do not have yet, make there."""

    dirs: list[AlterReplicaLogDir] = array(AlterReplicaLogDir)


@struct
class AlterReplicaLogDirPartitionResult(Struct):
    """What became of one replica; where there is none yet, an error that says so, and the wish is kept."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class AlterReplicaLogDirTopicResult(Struct):
    """What became of the replicas of one topic."""

    topic_name: str = string()
    partitions: list[AlterReplicaLogDirPartitionResult] = array(AlterReplicaLogDirPartitionResult)


@response(ApiKey.ALTER_REPLICA_LOG_DIRS, versions=(0, 2), flexible=2)
class AlterReplicaLogDirsResponse(Message):
    """What became of each."""

    throttle_time_ms: int = int32()
    results: list[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult)
