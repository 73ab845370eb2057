"""What the records in the log say of a group of the consumer protocol (KIP-848)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Literal

from harness.coordination.assignors import DEFAULT_ASSIGNOR, NOTHING, Share
from harness.coordination.consumer_member import LEAVING, ConsumerMember, partitions_of, share_of
from harness.coordination.consumer_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    ConsumerKey,
    ConsumerRecord,
    ConsumerValue,
)

State = Literal["Empty", "Assigning", "Reconciling", "Stable"]
"""As ``kafka-consumer-groups`` prints it."""

MEMBER_BYTES = 1_024
"""About how many bytes a member takes besides what it says about itself, and its partitions."""

_PARTITION_BYTES = 128


class ConsumerState:
    """One group.

    Args:
        group_id: its name.

    Attributes:
        epoch: of the group: it rises with every change of its members or of their topics; 0: it never had a member.
        metadata_hash: of the topics that its members subscribed to in that epoch.
        assignment_epoch: of the target assignment; below ``epoch`` until the next heartbeat.
        members: by their ids.
        targets: by their ids, what members are meant to have.
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.metadata_hash = 0
        self.assignment_epoch = 0
        self.members: dict[str, ConsumerMember] = {}
        self.targets: dict[str, Share] = {}

    def __iter__(self) -> Iterator[ConsumerMember]:
        return iter(self.members.values())

    def replay(self, key: ConsumerKey, value: ConsumerValue | None) -> None:
        """A record about the group is in the log."""
        match key, value:
            case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue():
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case ConsumerGroupMemberMetadataKey(), ConsumerGroupMemberMetadataValue():
                self.members[key.member_id] = self.known(key.member_id).named(value)
            case ConsumerGroupMemberMetadataKey(), None:
                self.members.pop(key.member_id, None)
            case ConsumerGroupTargetAssignmentMetadataKey(), ConsumerGroupTargetAssignmentMetadataValue():
                self.assignment_epoch = value.assignment_epoch
            case ConsumerGroupTargetAssignmentMemberKey(), ConsumerGroupTargetAssignmentMemberValue():
                self.targets[key.member_id] = share_of(value.topic_partitions)
            case ConsumerGroupTargetAssignmentMemberKey(), None:
                self.targets.pop(key.member_id, None)
            case ConsumerGroupCurrentMemberAssignmentKey(), ConsumerGroupCurrentMemberAssignmentValue():
                self.members[key.member_id] = self.known(key.member_id).having(value)
            case ConsumerGroupCurrentMemberAssignmentKey(), None if key.member_id in self.members:
                nothing = ConsumerGroupCurrentMemberAssignmentValue(LEAVING, LEAVING)
                self.members[key.member_id] = self.members[key.member_id].having(nothing)

    def known(self, member_id: str) -> ConsumerMember:
        """The member with this id, or a new one."""
        return self.members.get(member_id) or ConsumerMember(member_id)

    def static(self, instance_id: str | None) -> ConsumerMember | None:
        """The static member of this name; None: there is none."""
        return next((one for one in self if instance_id is not None and one.instance_id == instance_id), None)

    def target(self, member_id: str) -> Share:
        """What a member is meant to have."""
        return self.targets.get(member_id, NOTHING)

    @property
    def state(self) -> State:
        """What the group is about."""
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        return "Stable" if all(one.is_reconciled(self.assignment_epoch) for one in self) else "Reconciling"

    @property
    def taken(self) -> Share:
        """What members have, and what they have yet to give up."""
        return frozenset(one for member in self for one in member.assigned | member.revoking)

    @property
    def size(self) -> int:
        """About how many bytes the members take."""
        shares = (len(one.assigned) + len(one.revoking) + len(self.target(one.member_id)) for one in self)
        said = sum(one.said_bytes for one in self)
        return len(self.members) * MEMBER_BYTES + said + sum(shares) * _PARTITION_BYTES

    # ------------------------------------------------------------------------------------ records

    def group_record(self, epoch: int, metadata_hash: int) -> ConsumerRecord:
        """The group is in this epoch."""
        return ConsumerGroupMetadataKey(self.group_id), ConsumerGroupMetadataValue(epoch, metadata_hash)

    def member_record(self, member: ConsumerMember) -> ConsumerRecord:
        """What a member says about itself."""
        return ConsumerGroupMemberMetadataKey(self.group_id, member.member_id), member.metadata()

    def current_record(self, member: ConsumerMember) -> ConsumerRecord:
        """What a member has."""
        return ConsumerGroupCurrentMemberAssignmentKey(self.group_id, member.member_id), member.current()

    def target_record(self, member_id: str, share: Share) -> ConsumerRecord:
        """What a member is meant to have."""
        value = ConsumerGroupTargetAssignmentMemberValue(partitions_of(share))
        return ConsumerGroupTargetAssignmentMemberKey(self.group_id, member_id), value

    def assignment_record(self, epoch: int) -> ConsumerRecord:
        """The target assignment is that of this epoch."""
        value = ConsumerGroupTargetAssignmentMetadataValue(epoch)
        return ConsumerGroupTargetAssignmentMetadataKey(self.group_id), value

    def without(self, member_id: str) -> list[ConsumerRecord]:
        """A member is gone."""
        keys: tuple[ConsumerKey, ...] = (
            ConsumerGroupCurrentMemberAssignmentKey(self.group_id, member_id),
            ConsumerGroupTargetAssignmentMemberKey(self.group_id, member_id),
            ConsumerGroupMemberMetadataKey(self.group_id, member_id),
        )
        return [(key, None) for key in keys]

    def tombstones(self) -> list[ConsumerRecord]:
        """The group, which has no members, is gone."""
        return [
            (ConsumerGroupTargetAssignmentMetadataKey(self.group_id), None),
            (ConsumerGroupMetadataKey(self.group_id), None),
        ]


def preferred(members: Collection[ConsumerMember]) -> str:
    """The name of the assignor that most members prefer of those that prefer one."""
    votes = Counter(one.assignor for one in members if one.assignor is not None)
    return min(votes, key=lambda name: (-votes[name], name), default=DEFAULT_ASSIGNOR)
