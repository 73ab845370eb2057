"""DescribeLogDirs: which replicas lie in which log directory, and which directories have failed (KIP-113)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from harness.broker.log_directory import LogDirectory
from harness.model import TopicPartition
from harness.replication.messages import ErrorCode
from harness.wire.messages import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from harness.broker.broker import Broker
    from harness.broker.partition import Partition
    from harness.broker.session import Request

Meant = Callable[[TopicPartition], bool]


def describe_log_dirs(broker: Broker, request: Request) -> None:
    """Serve DescribeLogDirs. Nobody moves replicas between directories here, so none is a future one."""
    body = cast("DescribeLogDirsRequest", request.body)
    asked = {TopicPartition(topic.topic, number) for topic in body.topics or () for number in topic.partitions}
    meant: Meant = (lambda _: True) if body.topics is None else asked.__contains__
    results = [_describe(broker, directory, meant) for directory in broker.directories]
    request.answer(DescribeLogDirsResponse(results=results))


def _describe(broker: Broker, directory: LogDirectory, meant: Meant) -> DescribeLogDirsResult:
    path = broker.directories.path(directory)
    if not directory.online:
        return DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, path)
    topics: dict[str, list[DescribeLogDirsPartition]] = defaultdict(list)
    for name in sorted(filter(meant, broker.partitions)):
        if broker.partitions[name].directory is directory:
            topics[name.topic].append(_replica(broker.partitions[name]))
    return DescribeLogDirsResult(ErrorCode.NONE, path, [DescribeLogDirsTopic(*topic) for topic in topics.items()])


def _replica(partition: Partition) -> DescribeLogDirsPartition:
    replica = partition.replica
    lag = max(replica.high_watermark - replica.log_end_offset, 0)
    return DescribeLogDirsPartition(partition.name.partition, partition.log.size, lag)
