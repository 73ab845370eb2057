"""The replicas of new partitions: where they go, or why the request must be refused."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from harness.error_codes import ErrorCode
from harness.model import NodeId, TopicPartition
from harness.replication.controller_messages import PartitionsRequested, PartitionState, TopicCreationRequested
from harness.replication.topic_configs import Refusal

MAX_TOPIC_NAME = 249
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
MAX_PARTITIONS = 10_000
"""Of one topic."""

MAX_CLUSTER_PARTITIONS = 2_000
"""Of all topics. Each replica is a directory, an open file and a part of every metadata update, so their number is
limited; Kafka refuses more than 10,000 in one request (KAFKA-17870), with the same error.
"""

Assignments = tuple[tuple[NodeId, ...], ...]


def place(request: TopicCreationRequested, registered: Collection[NodeId], live: Sequence[NodeId]) -> (
    Assignments | Refusal
):  # fmt: skip
    """The replicas of each partition of the requested topic, or why it must be refused.

    Args:
        request: the request; it is not checked whether the topic exists already.
        registered: every broker that may hold a replica.
        live: those with a session, in ascending order.
    """
    if not legal_name(request.topic):
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name {request.topic[:MAX_TOPIC_NAME]!r} is illegal.")
    if request.assignments is None:
        return _spread(request.num_partitions, request.replication_factor, live)
    if request.num_partitions != -1 or request.replication_factor != -1:
        return Refusal(
            ErrorCode.INVALID_REQUEST, "With replica assignments, partitions and replication factor must be -1."
        )
    problem = _problem(request.assignments, registered, live)
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem) if problem else request.assignments


def legal_name(topic: str) -> bool:
    """Whether ``topic`` is a legal name (Kafka's ``Topic.validate``)."""
    return len(topic) <= MAX_TOPIC_NAME and topic not in (".", "..") and _LEGAL_NAME.fullmatch(topic) is not None


def extend(
    request: PartitionsRequested,
    before: Sequence[PartitionState],
    registered: Collection[NodeId],
    live: Sequence[NodeId],
) -> Assignments | Refusal:
    """The replicas of each partition that a topic gets besides those that it had ``before``, or why it gets none."""
    there, more = len(before), request.count - len(before)
    factor = len(before[0].replicas)
    if more <= 0:
        relation = "already has" if more == 0 else "currently has"
        problem = f"Topic {request.topic!r} {relation} {there} partitions; {request.count} were requested."
        return Refusal(ErrorCode.INVALID_PARTITIONS, problem)
    if request.assignments is None:
        return _spread(more, factor, live, first=there)
    problem = _problem(request.assignments, registered, live)
    if not problem and (len(request.assignments) != more or len(request.assignments[0]) != factor):
        problem = f"{len(request.assignments)} assignments: must be {more}, each of {factor} replicas."
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem) if problem else request.assignments


def _spread(
    num_partitions: int, replication_factor: int, live: Sequence[NodeId], first: int = 0
) -> Assignments | Refusal:
    """Partition ``i``'s replica ``j`` goes to live broker ``i + j``, round and round; ``first`` is the first ``i``."""
    if not 1 <= num_partitions <= MAX_PARTITIONS:
        return Refusal(
            ErrorCode.INVALID_PARTITIONS, f"{num_partitions} partitions: must be from 1 to {MAX_PARTITIONS}."
        )
    if not 1 <= replication_factor <= len(live):
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor {replication_factor}: must be from 1 to the number of live brokers, {len(live)}.",
        )
    return tuple(
        tuple(live[(partition + replica) % len(live)] for replica in range(replication_factor))
        for partition in range(first, first + num_partitions)
    )


def _problem(assignments: Assignments, registered: Collection[NodeId], live: Collection[NodeId]) -> str:
    if not 1 <= len(assignments) <= MAX_PARTITIONS:
        return f"{len(assignments)} partitions are assigned: must be from 1 to {MAX_PARTITIONS}."
    for partition, replicas in enumerate(assignments):
        if not replicas or len(set(replicas)) != len(replicas):
            return f"Partition {partition}: replicas {list(replicas)} must be distinct brokers, at least one."
        if len(replicas) != len(assignments[0]):
            return f"Partition {partition} has {len(replicas)} replicas, partition 0 has {len(assignments[0])}."
        if not set(replicas) <= set(registered):
            return f"Partition {partition}: replicas {list(replicas)} must be registered brokers."
        if not set(replicas) & set(live):
            return f"Partition {partition}: none of the replicas {list(replicas)} is alive."
    return ""


def found(topic: str, assignments: Assignments, live: Collection[NodeId], first: int = 0) -> list[PartitionState]:
    """The first states of new partitions, from ``first`` on: the live replicas are in sync, the first of them leads."""
    states = []
    for number, replicas in enumerate(assignments, first):
        isr = tuple(node for node in replicas if node in live)
        states.append(PartitionState(TopicPartition(topic, number), isr[0], 0, 0, isr, replicas))
    return states
