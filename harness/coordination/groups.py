"""The groups whose coordinator is the leader of one partition of ``__consumer_offsets``.

What they say is in the log of that partition: a new leader reads it, from the first record to the last, before it
serves a request (:meth:`Groups.replay`, :meth:`Groups.begin`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from harness.coordination.classic_group import MEMBER_BYTES, ClassicGroup
from harness.coordination.consumer_protocol import subscribed_topics
from harness.coordination.errors import GroupError, of_commit
from harness.coordination.member import Join
from harness.coordination.offsets import NOT_COMMITTED, Commits, CommittedOffset, GroupOffsets, stored
from harness.coordination.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    Key,
    OffsetCommitKey,
    OffsetCommitValue,
    Value,
    group_record,
)
from harness.coordination.surroundings import Answer, GroupSurroundings, ProducerIdentity
from harness.model import TopicPartition
from harness.wire.declaration import Message
from harness.wire.messages.groups import (
    DescribedGroup,
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListedGroup,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

MAX_KEPT_BYTES = 16 * 1_048_576
"""What may be kept for all groups of a partition: some 30,000 offsets."""

CONSUMER = "consumer"
"""The protocol type of groups of consumers; Kafka Connect has another one."""

_GROUP_BYTES = 1_024
_LEAVES_OTHERS_SINCE = 3
_NOT_FOUND_SINCE = 6


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """Kafka's settings ``group.*``; times in milliseconds, bounds inclusive."""

    initial_rebalance_delay_ms: int
    min_session_timeout_ms: int
    max_session_timeout_ms: int
    max_size: int


class Committer(NamedTuple):
    """Who commits offsets: generation -1 and no member id for a consumer that assigns itself its partitions."""

    member_id: str
    instance_id: str | None
    generation: int


class _Group(NamedTuple):
    members: ClassicGroup
    offsets: GroupOffsets

    @property
    def size(self) -> int:
        return self.members.size + self.offsets.size + _GROUP_BYTES

    @property
    def is_nothing(self) -> bool:
        """Whether it never had a member in a generation, nor committed, so that the log has nothing about it."""
        return not (self.offsets or self.members.generation or self.members.count)


