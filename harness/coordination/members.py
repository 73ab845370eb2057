"""The members of a group of the classic protocol: who they are, who leads, and which protocols they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from harness.coordination.member import Member
from harness.error_codes import ErrorCode


class Members:
    """The members by their ids, in the order in which they have joined.

    Attributes:
        leader: the id of the member that assigns the partitions: the oldest one; None where there is none.
    """

    def __init__(self) -> None:
        self.leader: str | None = None
        self._by_id: dict[str, Member] = {}
        self._static: dict[str, str] = {}

    def __iter__(self) -> Iterator[Member]:
        return iter(list(self._by_id.values()))

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._by_id

    def __getitem__(self, member_id: str) -> Member:
        return self._by_id[member_id]

    def add(self, member: Member) -> None:
        """Take a member in."""
        self._by_id[member.member_id] = member
        if member.instance_id is not None:
            self._static[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member: Member) -> None:
        """Forget a member; if it led, the oldest of the others leads."""
        del self._by_id[member.member_id]
        if member.instance_id is not None:
            del self._static[member.instance_id]
        if self.leader == member.member_id:
            self.leader = next(iter(self._by_id), None)

    def rename(self, member: Member, member_id: str) -> None:
        """Give a static member a new id, with which it keeps its place as the leader."""
        led = self.leader == member.member_id
        del self._by_id[member.member_id]
        member.member_id = member_id
        self._by_id[member_id] = member
        assert member.instance_id is not None
        self._static[member.instance_id] = member_id
        if led:
            self.leader = member_id

    def elect_joined(self) -> bool:
        """Whether a member leads that has joined the next generation: the leader, or else the oldest of them."""
        joined = [name for name, member in self._by_id.items() if member.joining is not None]
        if self.leader not in joined and joined:
            self.leader = joined[0]
        return bool(joined)

    def static(self, instance_id: str) -> Member | None:
        """The static member of this name."""
        known = self._static.get(instance_id)
        return None if known is None else self._by_id[known]

    def static_error(self, member_id: str, instance_id: str) -> ErrorCode:
        """Why a sender is not the static member ``instance_id``; it need not say by which id it is known."""
        known = self._static.get(instance_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.FENCED_INSTANCE_ID if member_id and member_id != known else ErrorCode.NONE

    def identity_error(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Why a sender is no member."""
        if instance_id is not None and (error := self.static_error(member_id, instance_id)):
            return error
        return ErrorCode.NONE if member_id in self._by_id else ErrorCode.UNKNOWN_MEMBER_ID

    def shared_protocols(self) -> set[str]:
        """The assignment protocols that all members know."""
        known = Counter(name for member in self for name in {name for name, _ in member.protocols})
        return {name for name, count in known.items() if count == len(self)}

    def vote(self) -> str:
        """The protocol that most members prefer among those that all know; of equals, that of the oldest member."""
        candidates = self.shared_protocols()
        votes = Counter(member.vote(candidates) for member in self)
        return votes.most_common(1)[0][0]

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long a rebalance waits for them: as long as the slowest may take."""
        return max((member.rebalance_timeout_ms for member in self), default=0)

    @property
    def size(self) -> int:
        """Bytes that are kept of what they have sent."""
        return sum(member.size for member in self)
