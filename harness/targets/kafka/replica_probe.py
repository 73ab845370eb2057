"""Observes the state of a real broker's replicas, leaders and followers alike, by ListOffsets and Fetch.

Every replica answers a *debugging consumer* (replica id -2). ListOffsets returns its log end offset. Fetch from that
offset, which returns no records, has its high watermark and log start offset. From 2.4 on the probe sends the leader
epoch, and the broker refuses another one (KIP-320); a follower refuses an ordinary consumer. So epoch, role, high
watermark and log start of a :class:`ReplicaObservation` held together at one instant. The log end is from a moment
before in the same epoch, in which the log only grows: it is exact or too small. A replica without an epoch refuses no
epoch, so the probe asks it once more.

Before 2.4 the broker's own log has its role and epoch (:mod:`harness.targets.kafka.logged_roles`); an observation
counts when they were the same before and after.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from harness.clients.conversation import Conversation
from harness.model import NodeId, Offset, TopicPartition
from harness.targets.addresses import Address
from harness.targets.kafka.logged_roles import LoggedRoles
from harness.wire.frames import ApiKey
from harness.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from harness.wire.messages.offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

_CONSUMER, _DEBUGGING_CONSUMER = -1, -2
_LIST_OFFSETS, _FETCH = 7, 12
"""The newest request versions that are used; Fetch names topics up to 12."""

_FETCH_WITH_LOG_START, _FETCH_WITH_EPOCH, _FETCH_FROM_FOLLOWERS = 5, 9, 11
_NONE, _NOT_LEADER = 0, 6
_NO_EPOCH = -1
_FEW_BYTES = 1

Part = TypeVar("Part")
Fetched = tuple[TopicPartition, Offset, PartitionData]
"""A replica, its earlier log end offset, and its answer."""


class ReplicaObservation(NamedTuple):
    """One observation of one replica.

    Attributes:
        role: leader or follower.
        time_ns: when the request was sent, which is no later than the state in the answer.
    """

    role: str
    leader_epoch: int
    high_watermark: Offset
    log_end_offset: Offset
    log_start_offset: Offset
    time_ns: int


class ReplicaProbe:
    """Observes the replicas of one broker.

    Args:
        node: the broker.
        address: where it listens for the harness.
        timeout_s: how long each answer may take.
        logged_roles: from its own log, for a release before 2.4; None where the broker returns its epochs.
    """

    def __init__(self, node: NodeId, address: Address, timeout_s: float, logged_roles: LoggedRoles | None) -> None:
        self._conversation = Conversation(node, address, timeout_s)
        self._logged_roles = logged_roles
        self._roles: dict[tuple[TopicPartition, int], str] = {}

    def look(self, names: Iterable[TopicPartition]) -> Mapping[TopicPartition, ReplicaObservation]:
        """Those of the replicas that the broker holds and that could be observed completely.

        Raises:
            NoAnswer: it does not answer.
        """
        return self._fenced(names) if self._logged_roles is None else self._by_logged_roles(names, self._logged_roles)

    def close(self) -> None:
        """Close the connection and forget the roles, which do not hold for the broker's next incarnation."""
        self._conversation.close()
        self._roles.clear()

    # ------------------------------------------------------------------------------------------------ from 2.4 on

    def _fenced(self, names: Iterable[TopicPartition]) -> Mapping[TopicPartition, ReplicaObservation]:
        ends = self._ends(names)
        epochs = {name: end.leader_epoch for name, end in ends.items()}
        roles = self._roles_in(epochs)
        asked_ns = time.monotonic_ns()
        fetched = list(self._fetch(ends, epochs))
        moved_on = self._in_an_epoch(name for name, epoch in epochs.items() if epoch == _NO_EPOCH)
        return {
            name: ReplicaObservation(
                roles[name], epochs[name], seen.high_watermark, end, seen.log_start_offset, asked_ns
            )
            for name, end, seen in fetched
            if name in roles and name not in moved_on
        }

    def _in_an_epoch(self, names: Iterable[TopicPartition]) -> Iterable[TopicPartition]:
        unfenced = list(names)
        ends = self._ends(unfenced) if unfenced else {}
        return {name for name in unfenced if name not in ends or ends[name].leader_epoch != _NO_EPOCH}

    def _roles_in(self, epochs: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, str]:
        """The roles in these epochs; a replica keeps its role throughout an epoch."""
        new = {name: epoch for name, epoch in epochs.items() if (name, epoch) not in self._roles}
        if new:
            for name, seen in self._offsets(new, _CONSUMER, EARLIEST_TIMESTAMP, new).items():
                if seen.error_code in (_NONE, _NOT_LEADER):
                    self._roles[name, new[name]] = "leader" if seen.error_code == _NONE else "follower"
        return {name: self._roles[name, epoch] for name, epoch in epochs.items() if (name, epoch) in self._roles}

    # ------------------------------------------------------------------------------------------------ before 2.4

    def _by_logged_roles(
        self, names: Iterable[TopicPartition], logged_roles: LoggedRoles
    ) -> Mapping[TopicPartition, ReplicaObservation]:
        before = logged_roles.read_on()
        ends = self._ends(name for name in names if name in before)
        asked_ns = time.monotonic_ns()
        fetched = list(self._fetch(ends, {}))
        starts = self._log_starts(fetched)
        after = logged_roles.read_on()
        return {
            name: ReplicaObservation(*before[name], seen.high_watermark, end, starts[name], asked_ns)
            for name, end, seen in fetched
            if name in starts and before[name] == after.get(name)
        }

    def _log_starts(self, fetched: Iterable[Fetched]) -> Mapping[TopicPartition, Offset]:
        if self._conversation.version(ApiKey.FETCH, _FETCH) >= _FETCH_WITH_LOG_START:
            return {name: seen.log_start_offset for name, _, seen in fetched}
        starts = self._offsets([name for name, _, _ in fetched], _DEBUGGING_CONSUMER, EARLIEST_TIMESTAMP, {})
        return {name: start.offset for name, start in starts.items() if start.error_code == _NONE}

    # ------------------------------------------------------------------------------------------------ questions

    def _ends(self, names: Iterable[TopicPartition]) -> Mapping[TopicPartition, ListOffsetsPartitionResponse]:
        """The log end offsets of those replicas that the broker holds."""
        ends = self._offsets(names, _DEBUGGING_CONSUMER, LATEST_TIMESTAMP, {})
        return {name: end for name, end in ends.items() if end.error_code == _NONE}

    def _offsets(
        self, names: Iterable[TopicPartition], replica: int, timestamp: int, epochs: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, ListOffsetsPartitionResponse]:
        topics = _by_topic(names, lambda name: ListOffsetsPartition(name.partition, epochs.get(name, -1), timestamp))
        request = ListOffsetsRequest(
            replica_id=replica, topics=[ListOffsetsTopic(topic, partitions) for topic, partitions in topics.items()]
        )
        answer = self._conversation.ask(request, ListOffsetsResponse, _LIST_OFFSETS)
        return {
            TopicPartition(topic.name, one.partition_index): one for topic in answer.topics for one in topic.partitions
        }

    def _fetch(
        self, ends: Mapping[TopicPartition, ListOffsetsPartitionResponse], epochs: Mapping[TopicPartition, int]
    ) -> Iterator[Fetched]:
        """Fetch from the log end offsets, which returns no records."""
        topics = _by_topic(
            ends,
            lambda name: FetchPartition(
                name.partition, epochs.get(name, -1), ends[name].offset, partition_max_bytes=_FEW_BYTES
            ),
        )
        if not topics:
            return
        # From 2.4 on followers serve ordinary consumers (KIP-392), and debugging ones no more.
        serves = self._conversation.version(ApiKey.FETCH, _FETCH) >= _FETCH_FROM_FOLLOWERS
        request = FetchRequest(
            replica_id=_CONSUMER if serves else _DEBUGGING_CONSUMER,
            max_bytes=_FEW_BYTES,
            topics=[FetchTopic(topic, partitions=partitions) for topic, partitions in topics.items()],
        )
        for topic in self._conversation.ask(request, FetchResponse, _FETCH).responses:
            for seen in topic.partitions:
                name = TopicPartition(topic.topic, seen.partition_index)
                if seen.error_code == _NONE:
                    yield name, ends[name].offset, seen


def _by_topic(names: Iterable[TopicPartition], part: Callable[[TopicPartition], Part]) -> dict[str, list[Part]]:
    topics: dict[str, list[Part]] = {}
    for name in names:
        topics.setdefault(name.topic, []).append(part(name))
    return topics
