"""A consumer in a group of the consumer protocol (KIP-848), in virtual time: its coordinator assigns its partitions.

It acts as librdkafka does for :mod:`harness.clients.member`: heartbeats go on by themselves, and what they say about
partitions is done within a poll, first what is to be given up, then what is new; the next heartbeat says that it is
done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import cast

from confluent_kafka import KafkaError

from harness.client_ports import BEGINNING, LEFT_UNKNOWN, CommitAnswered, CommittedOffset, Isolation, Polled, Rebalanced
from harness.coordination.consumer_member import JOINING, LEAVING, LEAVING_FOR_A_WHILE
from harness.error_codes import ErrorCode
from harness.history.recorder import Change
from harness.membership import Membership
from harness.model import NO_EPOCH, NO_GENERATION, Offset, TopicPartition
from harness.simulation.stack.client import Call, Client
from harness.simulation.stack.coordinator import BACKOFF_S, ELSEWHERE, Coordinator
from harness.simulation.stack.group_offsets import (
    TIMED_OUT,
    GroupMetadata,
    commit_error,
    commit_request,
    found_offsets,
    of_member,
)
from harness.simulation.stack.pending_commits import PendingCommits
from harness.simulation.stack.reading import Reader
from harness.simulation.stack.tasks import Promise, Task
from harness.wire.keys import ApiKey
from harness.wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from harness.wire.messages.consumers import OffsetCommitResponse, OffsetFetchResponse
from harness.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

_HEARTBEAT_VERSION, _OFFSET_VERSION, _METADATA_VERSION = 1, 9, 12
_ASK_TIMEOUT_S = 1.0
_FATAL = (
    ErrorCode.UNRELEASED_INSTANCE_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.INVALID_REQUEST,
)
_OUT = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)
_NS_PER_S = 1_000_000_000


class AssignedMember:
    """Implements :class:`harness.client_ports.Member`.

    Args:
        new_client: opens connections of its own, under a client id.
        membership: of what, and how.
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
        self._topics: dict[bytes, str] = {}
        self._epoch = JOINING
        self._has: set[TopicPartition] = set()
        self._told: set[TopicPartition] = set()
        self._target: set[TopicPartition] = set()
        self._says_all = False
        self._is_lost = False
        self._fatal: str | None = None
        self._reader: Reader | None = None
        self._polled_ns = self._client.world.now_ns
        self._still_until_ns = 0
        self._interval_s = BACKOFF_S
        self._heartbeats: Task[None] | None = None
        self._pause: Promise[None] = Promise()
        self._news: Promise[None] = Promise()
        self._commits = PendingCommits(membership.commits, self.commit, lambda: self._client.world.now_ns)

    @property
    def generation(self) -> int:
        """See :class:`harness.client_ports.Member`."""
        return self._epoch if self._epoch > JOINING and not self._is_lost else NO_GENERATION

    @property
    def metadata(self) -> GroupMetadata:
        """See :class:`harness.client_ports.Member`."""
        ours = self._membership
        return GroupMetadata(ours.group, self._epoch, self._client.client_id, ours.instance)

    async def poll(self, max_records: int, timeout_s: float) -> Polled:
        """See :class:`harness.client_ports.Member`."""
        self._polled_ns = self._client.world.now_ns
        if self._heartbeats is not None:
            self._heartbeats.result()  # a bug there must not look like silence
        if self._is_lost:
            await self._lose()
        self._commits.poll_begins(self.positions)
        if self._fatal is not None:
            return Polled([], self._fatal)
        if self._heartbeats is None or self._heartbeats.is_done:
            self._heartbeats = Task(self._beat())
        error = await self._reconcile()
        if error is not None:
            return Polled([], error)
        if self._reader is None:
            await self._news_within(timeout_s)
            return Polled([], await self._reconcile())
        polled = await self._reader.poll(max_records, timeout_s)
        for record in polled.records:
            self.positions[TopicPartition(record.topic, record.partition)] = CommittedOffset.after(record)
        return polled

    async def _news_within(self, timeout_s: float) -> None:
        """Wait until there is something to give up or to begin, but no longer than ``timeout_s``."""
        self._news = Promise()
        timer = self._client.network.call_later(timeout_s, lambda: self._news.keep(None))
        await self._news
        timer.cancel()

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> str | None:
        """See :class:`harness.client_ports.Member`."""
        ours, epoch = self._membership, self._epoch
        body = commit_request(ours.group, offsets, (epoch, self._client.client_id, ours.instance))
        answer = await self._coordinator.ask(ApiKey.OFFSET_COMMIT, _OFFSET_VERSION, body)
        if answer is None:
            return TIMED_OUT
        code = commit_error(cast("OffsetCommitResponse", answer))
        self._heed(code, epoch)
        return KafkaError(code).name() if code else None

    def commit_async(self, offsets: Mapping[TopicPartition, CommittedOffset], answered: CommitAnswered) -> None:
        """See :class:`harness.client_ports.Member`."""
        self._commits.begin(offsets, answered)

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: float
    ) -> Mapping[TopicPartition, CommittedOffset] | str:
        """See :class:`harness.client_ports.Member`."""
        epoch = self._epoch
        body = of_member(self._membership.group, partitions, self._client.client_id, epoch)
        answer = await self._coordinator.ask(ApiKey.OFFSET_FETCH, _OFFSET_VERSION, body, timeout_s)
        if answer is None:
            return TIMED_OUT
        (group,) = cast("OffsetFetchResponse", answer).groups
        self._heed(group.error_code, epoch)
        return found_offsets(group.error_code, group.topics)

    def stand_still(self, seconds: float) -> None:
        """See :class:`harness.client_ports.Member`."""
        self._still_until_ns = self._client.world.now_ns + round(seconds * _NS_PER_S)

    async def close(self) -> None:
        """See :class:`harness.client_ports.Member`."""
        is_in = self._epoch > JOINING and not self._is_lost
        await self._give_up(set(self._has), "revoked" if is_in else "lost")
        if is_in and not self._is_lost:
            await self._leave()
        self._close_reader()
        self._client.close()
        self._hurry()

    # ------------------------------------------------------------------------------------ what it has

    async def _reconcile(self) -> str | None:
        """Give up what it is to give up, and begin what is new; returns the error that ends the poll."""
        gone = self._has - self._target
        if gone:
            await self._give_up(gone, "revoked")
            self._hurry()
        new = self._target - self._has
        if not new or self._is_lost:
            return None
        self._has |= new  # it is the owner from now on, whatever it asks in the meantime
        begins = await self._rebalanced("assigned", sorted(new))
        if begins is None:
            return LEFT_UNKNOWN
        self._read({name: one for name, one in begins.items() if name in self._has})
        self._hurry()
        return None

    async def _give_up(self, gone: set[TopicPartition], change: Change) -> None:
        """Give up some of what it has, or learn that it has lost it."""
        if change == "revoked":
            await self._commits.before_release({name: one for name, one in self.positions.items() if name in gone})
        if gone:
            await self._rebalanced(change, sorted(gone))
        self._has -= gone
        for name in gone:
            self.positions.pop(name, None)
        self._read({})

    def _read(self, begins: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Read what it has, on from where it is, and what is new from where it ``begins``."""
        if not begins and (self._reader is None or self._reader.positions.keys() == self._has):
            return
        known = {} if self._reader is None else self._reader.positions
        places = {name: CommittedOffset(at) for name, at in known.items() if name in self._has} | dict(begins)
        places |= {name: one for name, one in self.positions.items() if name in places and name not in begins}
        self._close_reader()
        if places and not self._client.is_closed:
            offsets: dict[TopicPartition, Offset] = {name: one.offset for name, one in places.items()}
            epochs = {name: NO_EPOCH if one.offset == BEGINNING else one.leader_epoch for name, one in places.items()}
            self._reader = Reader(self._new_client(), offsets, epochs, self.isolation)

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    async def _lose(self) -> None:
        """It is out of the group: what it had is lost, and it joins again."""
        await self._give_up(set(self._has), "lost")
        self._epoch, self._target, self._told, self._is_lost = JOINING, set(), set(), False

    # ------------------------------------------------------------------------------------ heartbeats

    async def _beat(self) -> None:
        """Send heartbeats until it is out of the group."""
        world = self._client.world
        while not self._client.is_closed and not self._is_lost and self._fatal is None:
            if world.now_ns < self._still_until_ns:
                await self._client.sleep(BACKOFF_S)
                continue
            if world.now_ns - self._polled_ns > self._membership.poll_timeout_s * _NS_PER_S:
                await self._leave()
                self._is_lost = True
                return
            await self._heartbeat()
            self._pause = Promise()
            timer = self._client.network.call_later(self._interval_s, self._hurry)
            await self._pause
            timer.cancel()

    def _hurry(self) -> None:
        """Send the next heartbeat at once."""
        self._pause.keep(None)

    async def _heartbeat(self) -> None:
        if not await self._knows_topics():
            return
        ours, has = self._membership, set(self._has)
        is_full = self._says_all or self._epoch == JOINING
        body = ConsumerGroupHeartbeatRequest(ours.group, self._client.client_id, self._epoch, ours.instance)
        if is_full:
            body.rebalance_timeout_ms = round(ours.poll_timeout_s * 1000)
            body.subscribed_topic_names = ours.topics if ours.pattern is None else []
            body.subscribed_topic_regex = ours.pattern
            body.server_assignor = ours.remote_assignor
        if is_full or has != self._told:
            body.topic_partitions = self._named(has)
        answer = await self._coordinator.ask(
            ApiKey.CONSUMER_GROUP_HEARTBEAT, _HEARTBEAT_VERSION, body, purpose="heartbeat"
        )
        if self._client.is_closed or self._is_lost or self._client.world.now_ns < self._still_until_ns:
            self._says_all = True  # it has learned nothing
        elif answer is None:
            self._says_all, self._interval_s = True, BACKOFF_S
        else:
            self._learn(cast("ConsumerGroupHeartbeatResponse", answer), body, has)

    def _learn(
        self, answer: ConsumerGroupHeartbeatResponse, asked: ConsumerGroupHeartbeatRequest, has: set[TopicPartition]
    ) -> None:
        if answer.error_code:
            self._says_all, self._interval_s = True, BACKOFF_S
            self._heed(answer.error_code, asked.member_epoch)
            return
        self._says_all, self._interval_s = False, answer.heartbeat_interval_ms / 1000
        self._epoch = answer.member_epoch
        if asked.topic_partitions is not None:
            self._told = has
        if answer.assignment is not None:
            self._target = {
                TopicPartition(self._topics[one.topic_id], number)
                for one in answer.assignment.topic_partitions
                for number in one.partitions
            }
            self._news.keep(None)

    def _named(self, has: set[TopicPartition]) -> list[TopicPartitions]:
        numbers = {topic_id: sorted(one.partition for one in has if one.topic == name)
                   for topic_id, name in self._topics.items()}  # fmt: skip
        return [TopicPartitions(topic_id, ones) for topic_id, ones in numbers.items() if ones]

    async def _knows_topics(self) -> bool:
        """Whether it knows the ids of its topics; it asks for them first."""
        if not self._topics:
            asked = MetadataRequest([MetadataRequestTopic(name=name) for name in self._membership.topics])
            answer = await self._client.ask_anybody(Call(ApiKey.METADATA, _METADATA_VERSION, asked, _ASK_TIMEOUT_S))
            topics = answer.topics if isinstance(answer, MetadataResponse) else []
            if topics and not any(topic.error_code for topic in topics if not topic.partitions):
                self._topics = {topic.topic_id: topic.name or "" for topic in topics}
        return bool(self._topics)

    async def _leave(self) -> None:
        ours = self._membership
        epoch = LEAVING if ours.instance is None else LEAVING_FOR_A_WHILE
        body = ConsumerGroupHeartbeatRequest(ours.group, self._client.client_id, epoch, ours.instance)
        await self._coordinator.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, _HEARTBEAT_VERSION, body)

    def _heed(self, code: int, epoch: int) -> None:
        """Draw the conclusion from an error of the coordinator to a request in an epoch."""
        if code in ELSEWHERE:
            self._coordinator.forget()
            self._says_all = True
        elif epoch != self._epoch:
            return  # it has been in another one since
        elif code in _OUT:
            self._is_lost = True
        elif code == ErrorCode.STALE_MEMBER_EPOCH:
            self._hurry()
        elif code in _FATAL:
            self._fatal, self._is_lost = KafkaError(code).name(), True
