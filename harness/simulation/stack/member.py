"""A consumer in a group of the classic protocol, in virtual time: it joins, heartbeats, and reads what it is given.

It acts as librdkafka does for :mod:`harness.clients.member`, with the range assignor: before it joins again it gives
up all that it has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from confluent_kafka import KafkaError

from harness.client_ports import LEFT_UNKNOWN, CommitAnswered, CommittedOffset, Isolation, Polled, Rebalanced
from harness.coordination.consumer_protocol import assigned, assignment, ranges, subscribed_topics, subscription
from harness.error_codes import ErrorCode
from harness.history.recorder import Change
from harness.membership import Membership
from harness.model import NO_GENERATION, TopicPartition
from harness.simulation.stack.client import Call, Client
from harness.simulation.stack.coordinator import BACKOFF_S, ELSEWHERE, Coordinator
from harness.simulation.stack.group_offsets import (
    OFFSET_COMMIT_VERSION,
    OFFSET_FETCH_VERSION,
    TIMED_OUT,
    GroupMetadata,
    commit_error,
    commit_request,
    committed_offsets,
    fetch_request,
)
from harness.simulation.stack.pending_commits import PendingCommits
from harness.simulation.stack.reading import Reader
from harness.simulation.stack.tasks import Task
from harness.wire.keys import ApiKey
from harness.wire.messages.consumers import OffsetCommitResponse, OffsetFetchResponse
from harness.wire.messages.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from harness.wire.messages.metadata import MetadataRequest, MetadataResponse

_METADATA_VERSION = 9
_JOIN_VERSION, _SYNC_VERSION, _HEARTBEAT_VERSION, _LEAVE_VERSION = 5, 3, 3, 3
_CONSUMER = "consumer"
_ASK_TIMEOUT_S = 1.0
_HEARTBEATS = 10
_NS_PER_S = 1_000_000_000


class Member:
    """Implements :class:`harness.client_ports.Member`.

    Args:
        new_client: opens connections of its own, under a client id.
        membership: of what, and how; its assignor is not asked, see the module.
        isolation: for the history, as for :class:`harness.simulation.stack.reading.Reader`.
        rebalanced: see :data:`harness.client_ports.Rebalanced`.
    """

    def __init__(
        self, new_client: Callable[[], Client], membership: Membership, isolation: Isolation, rebalanced: Rebalanced
    ) -> None:
        self.isolation = isolation
        self.positions: dict[TopicPartition, CommittedOffset] = {}
        self._new_client = new_client
        self._membership = membership
        self._rebalanced = rebalanced
        self._client = new_client()
        self._coordinator = Coordinator(self._client, membership.group)
        self._member_id = ""
        self._generation = NO_GENERATION
        self._has: list[TopicPartition] = []
        self._reader: Reader | None = None
        self._is_in = False
        self._rejoins = False
        self._fatal: str | None = None
        self._polled_ns = self._heard_ns = self._client.world.now_ns
        self._heartbeats: Task[None] | None = None
        self._still_until_ns = 0
        self._commits = PendingCommits(membership.commits, self.commit, lambda: self._client.world.now_ns)

    @property
    def generation(self) -> int:
        """See :class:`harness.client_ports.Member`."""
        return self._generation if self._is_in else NO_GENERATION

    @property
    def metadata(self) -> GroupMetadata:
        """See :class:`harness.client_ports.Member`."""
        ours = self._membership
        return GroupMetadata(ours.group, self._generation, self._member_id, ours.instance)

    async def poll(self, max_records: int, timeout_s: float) -> Polled:
        """See :class:`harness.client_ports.Member`."""
        self._polled_ns = self._client.world.now_ns
        if self._heartbeats is not None:
            self._heartbeats.result()  # a bug there must not look like silence
        if not self._is_in and self._has:
            await self._give_up("lost")
        self._commits.poll_begins(self.positions)
        if self._fatal is not None:
            return Polled([], self._fatal)
        if not self._is_in or self._rejoins:
            error = await self._join()
            if error is not None:
                return Polled([], error)
        if self._reader is None:
            await self._client.sleep(timeout_s)
            return Polled([], None)
        polled = await self._reader.poll(max_records, timeout_s)
        for record in polled.records:
            self.positions[TopicPartition(record.topic, record.partition)] = CommittedOffset.after(record)
        return polled

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> str | None:
        """See :class:`harness.client_ports.Member`."""
        group, instance = self._membership.group, self._membership.instance
        body = commit_request(group, offsets, (self._generation, self._member_id, instance))
        answer = cast(
            "OffsetCommitResponse | None",
            await self._coordinator.ask(ApiKey.OFFSET_COMMIT, OFFSET_COMMIT_VERSION, body),
        )
        if answer is None:
            return TIMED_OUT
        code = commit_error(answer)
        if body.generation_id_or_member_epoch == self._generation:
            self._heed(code)
        return KafkaError(code).name() if code else None

    def commit_async(self, offsets: Mapping[TopicPartition, CommittedOffset], answered: CommitAnswered) -> None:
        """See :class:`harness.client_ports.Member`."""
        self._commits.begin(offsets, answered)

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: float
    ) -> Mapping[TopicPartition, CommittedOffset] | str:
        """See :class:`harness.client_ports.Member`."""
        body = fetch_request(self._membership.group, partitions)
        version = self._client.version(ApiKey.OFFSET_FETCH, OFFSET_FETCH_VERSION)
        answer = await self._coordinator.ask(ApiKey.OFFSET_FETCH, version, body, timeout_s)
        found = committed_offsets(cast("OffsetFetchResponse | None", answer))
        if isinstance(found, str):
            self._coordinator.forget()
        return found

    def stand_still(self, seconds: float) -> None:
        """See :class:`harness.client_ports.Member`."""
        self._still_until_ns = self._client.world.now_ns + round(seconds * _NS_PER_S)

    async def close(self) -> None:
        """See :class:`harness.client_ports.Member`."""
        await self._give_up("revoked" if self._is_in else "lost")
        if self._is_in and self._membership.instance is None:
            await self._leave()
        self._is_in = False
        self._client.close()

    # ------------------------------------------------------------------------------------ the group

    async def _join(self) -> str | None:
        """Join, or join again; returns the error that ends the poll. It is called again until the member is in."""
        topics = await self._subscribed()
        if topics is None:
            return None
        await self._give_up("revoked")
        self._is_in, self._rejoins = False, False
        ours = self._membership
        body = JoinGroupRequest(
            ours.group,
            round(ours.session_timeout_s * 1000),
            round(ours.poll_timeout_s * 1000),
            self._member_id,
            ours.instance,
            _CONSUMER,
            [JoinGroupRequestProtocol(ours.assignor, subscription(topics))],
        )
        patience_s = ours.poll_timeout_s + _ASK_TIMEOUT_S
        joined = cast(
            "JoinGroupResponse | None", await self._coordinator.ask(ApiKey.JOIN_GROUP, _JOIN_VERSION, body, patience_s)
        )
        if joined is None or joined.error_code:
            return await self._not_joined(joined)
        self._member_id, self._generation = joined.member_id, joined.generation_id
        shares = self._shares(joined) if joined.leader == joined.member_id else {}
        given = [SyncGroupRequestAssignment(member, assignment(share)) for member, share in shares.items()]
        body_of_sync = SyncGroupRequest(ours.group, self._generation, self._member_id, ours.instance, assignments=given)
        answer = await self._coordinator.ask(ApiKey.SYNC_GROUP, _SYNC_VERSION, body_of_sync, patience_s)
        synced = cast("SyncGroupResponse | None", answer)
        if synced is None or synced.error_code:
            return await self._not_joined(synced)
        return await self._begin(assigned(synced.assignment))

    async def _subscribed(self) -> list[str] | None:
        """The topics that it reads, resolved as its client resolves a pattern; None: no broker has named any yet."""
        pattern = self._membership.pattern
        if pattern is None:
            return self._membership.topics
        version = self._client.version(ApiKey.METADATA, _METADATA_VERSION)
        answer = await self._client.ask_anybody(Call(ApiKey.METADATA, version, MetadataRequest(None), _ASK_TIMEOUT_S))
        known = [topic.name or "" for topic in answer.topics] if isinstance(answer, MetadataResponse) else []
        found = sorted(name for name in known if re.search(pattern, name))
        if not found:
            await self._client.sleep(BACKOFF_S)
        return found or None

    def _shares(self, joined: JoinGroupResponse) -> dict[str, list[TopicPartition]]:
        topics = {one.member_id: subscribed_topics([one.metadata]) or set() for one in joined.members}
        return ranges(self._membership.partitions, topics)

    async def _not_joined(self, answer: JoinGroupResponse | SyncGroupResponse | None) -> str | None:
        code = ErrorCode.NONE if answer is None else answer.error_code
        if isinstance(answer, JoinGroupResponse) and code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
            return None
        self._heed(code)
        await self._client.sleep(BACKOFF_S)
        return self._fatal

    async def _begin(self, partitions: Sequence[TopicPartition]) -> str | None:
        """The member is in, and has ``partitions``."""
        self._is_in, self._has = True, list(partitions)
        self._heard_ns = self._client.world.now_ns
        if self._heartbeats is None or self._heartbeats.is_done:
            self._heartbeats = Task(self._beat())
        begins = await self._rebalanced("assigned", partitions)
        if begins is None:
            return LEFT_UNKNOWN
        if begins and not self._client.is_closed:
            offsets = {name: one.offset for name, one in begins.items()}
            epochs = {name: one.leader_epoch for name, one in begins.items()}
            self._reader = Reader(self._new_client(), offsets, epochs, self.isolation)
        return None

    async def _give_up(self, change: Change) -> None:
        """Give up what the member has, or learn that it has lost it."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if change == "revoked":
            await self._commits.before_release(self.positions)
        given_up, self._has = self._has, []
        if given_up:
            await self._rebalanced(change, given_up)
        self.positions.clear()

    async def _beat(self) -> None:
        """Send heartbeats while the member is in."""
        ours, world = self._membership, self._client.world
        while self._is_in and not self._client.is_closed:
            await self._client.sleep(ours.session_timeout_s / _HEARTBEATS)
            if world.now_ns < self._still_until_ns:
                continue
            if not self._is_in or self._client.is_closed:
                return
            if world.now_ns - self._polled_ns > ours.poll_timeout_s * _NS_PER_S:
                if ours.instance is None:
                    await self._leave()
                self._forget()
                return
            body = HeartbeatRequest(ours.group, self._generation, self._member_id, ours.instance)
            answer = await self._coordinator.ask(ApiKey.HEARTBEAT, _HEARTBEAT_VERSION, body, purpose="heartbeat")
            if answer is not None and body.generation_id == self._generation:  # else it has joined anew since
                code = cast("HeartbeatResponse", answer).error_code
                self._heard_ns = self._heard_ns if code in ELSEWHERE else world.now_ns
                self._heed(code)
            if world.now_ns - self._heard_ns > ours.session_timeout_s * _NS_PER_S:
                self._forget()

    async def _leave(self) -> None:
        body = LeaveGroupRequest(self._membership.group, members=[MemberIdentity(self._member_id)])
        await self._coordinator.ask(ApiKey.LEAVE_GROUP, _LEAVE_VERSION, body)

    def _heed(self, code: int) -> None:
        """Draw the conclusion from an error of the coordinator."""
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._rejoins = True
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self._fatal = KafkaError(code).name()
            self._forget()
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self._forget()
        elif code in ELSEWHERE:
            self._coordinator.forget()

    def _forget(self) -> None:
        """The member is not in any more, and joins as a new one."""
        self._is_in, self._member_id = False, ""
