"""A group of the consumer protocol for operators: the answer to ConsumerGroupDescribe."""

from __future__ import annotations

from harness.coordination.assignors import Share, by_topic
from harness.coordination.consumer_member import ConsumerMember
from harness.coordination.consumer_state import ConsumerState, preferred
from harness.coordination.ports import Topics
from harness.wire.messages.consumer_groups import (
    DescribedAssignment,
    DescribedConsumerGroup,
    DescribedConsumerMember,
    DescribedTopicPartitions,
)

_SPEAKS_THE_CONSUMER_PROTOCOL = 1


def described(group: ConsumerState, topics: Topics) -> DescribedConsumerGroup:
    """The group with its members; their partitions without those of topics that are not known here."""
    return DescribedConsumerGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred(group.members.values()),
        members=[_member(member, group.target(member.member_id), topics) for member in group],
    )


def _member(member: ConsumerMember, target: Share, topics: Topics) -> DescribedConsumerMember:
    return DescribedConsumerMember(
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.epoch,
        member.caller.client_id,
        member.caller.host,
        list(member.topics),
        member.regex,
        _assignment(member.assigned, topics),
        _assignment(target, topics),
        _SPEAKS_THE_CONSUMER_PROTOCOL,
    )


def _assignment(share: Share, topics: Topics) -> DescribedAssignment:
    named = [(topic_id, topics.name_of(topic_id), numbers) for topic_id, numbers in by_topic(share)]
    return DescribedAssignment(
        [DescribedTopicPartitions(topic_id, name, numbers) for topic_id, name, numbers in named if name is not None]
    )
