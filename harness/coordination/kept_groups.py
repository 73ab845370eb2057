"""The groups of one partition of ``__consumer_offsets`` by their names, and how much may be kept of all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from harness.coordination.classic_group import ClassicGroup
from harness.coordination.consumer_group import ConsumerGroup, ConsumerLimits
from harness.coordination.offsets import GroupOffsets, OffsetRetention
from harness.coordination.ports import GroupPorts

MAX_KEPT_BYTES = 16 * 1_048_576
"""What may be kept for all groups of a partition: some 30,000 offsets."""

GROUP_BYTES = 1_024
"""About how many bytes a group takes besides its members and its offsets."""


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """Kafka's settings ``group.*``; times in milliseconds, bounds inclusive.

    ``consumer`` are ``group.consumer.*``, and ``offsets`` is for how long committed offsets are kept.
    """

    initial_rebalance_delay_ms: int
    min_session_timeout_ms: int
    max_session_timeout_ms: int
    max_size: int
    consumer: ConsumerLimits
    offsets: OffsetRetention


class KeptGroup(NamedTuple):
    """A group: its members, which speak one protocol, and what they have committed."""

    members: ClassicGroup | ConsumerGroup
    offsets: GroupOffsets

    @property
    def classic(self) -> ClassicGroup | None:
        """The members, if they speak the classic protocol."""
        return self.members if isinstance(self.members, ClassicGroup) else None

    @property
    def consumer(self) -> ConsumerGroup | None:
        """The members, if they speak the consumer protocol."""
        return self.members if isinstance(self.members, ConsumerGroup) else None

    @property
    def is_empty(self) -> bool:
        """Whether it has no members, so that it may take up the other protocol."""
        if isinstance(self.members, ClassicGroup):
            return self.members.state == "Empty" and not self.members.count
        return not self.members.known.members

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        members = self.members.size if isinstance(self.members, ClassicGroup) else self.members.known.size
        return members + self.offsets.size + GROUP_BYTES

    @property
    def is_nothing(self) -> bool:
        """Whether it never had a member in a generation, nor committed, so that the log has nothing about it."""
        if isinstance(self.members, ClassicGroup):
            return not (self.offsets or self.members.generation or self.members.count)
        return not (self.offsets or self.members.known.epoch or self.members.is_busy)


class KeptGroups:
    """The groups.

    Args:
        ports: the broker.
        limits: see :class:`GroupLimits`.
        bugs: the injected ones of :data:`harness.replication.bugs.BUGS`.
    """

    def __init__(self, ports: GroupPorts, limits: GroupLimits, bugs: Collection[str]) -> None:
        self._ports = ports
        self._limits = limits
        self._bugs = bugs
        self._groups: dict[str, KeptGroup] = {}
        self._at_most = 0
        self._has_freed = False

    def __iter__(self) -> Iterator[tuple[str, KeptGroup]]:
        return iter(sorted(self._groups.items()))

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups

    def get(self, group_id: str) -> KeptGroup | None:
        """The group; None: there is none of this name."""
        return self._groups.get(group_id)

    def made(self, group_id: str) -> KeptGroup:
        """The group, which is made if there is none: of the classic protocol until it has members of the other one."""
        return self._groups.setdefault(group_id, KeptGroup(self._classic(group_id), GroupOffsets(group_id)))

    def classic(self, group_id: str) -> ClassicGroup:
        """The group, which is made anew, with its offsets, if it is of the other protocol."""
        group = self.made(group_id)
        if not isinstance(group.members, ClassicGroup):
            group.members.end()
            group = self._groups[group_id] = KeptGroup(self._classic(group_id), group.offsets)
        assert isinstance(group.members, ClassicGroup)
        return group.members

    def consumer(self, group_id: str) -> ConsumerGroup:
        """The group, which is made anew, with its offsets, if it is of the other protocol."""
        group = self.made(group_id)
        if not isinstance(group.members, ConsumerGroup):
            group.members.end()
            group = self._groups[group_id] = KeptGroup(self._consumer(group_id), group.offsets)
        assert isinstance(group.members, ConsumerGroup)
        return group.members

    def forget_members(self, group_id: str) -> None:
        """Have the group begin as if it had never had members."""
        if group_id in self._groups:
            self._groups[group_id] = KeptGroup(self._classic(group_id), self._groups[group_id].offsets)

    def drop(self, group_id: str) -> None:
        """The group is gone."""
        self._groups.pop(group_id).members.end()
        self.free()

    def _classic(self, group_id: str) -> ClassicGroup:
        return ClassicGroup(group_id, self._ports, self._limits.initial_rebalance_delay_ms, self.free, self._bugs)

    def _consumer(self, group_id: str) -> ConsumerGroup:
        return ConsumerGroup(group_id, self._ports, self._limits.consumer, self.free, self._bugs)

    # ------------------------------------------------------------------------------------ room

    def has_room_for(self, size: int) -> bool:
        """Whether ``size`` more bytes may be kept, which are counted as kept then.

        What is given up is noticed when there seems to be no room: to count takes a time.
        """
        if self._has_freed and self._at_most + size > MAX_KEPT_BYTES:
            self.count()
        if self._at_most + size > MAX_KEPT_BYTES:
            return False
        self._at_most += max(size, 0)
        if size < 0:
            self.free()
        return True

    def free(self) -> None:
        """Something is not kept any more."""
        self._has_freed = True

    def count(self) -> None:
        """Forget groups about which there is nothing to say, and count what the others take."""
        self._has_freed = False
        self._groups = {name: one for name, one in self._groups.items() if not one.is_nothing}
        self._at_most = sum(group.size for group in self._groups.values())
