"""A ConsumerGroupHeartbeat request, its sender, and its answers (KIP-848)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from harness.coordination.assignors import ASSIGNORS, Share, TopicIdPartition, by_topic
from harness.coordination.consumer_member import JOINING, LEAVING_FOR_A_WHILE, ConsumerMember
from harness.coordination.ports import Answer, Caller
from harness.error_codes import ErrorCode
from harness.wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatAssignment,
    TopicPartitions,
)

_OWN_IDS_SINCE = 1
"""The version from which on a member makes its own id (KIP-1082)."""


class Refusal(NamedTuple):
    """Why a request is refused."""

    error: ErrorCode
    sentence: str | None = None


class Heartbeat(NamedTuple):
    """A request and its sender; ``member_id`` is the one that a sender without an id is given."""

    request: ConsumerGroupHeartbeatRequest
    version: int
    member_id: str
    caller: Caller
    answer: Answer

    @property
    def owned(self) -> Share | None:
        """What the sender says that it owns; None: it has not said."""
        told = self.request.topic_partitions
        if told is None:
            return None
        return frozenset(TopicIdPartition(one.topic_id, number) for one in told for number in one.partitions)

    @property
    def is_full(self) -> bool:
        """Whether the sender has said everything, and wants to be told everything, too."""
        request = self.request
        told = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        all_of_it = request.rebalance_timeout_ms >= 0 and told and request.topic_partitions is not None
        return request.member_epoch == JOINING or all_of_it

    def updated(self, member: ConsumerMember) -> ConsumerMember:
        """The member with what it says about itself now; what it leaves out has not changed."""
        request = self.request
        topics, regex = request.subscribed_topic_names, request.subscribed_topic_regex
        timeout_ms = request.rebalance_timeout_ms
        return replace(
            member,
            instance_id=member.instance_id if request.instance_id is None else request.instance_id,
            rack_id=member.rack_id if request.rack_id is None else request.rack_id,
            caller=self.caller,
            topics=member.topics if topics is None else tuple(sorted(set(topics))),
            regex=member.regex if regex is None else regex or None,
            rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms < 0 else timeout_ms,
            assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        )

    def refuse(self, error: ErrorCode, sentence: str | None = None) -> None:
        """Answer with an error."""
        self.answer(ConsumerGroupHeartbeatResponse(error_code=error, error_message=sentence))

    def confirm(self, member: ConsumerMember, interval_ms: int, *, shows: bool) -> None:
        """Answer with the member's epoch; ``shows``: and with what it has."""
        topics = [TopicPartitions(topic, numbers) for topic, numbers in by_topic(member.assigned)]
        self.answer(
            ConsumerGroupHeartbeatResponse(
                member_id=member.member_id,
                member_epoch=member.epoch,
                heartbeat_interval_ms=interval_ms,
                assignment=HeartbeatAssignment(topics) if shows else None,
            )
        )

    def let_go(self) -> None:
        """Answer that the sender has left."""
        request = self.request
        self.answer(ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch))


def malformed(asked: Heartbeat) -> Refusal | None:
    """Why a request is refused whatever the group is."""
    request = asked.request
    sentence = _nonsense(asked) or (_incomplete(request) if request.member_epoch == JOINING else None)
    if sentence is not None:
        return Refusal(ErrorCode.INVALID_REQUEST, sentence)
    if request.server_assignor is None or request.server_assignor in ASSIGNORS:
        return None
    known = ", ".join(ASSIGNORS)
    sentence = f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {known}."
    return Refusal(ErrorCode.UNSUPPORTED_ASSIGNOR, sentence)


def epoch_refusal(member: ConsumerMember, epoch: int, owned: Share | None) -> Refusal | None:
    """Why a member is fenced that names this epoch; the last one will do, for it may have missed the answer."""
    missed = epoch == member.previous_epoch and owned is not None and owned <= member.assigned
    if epoch == member.epoch or (epoch < member.epoch and missed):
        return None
    sentence = f"The member is in epoch {member.epoch}, not {epoch}: it must give up its partitions and join again."
    return Refusal(ErrorCode.FENCED_MEMBER_EPOCH, sentence)


def _nonsense(asked: Heartbeat) -> str | None:
    """What is wrong in any heartbeat."""
    request = asked.request
    if "" in (request.group_id, request.instance_id, request.rack_id):
        return "GroupId, InstanceId and RackId can't be empty."
    if not request.member_id and (asked.version >= _OWN_IDS_SINCE or request.member_epoch != JOINING):
        return "MemberId can't be empty."
    if request.member_epoch < LEAVING_FOR_A_WHILE:
        return "MemberEpoch is invalid."
    if request.member_epoch == LEAVING_FOR_A_WHILE and request.instance_id is None:
        return "InstanceId can't be null."
    return None


def _incomplete(request: ConsumerGroupHeartbeatRequest) -> str | None:
    """What is missing in the first heartbeat of a member."""
    if request.rebalance_timeout_ms < 0:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.topic_partitions is None or request.topic_partitions:
        return "TopicPartitions must be empty when (re-)joining."
    if not request.subscribed_topic_names and not request.subscribed_topic_regex:
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be set in first request."
    return None
