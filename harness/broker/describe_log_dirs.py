"""DescribeLogDirs: which replicas lie in which log directory, and which directories have failed (KIP-113)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import cast

from harness.broker.log_directories import LogDirectories
from harness.broker.log_directory import LogDirectory
from harness.broker.partition import Partition
from harness.broker.replicas import Replicas
from harness.broker.session import Request
from harness.error_codes import ErrorCode
from harness.model import TopicPartition
from harness.wire.messages.log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

Meant = Callable[[TopicPartition], bool]


def describe_log_dirs(directories: LogDirectories, replicas: Replicas, request: Request) -> None:
    """Serve DescribeLogDirs. Replicas do not move between directories here, so none is a future one."""
    body = cast("DescribeLogDirsRequest", request.body)
    asked = {TopicPartition(topic.topic, number) for topic in body.topics or () for number in topic.partitions}
    meant: Meant = (lambda _: True) if body.topics is None else asked.__contains__
    results = [
        _describe(directory, directories.path(directory), replicas.within(directory), meant)
        for directory in directories
    ]
    request.answer(DescribeLogDirsResponse(results=results))


def _describe(directory: LogDirectory, path: str, hosted: list[Partition], meant: Meant) -> DescribeLogDirsResult:
    if not directory.online:
        return DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, path)
    topics: dict[str, list[DescribeLogDirsPartition]] = defaultdict(list)
    for partition in sorted(hosted, key=lambda one: one.name):
        if meant(partition.name):
            topics[partition.name.topic].append(_replica(partition))
    return DescribeLogDirsResult(ErrorCode.NONE, path, [DescribeLogDirsTopic(*topic) for topic in topics.items()])


def _replica(partition: Partition) -> DescribeLogDirsPartition:
    replica = partition.replica
    lag = max(replica.high_watermark - replica.log_end_offset, 0)
    return DescribeLogDirsPartition(partition.name.partition, partition.log.size, lag)
