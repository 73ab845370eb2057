"""Groups without a broker: time passes when a test says so, and records are stored when it says so."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from harness.coordination.consumer_group import ConsumerLimits
from harness.coordination.group_commits import Committer
from harness.coordination.groups import Groups
from harness.coordination.heartbeat import Heartbeat
from harness.coordination.kept_groups import GroupLimits
from harness.coordination.member import Join
from harness.coordination.offsets import CommittedOffset, OffsetRetention
from harness.coordination.ports import Caller, LogRecord, ProducerIdentity, Stored
from harness.coordination.records import decoded
from harness.model import TopicPartition
from harness.wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest, TopicPartitions
from harness.wire.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

RETENTION_MS, CHECK_MS = 600_000, 10_000
LIMITS = GroupLimits(
    100, 500, 60_000, 10, ConsumerLimits(6_000, 1_000, 10), OffsetRetention(RETENTION_MS, CHECK_MS, after_commit=False)
)
SESSION_MS, REBALANCE_MS = 6_000, 10_000
WHERE = TopicPartition("t", 0)
ID = b"t".ljust(16, b"_")
"""The id of the topic "t"."""


class Waiting:
    def __init__(self, act: Callable[[], None]) -> None:
        self.act, self.is_over = act, False

    def cancel(self) -> None:
        self.is_over = True


class Timers:
    """Time, in milliseconds, that passes when a test says so."""

    def __init__(self) -> None:
        self.now_ms = 1_000
        self._timers: list[tuple[int, int, Waiting]] = []
        self._made = 0

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Waiting:
        self._made += 1
        timer = Waiting(callback)
        heapq.heappush(self._timers, (self.now_ms + delay_ms, self._made, timer))
        return timer

    def sleep(self, ms: int = 0) -> None:
        until = self.now_ms + ms
        while self._timers and self._timers[0][0] <= until:
            at_ms, _, timer = heapq.heappop(self._timers)
            self.now_ms = max(self.now_ms, at_ms)
            if not timer.is_over:
                timer.act()
        self.now_ms = until


class CoordinatorAlone:
    """What a coordinator needs of its broker: time, and one partition; ``log`` holds what has been stored.

    ``holds_stores``: what is to be stored waits in ``storing`` for :meth:`store_next`.
    """

    def __init__(self, log: Sequence[LogRecord] = ()) -> None:
        self.time = Timers()
        self.log = list(log)
        self.storing: list[tuple[Sequence[LogRecord], Stored]] = []
        self.holds_stores = False

    # ------------------------------------------------------------------------------------ ports

    def wall_ms(self) -> int:
        return self.time.now_ms

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Waiting:
        return self.time.call_later(delay_ms, callback)

    def store(self, records: Sequence[LogRecord], stored: Stored) -> None:
        self.storing.append((records, stored))
        if not self.holds_stores:
            self.call_later(0, self.store_next)

    # ------------------------------------------------------------------------------------ the test's hand

    def store_next(self, error: int = 0) -> None:
        records, stored = self.storing.pop(0)
        if not error:
            self.log += records
        stored(error)

    def sleep(self, ms: int = 0) -> None:
        self.time.sleep(ms)


class TopicsAlone:
    """The topics that there are, by how many partitions each has."""

    def __init__(self) -> None:
        self.counts = {"t": 4}

    @property
    def version(self) -> int:
        return len(self.counts) * 1_000 + sum(self.counts.values())

    def names(self) -> list[str]:
        return sorted(self.counts)

    def topic_id(self, name: str) -> bytes | None:
        return name.encode().ljust(16, b"_") if name in self.counts else None

    def partition_count(self, name: str) -> int:
        return self.counts.get(name, 0)

    def name_of(self, topic_id: bytes) -> str | None:
        return next((name for name in self.counts if self.topic_id(name) == topic_id), None)


class GroupsAlone(CoordinatorAlone):
    """The groups of one partition, and a client that speaks to them."""

    def __init__(self, log: Sequence[LogRecord] = (), limits: GroupLimits = LIMITS, bugs: Sequence[str] = ()) -> None:
        super().__init__(log)
        self.transactional: list[ProducerIdentity] = []
        self.topics = TopicsAlone()
        self._ids = 0
        self.groups = Groups(self, limits, bugs)
        for record in log:
            said = decoded(*record)
            assert said is not None
            self.groups.replay(*said)
        self.groups.begin()

    # ------------------------------------------------------------------------------------ ports

    def new_member_id(self, prefix: str) -> str:
        self._ids += 1
        return f"{prefix}-{self._ids}"

    def store_in_transaction(self, records: Sequence[LogRecord], producer: ProducerIdentity, stored: Stored) -> None:
        self.transactional.append(producer)
        self.store(records, stored)

    # ------------------------------------------------------------------------------------ requests

    def join(self, member_id: str = "", *, version: int = 3, client: str = "c", **fields: Any) -> list[Any]:
        protocols = fields.pop("protocols", {"range": b"mine"})
        body = JoinGroupRequest(
            **{
                "group_id": "g",
                "session_timeout_ms": SESSION_MS,
                "rebalance_timeout_ms": REBALANCE_MS,
                "member_id": member_id,
                "protocol_type": "consumer",
                "protocols": [JoinGroupRequestProtocol(*one) for one in protocols.items()],
                **fields,
            }
        )
        answers: list[Any] = []
        self.groups.join(Join(body, version, Caller(client, "10.0.0.1"), answers.append))
        return answers

    def sync(self, member_id: str, generation: int, **assignments: bytes) -> list[Any]:
        given = [SyncGroupRequestAssignment(name.replace("_", "-"), one) for name, one in assignments.items()]
        answers: list[Any] = []
        self.groups.sync(SyncGroupRequest("g", generation, member_id, assignments=given), answers.append)
        return answers

    def heartbeat(self, member_id: str, generation: int, instance: str | None = None) -> int:
        answers: list[Any] = []
        self.groups.heartbeat(HeartbeatRequest("g", generation, member_id, instance), answers.append)
        return int(answers[0].error_code)

    def leave(self, member_id: str, instance: str | None = None) -> int:
        answers: list[Any] = []
        self.groups.leave(LeaveGroupRequest("g", members=[MemberIdentity(member_id, instance)]), 5, answers.append)
        return int(answers[0].members[0].error_code)

    def member_heartbeat(
        self, member_id: str, epoch: int, owned: Iterable[int] | None = (), version: int = 1, **fields: Any
    ) -> list[Any]:
        """Send a heartbeat of the consumer protocol; ``owned``: the partitions of "t", None: it does not say."""
        said = {"group_id": "g", **fields}
        if epoch == 0:
            said = {"rebalance_timeout_ms": REBALANCE_MS, "subscribed_topic_names": ["t"], **said}
        shares = None if owned is None else [TopicPartitions(ID, sorted(owned))] if owned else []
        request = ConsumerGroupHeartbeatRequest(
            member_id=member_id, member_epoch=epoch, topic_partitions=shares, **said
        )
        answers: list[Any] = []
        asked = Heartbeat(request, version, member_id or "made", Caller("c", "10.0.0.1"), answers.append)
        self.groups.member_heartbeat(asked)
        return answers

    def commit(
        self, offset: int, member_id: str = "", generation: int = -1, group: str = "g", *, keep_ms: int = -1
    ) -> list[int]:
        errors: list[int] = []
        expires_ms = self.wall_ms() + keep_ms if keep_ms >= 0 else -1
        kept = {WHERE: CommittedOffset(offset, 3, "mine", self.wall_ms(), expires_ms)}
        self.groups.commits.commit(group, Committer(member_id, None, generation), kept, errors.append)
        return errors

    def committed(self, group: str = "g") -> int:
        return self.groups.commits.committed(group, [WHERE])[WHERE].offset

    @property
    def state(self) -> str:
        return self.groups.describe("g", 0).group_state

    def stable(self, *clients: str) -> list[str]:
        """A stable group of these clients; returns their member ids, the leader's first."""
        waiting = [self.join(client=client) for client in clients]
        self.sleep(1_000)
        joined = [answers[0] for answers in waiting]
        given = {one.member_id.replace("-", "_"): one.member_id.encode() for one in joined}
        synced = [
            self.sync(one.member_id, one.generation_id, **(given if one.member_id == one.leader else {}))
            for one in joined
        ]
        self.sleep()
        assert [answers[0].assignment.decode() for answers in synced] == [one.member_id for one in joined]
        return [one.member_id for one in joined]