class Groups:
    """The groups of one partition.

    Args:
        surroundings: the broker.
        limits: see :class:`GroupLimits`.
        bugs: the injected ones of :data:`harness.replication.bugs.BUGS`.
    """

    def __init__(self, surroundings: GroupSurroundings, limits: GroupLimits, bugs: Collection[str]) -> None:
        self._surroundings = surroundings
        self._limits = limits
        self._bugs = bugs
        self._groups: dict[str, _Group] = {}
        self._pending: dict[int, set[str]] = {}  # by the id of a producer, the groups for which its transaction commits
        self._at_most = 0
        self._has_freed = False
        self._read: frozenset[str] = frozenset()

    # ------------------------------------------------------------------------------------ the log

    def replay(self, key: Key, value: Value | None, producer_id: int | None = None) -> None:
        """A record is in the log, perhaps as a part of the transaction of a producer."""
        if isinstance(key, OffsetCommitKey):
            assert value is None or isinstance(value, OffsetCommitValue)
            name = TopicPartition(key.topic, key.partition)
            if value is not None:
                committed = CommittedOffset(value.offset, value.leader_epoch, value.metadata, value.commit_timestamp)
                if producer_id is None:
                    self._made(key.group).offsets.keep(name, committed)
                else:
                    self._pend(key.group, producer_id, {name: committed})
            elif key.group in self._groups:
                self._groups[key.group].offsets.forget(name)
            return
        assert value is None or isinstance(value, GroupMetadataValue)
        if value is not None:
            self._made(key.group).members.restore(value)
        elif key.group in self._groups:
            self._groups[key.group] = _Group(self._new(key.group), self._groups[key.group].offsets)

    def transaction_ended(self, producer_id: int, *, commits: bool) -> None:
        """The marker of a producer's transaction is in the log."""
        for group_id in self._pending.pop(producer_id, ()):
            if group_id in self._groups:
                self._groups[group_id].offsets.unpend(producer_id, commits=commits)
                self._free()

    def begin(self) -> None:
        """All of the log has been read: the members' sessions begin."""
        self._count()
        self._read = frozenset(self._groups)
        for group in self._groups.values():
            group.members.begin()

    def end(self) -> None:
        """The broker has resigned."""
        for group in self._groups.values():
            group.members.end()

    # ------------------------------------------------------------------------------------ members

    def join(self, asked: Join) -> None:
        """Serve JoinGroup."""
        request, group = asked.request, self._groups.get(asked.request.group_id)
        limits = self._limits
        in_bounds = limits.min_session_timeout_ms <= request.session_timeout_ms <= limits.max_session_timeout_ms
        if not request.group_id:
            asked.refuse(GroupError.INVALID_GROUP_ID)
        elif not in_bounds:
            asked.refuse(GroupError.INVALID_SESSION_TIMEOUT)
        elif group is None and request.member_id:
            asked.refuse(GroupError.UNKNOWN_MEMBER_ID)
        elif request.group_id in self._read and "joins_unanswered_after_a_failover" in self._bugs:
            pass
        elif self._is_full(asked, group):
            asked.refuse(GroupError.GROUP_MAX_SIZE_REACHED)
        else:
            self._made(request.group_id).members.join(asked)
            self._free()  # it may have been refused, or have been counted before

    def sync(self, request: SyncGroupRequest, answer: Answer) -> None:
        """Serve SyncGroup."""
        group = self._groups.get(request.group_id)
        if group is None:
            answer(SyncGroupResponse(error_code=GroupError.UNKNOWN_MEMBER_ID))
        else:
            group.members.sync(request, _answering(group.members, answer, self._bugs))

    def heartbeat(self, request: HeartbeatRequest, answer: Answer) -> None:
        """Serve Heartbeat."""
        group = self._groups.get(request.group_id)
        if group is None:
            answer(HeartbeatResponse(error_code=GroupError.UNKNOWN_MEMBER_ID))
        else:
            group.members.heartbeat(request, answer)

    def leave(self, request: LeaveGroupRequest, version: int, answer: Answer) -> None:
        """Serve LeaveGroup."""
        group = self._groups.get(request.group_id)
        leaving = request.members if version >= _LEAVES_OTHERS_SINCE else [MemberIdentity(request.member_id)]
        self._free()
        results = [
            MemberResponse(
                one.member_id,
                one.group_instance_id,
                GroupError.UNKNOWN_MEMBER_ID if group is None else group.members.leave(one),
            )
            for one in leaving
        ]
        error = results[0].error_code if version < _LEAVES_OTHERS_SINCE else GroupError.NONE
        answer(LeaveGroupResponse(error_code=error, members=results))

    def describe(self, group_id: str, version: int) -> DescribedGroup:
        """One group of a DescribeGroups request; one that does not exist is dead."""
        group = self._groups.get(group_id)
        if group is not None:
            return group.members.described()
        error = GroupError.GROUP_ID_NOT_FOUND if version >= _NOT_FOUND_SINCE else GroupError.NONE
        sentence = f"Group {group_id} not found." if error else None
        return DescribedGroup(error, sentence, group_id, "Dead")

    def listed(self, states: Sequence[str], types: Sequence[str]) -> list[ListedGroup]:
        """The groups in these states and of these types, empty meaning all; Kafka compares without case."""
        wanted, kinds = {one.lower() for one in states}, {one.lower() for one in types}
        return [
            ListedGroup(name, one.members.protocol_type or "", one.members.state, "classic")
            for name, one in sorted(self._groups.items())
            if (not wanted or one.members.state.lower() in wanted) and (not kinds or "classic" in kinds)
        ]

    def delete(self, group_id: str, deleted: Callable[[int], None]) -> None:
        """Delete a group without members, and its offsets; calls ``deleted`` with the error, now or later."""
        group = self._groups.get(group_id)
        if group is None:
            deleted(GroupError.GROUP_ID_NOT_FOUND)
        elif group.members.state != "Empty":
            deleted(GroupError.NON_EMPTY_GROUP)
        else:
            del self._groups[group_id]
            group.members.end()
            self._free()
            gone = [*group.offsets.tombstones(), group_record(GroupMetadataKey(group_id), None)]
            self._surroundings.store(gone, lambda error: deleted(of_commit(error)))

    # ------------------------------------------------------------------------------------ offsets

    def commit(
        self, group_id: str, who: Committer, offsets: dict[TopicPartition, CommittedOffset],
        committed: Callable[[int], None],
    ) -> None:  # fmt: skip
        """Store ``offsets``, which replace older ones, all or none; calls ``committed`` with the error."""
        error, kept = self._acceptable(group_id, who, offsets)
        if error or not kept:
            committed(error)
            return
        group = self._made(group_id)
        keep = partial(self._keep, group.offsets, kept, committed)
        self._surroundings.store(group.offsets.records(kept), keep)

    def commit_in_transaction(
        self, group_id: str, who: Committer, producer: ProducerIdentity, offsets: dict[TopicPartition, CommittedOffset],
        committed: Callable[[int], None],
    ) -> None:  # fmt: skip
        """Store ``offsets`` as a part of a producer's transaction, with whose marker they replace older ones.

        Of two commits to a partition the one that takes effect last counts; Kafka has the one that is later in the log.
        """
        error, kept = self._acceptable(group_id, who, offsets, in_transaction=True)
        if error or not kept:
            committed(error)
            return
        records = self._made(group_id).offsets.records(kept)
        self._pend(group_id, producer.producer_id, kept)

        def stored(code: int) -> None:
            if code and group_id in self._groups:
                self._withdraw(group_id, producer.producer_id, kept)
            committed(of_commit(code))

        self._surroundings.store_in_transaction(records, producer, stored)

    def _pend(self, group_id: str, producer_id: int, commits: Commits) -> None:
        offsets = self._made(group_id).offsets
        for name, one in commits.items():
            offsets.pend(producer_id, name, one)
        self._pending.setdefault(producer_id, set()).add(group_id)

    def _withdraw(self, group_id: str, producer_id: int, commits: Commits) -> None:
        """A commit in a transaction could not be stored."""
        self._free()
        if not self._groups[group_id].offsets.withdraw(producer_id, commits):
            return
        pending = self._pending.get(producer_id, set())
        pending.discard(group_id)
        if not pending:
            self._pending.pop(producer_id, None)

    def _acceptable(
        self, group_id: str, who: Committer, offsets: dict[TopicPartition, CommittedOffset], *,
        in_transaction: bool = False,
    ) -> tuple[int, Commits]:  # fmt: skip
        """Why a commit is refused, or what of it is to be stored."""
        group = self._groups.get(group_id)
        if not group_id:
            return GroupError.INVALID_GROUP_ID, {}
        if group is None:
            error = GroupError.ILLEGAL_GENERATION if who.generation >= 0 else GroupError.NONE
        elif not in_transaction:
            error = group.members.commit_error(*who)
            error = GroupError.NONE if "commits_unfenced" in self._bugs else error
        elif who.generation < 0 and not who.member_id:
            error = GroupError.NONE  # its producer does not say whose offsets it commits
        else:
            error = group.members.member_error(*who)
        if error:
            return error, {}
        kept = stored(offsets, self._bugs)
        before = GroupOffsets(group_id) if group is None or in_transaction else group.offsets
        if not self._has_room_for(before.growth(kept) + (_GROUP_BYTES if group is None else 0)):
            return GroupError.INVALID_COMMIT_OFFSET_SIZE, {}
        return GroupError.NONE, kept

    def _keep(self, offsets: GroupOffsets, commits: Commits, committed: Callable[[int], None], error: int) -> None:
        if error:
            self._free()
        else:
            for name, one in commits.items():
                offsets.keep(name, one)
        committed(of_commit(error))

    def committed(
        self, group_id: str, partitions: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, CommittedOffset]:
        """What a group has committed for these partitions, -1 for nothing; None: all that it has committed."""
        group = self._groups.get(group_id)
        if group is None:
            return dict.fromkeys(partitions or (), NOT_COMMITTED)
        return group.offsets.asked(partitions)

    def is_stable(self, group_id: str, name: TopicPartition) -> bool:
        """Whether no open transaction commits for the partition, so that its offset is certain (KIP-447)."""
        group = self._groups.get(group_id)
        return group is None or group.offsets.is_stable(name)

    def delete_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition],
        deleted: Callable[[int, dict[TopicPartition, int]], None],
    ) -> None:  # fmt: skip
        """Delete what a group has committed for partitions of topics that it does not subscribe to.

        Calls ``deleted``, now or later, with the error of all, and the error of each partition.
        """
        group = self._groups.get(group_id)
        if group is None:
            deleted(GroupError.GROUP_ID_NOT_FOUND, {})
            return
        members = group.members
        if len(members.members) and members.protocol_type != CONSUMER:
            deleted(GroupError.NON_EMPTY_GROUP, {})
            return
        busy = subscribed_topics(one.metadata(members.protocol) for one in members.members)
        errors: dict[TopicPartition, int] = {
            name: GroupError.GROUP_SUBSCRIBED_TO_TOPIC if busy is None or name.topic in busy else GroupError.NONE
            for name in partitions
        }
        free = [name for name, error in errors.items() if not error]
        gone = group.offsets.tombstones(free)
        if not gone:
            deleted(GroupError.NONE, errors)
            return

        def forget(error: int) -> None:
            for name in () if error else free:
                group.offsets.forget(name)
            self._free()
            deleted(of_commit(error), errors)

        self._surroundings.store(gone, forget)

    def status(self) -> list[dict[str, Any]]:
        """What every group has committed, for the control channel."""
        return [
            {"group": group, "topic": name.topic, "partition": name.partition, "offset": one.offset}
            for group, (_, offsets) in sorted(self._groups.items())
            for name, one in offsets
        ]

    def _made(self, group_id: str) -> _Group:
        """The group, which is made if there is none."""
        return self._groups.setdefault(group_id, _Group(self._new(group_id), GroupOffsets(group_id)))

    def _new(self, group_id: str) -> ClassicGroup:
        return ClassicGroup(group_id, self._surroundings, self._limits.initial_rebalance_delay_ms, self._free)

    def _is_full(self, asked: Join, group: _Group | None) -> bool:
        """Whether there is no room for a new member, or for what it has sent."""
        known = group is not None and asked.request.member_id in group.members.members
        if known:
            new = 0
            self._free()  # what it has sent before is replaced
        elif group is None:
            new = _GROUP_BYTES + MEMBER_BYTES
        else:
            new = MEMBER_BYTES
            if group.members.count >= self._limits.max_size and not group.members.expects(asked.request.member_id):
                return True
        return not self._has_room_for(new + sum(len(one.metadata) for one in asked.request.protocols))

    def _has_room_for(self, size: int) -> bool:
        """Whether ``size`` more bytes may be kept, which are counted as kept then.

        What is given up is noticed when there seems to be no room: to count takes a time.
        """
        if self._has_freed and self._at_most + size > MAX_KEPT_BYTES:
            self._count()
        if self._at_most + size > MAX_KEPT_BYTES:
            return False
        self._at_most += max(size, 0)
        if size < 0:
            self._free()
        return True

    def _free(self) -> None:
        """Something is not kept any more."""
        self._has_freed = True

    def _count(self) -> None:
        """Forget groups about which there is nothing to say, and count what the others take."""
        self._has_freed = False
        self._groups = {name: one for name, one in self._groups.items() if not one.is_nothing}
        self._at_most = sum(group.size for group in self._groups.values())


def _answering(members: ClassicGroup, answer: Answer, bugs: Collection[str]) -> Answer:
    """How a coordinator answers SyncGroup: with the assignment of the member that asks, but for an injected bug."""

    def mixed_up(response: Message) -> None:
        assert isinstance(response, SyncGroupResponse)
        leader = members.members.leader
        if leader is not None and not response.error_code:
            response.assignment = members.members[leader].assignment
        answer(response)

    return mixed_up if "assignments_mixed_up" in bugs else answer
