"""A member of a group of the consumer protocol: its current and its target assignment, and their reconciliation.

After Kafka's ``ConsumerGroupMember`` and ``CurrentAssignmentBuilder``. A member is *reconciled* step by step, whenever
it sends a heartbeat: it first gives up what it is not meant to have any more; when it owns none of that, its epoch
rises; and it is given a partition only when no other member has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

from harness.coordination.assignors import NOTHING, Share, TopicIdPartition, by_topic
from harness.coordination.consumer_records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    StoredPartitions,
)
from harness.coordination.ports import Caller

JOINING, LEAVING, LEAVING_FOR_A_WHILE = 0, -1, -2
"""Member epochs that are none: of a member that joins, of one that leaves, and of a static one that will come back."""


UNKNOWN = Caller("", "")


class MemberState(IntEnum):
    """What a member has yet to do, in Kafka's numbers.

    ``STABLE``: nothing, in its epoch. ``UNREVOKED_PARTITIONS``: give partitions up. ``UNRELEASED_PARTITIONS``: wait for
    partitions that others have not given up yet.
    """

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


_STATES = {int(state): state for state in MemberState}


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """One member.

    Attributes:
        topics: the names of those that it subscribes to, in order.
        regex: a pattern of further topics; None: it has none.
        assignor: the one that it prefers; None: it does not mind.
        epoch: of its last step; ``LEAVING_FOR_A_WHILE`` of a static member that is away.
        previous_epoch: the one before, which it may still name, for it may have missed an answer.
        assigned: what it has.
        revoking: what it has and has to give up.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    caller: Caller = UNKNOWN
    topics: tuple[str, ...] = ()
    regex: str | None = None
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    epoch: int = JOINING
    previous_epoch: int = JOINING
    state: MemberState = MemberState.STABLE
    assigned: Share = NOTHING
    revoking: Share = NOTHING

    def is_reconciled(self, target_epoch: int) -> bool:
        """Whether it has what it is meant to have in the target assignment of this epoch."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    @property
    def said_bytes(self) -> int:
        """About how many bytes are kept of what it says about itself."""
        words = (self.member_id, self.instance_id, self.rack_id, self.caller.client_id, self.regex, *self.topics)
        return sum(len(word or "") for word in words)

    def named(self, metadata: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
        """The member that says this about itself."""
        return replace(
            self,
            instance_id=metadata.instance_id,
            rack_id=metadata.rack_id,
            caller=Caller(metadata.client_id, metadata.client_host),
            topics=tuple(metadata.subscribed_topic_names),
            regex=metadata.subscribed_topic_regex,
            rebalance_timeout_ms=metadata.rebalance_timeout_ms,
            assignor=metadata.server_assignor,
        )

    def having(self, current: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
        """The member that has this; one in a state of a later Kafka is taken to wait for partitions."""
        return replace(
            self,
            epoch=current.member_epoch,
            previous_epoch=current.previous_member_epoch,
            state=_STATES.get(current.state, MemberState.UNRELEASED_PARTITIONS),
            assigned=share_of(current.assigned_partitions),
            revoking=share_of(current.partitions_pending_revocation),
        )

    def metadata(self) -> ConsumerGroupMemberMetadataValue:
        """What it has said about itself, for the log."""
        return ConsumerGroupMemberMetadataValue(
            self.instance_id,
            self.rack_id,
            self.caller.client_id,
            self.caller.host,
            list(self.topics),
            self.regex,
            self.rebalance_timeout_ms,
            self.assignor,
        )

    def current(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        """What it has, for the log."""
        return ConsumerGroupCurrentMemberAssignmentValue(
            self.epoch, self.previous_epoch, self.state, partitions_of(self.assigned), partitions_of(self.revoking)
        )

    def stepped(self, epoch: int, state: MemberState, assigned: Share, revoking: Share = NOTHING) -> ConsumerMember:
        """The member after one step."""
        return replace(self, epoch=epoch, previous_epoch=self.epoch, state=state, assigned=assigned, revoking=revoking)


def reconciled(
    member: ConsumerMember, target_epoch: int, target: Share, taken: Share, owned: Share | None
) -> ConsumerMember:
    """The member after its next step towards the target assignment; itself where it cannot take one.

    Args:
        member: as it is.
        target_epoch: of the target assignment.
        target: what it is meant to have.
        taken: what any member has, or has yet to give up.
        owned: what it says that it owns; None: it has not said.
    """
    match member.state:
        case MemberState.STABLE if member.epoch == target_epoch:
            return member
        case MemberState.UNREVOKED_PARTITIONS if _owns(owned, member.revoking):
            return member
        case MemberState.UNREVOKED_PARTITIONS:
            return _next(member, member.epoch + 1, (target_epoch, target), taken, owned)
        case _:
            return _next(member, member.epoch, (target_epoch, target), taken, owned)


def _next(
    member: ConsumerMember, epoch: int, meant: tuple[int, Share], taken: Share, owned: Share | None
) -> ConsumerMember:
    target_epoch, target = meant
    kept, given_up = member.assigned & target, member.assigned - target
    if given_up and _owns(owned, given_up):
        return member.stepped(epoch, MemberState.UNREVOKED_PARTITIONS, kept, given_up)
    missing = target - kept
    unreleased = missing & taken
    state = MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE
    return member.stepped(target_epoch, state, kept | (missing - unreleased))


def _owns(owned: Share | None, partitions: Share) -> bool:
    """Whether a member may own one of these; one that has not said what it owns may."""
    return owned is None or bool(owned & partitions)


def share_of(partitions: Iterable[StoredPartitions]) -> Share:
    """The share that a record names."""
    return frozenset(TopicIdPartition(one.topic_id, number) for one in partitions for number in one.partitions)


def partitions_of(share: Share) -> list[StoredPartitions]:
    """A share, as a record names it."""
    return [StoredPartitions(topic, numbers) for topic, numbers in by_topic(share)]
