"""A member of a group of the classic protocol."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from harness.coordination.ports import Answer, Caller, Timer
from harness.coordination.records import MemberMetadata
from harness.error_codes import ErrorCode
from harness.wire.messages.groups import (
    DescribedGroupMember,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    SyncGroupResponse,
)

Protocols = tuple[tuple[str, bytes], ...]
"""The names of the assignment protocols that a member knows, the preferred one first, and its metadata for each."""


class Join(NamedTuple):
    """A JoinGroup request and its sender; ``version`` is that of the request."""

    request: JoinGroupRequest
    version: int
    caller: Caller
    answer: Answer

    @property
    def protocols(self) -> Protocols:
        """What the sender knows."""
        return tuple((one.name, one.metadata) for one in self.request.protocols)

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long a rebalance waits for the sender; version 0 has one timeout for both."""
        asked_ms = self.request.rebalance_timeout_ms if self.version else self.request.session_timeout_ms
        return max(asked_ms, 0)

    def refuse(self, error: int, member_id: str | None = None) -> None:
        """Answer that the sender has not joined."""
        known = self.request.member_id if member_id is None else member_id
        self.answer(JoinGroupResponse(error_code=error, member_id=known))


@dataclass(slots=True)
class Member:
    """One member.

    Attributes:
        instance_id: of a static member (KIP-345), which keeps its partitions when it is started again.
        protocols: see :data:`Protocols`.
        assignment: what the leader of the group has assigned it, which the coordinator does not read.
        joining: its request that waits for the next generation.
        syncing: answers its request that waits for the assignment.
        timer: its session, at whose end it is removed.
        is_new: whether it has not been in any generation yet.
    """

    member_id: str
    instance_id: str | None
    caller: Caller
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    joining: Join | None = None
    syncing: Callable[[SyncGroupResponse], None] | None = None
    timer: Timer | None = None
    is_new: bool = True

    @property
    def size(self) -> int:
        """Bytes that are kept of what it has sent."""
        return sum(len(metadata) for _, metadata in self.protocols) + len(self.assignment)

    @property
    def is_waiting(self) -> bool:
        """Whether one of its requests is not answered yet, so that it cannot send heartbeats."""
        return self.joining is not None or self.syncing is not None

    def take_over(self, asked: Join) -> None:
        """Learn what a JoinGroup request says."""
        self.protocols = asked.protocols
        self.session_timeout_ms = asked.request.session_timeout_ms
        self.rebalance_timeout_ms = asked.rebalance_timeout_ms

    def become(self, former: Member) -> None:
        """Be what it was before it took over what a JoinGroup request said."""
        self.caller, self.protocols = former.caller, former.protocols
        self.session_timeout_ms, self.rebalance_timeout_ms = former.session_timeout_ms, former.rebalance_timeout_ms

    def wait_to_join(self, asked: Join) -> None:
        """Answer ``asked`` when the next generation begins. A request that waits already has been given up."""
        self.refuse_join(ErrorCode.REBALANCE_IN_PROGRESS)
        self.joining = asked

    def refuse_join(self, error: ErrorCode) -> None:
        """Answer a waiting JoinGroup request with an error."""
        waiting, self.joining = self.joining, None
        if waiting is not None:
            waiting.refuse(error, self.member_id if error is ErrorCode.REBALANCE_IN_PROGRESS else None)

    def wait_to_sync(self, answer: Answer) -> None:
        """Answer when the assignment is known. A request that waits already has been given up."""
        self.refuse_sync(ErrorCode.REBALANCE_IN_PROGRESS)
        self.syncing = answer

    def refuse_sync(self, error: int) -> None:
        """Answer a waiting SyncGroup request with an error."""
        self.answer_sync(SyncGroupResponse(error_code=error))

    def answer_sync(self, response: SyncGroupResponse) -> None:
        """Answer a waiting SyncGroup request."""
        waiting, self.syncing = self.syncing, None
        if waiting is not None:
            waiting(response)

    def rest(self) -> None:
        """Stop its session."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def metadata(self, protocol: str | None) -> bytes:
        """What it says about itself in a protocol; empty where it does not know that one."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: set[str]) -> str:
        """The protocol that it prefers among ``candidates``, all of which it knows."""
        return next(name for name, _ in self.protocols if name in candidates)

    def joined(self, protocol: str) -> JoinGroupResponseMember:
        """Itself, for the leader of the group."""
        return JoinGroupResponseMember(self.member_id, self.instance_id, self.metadata(protocol))

    def described(self, protocol: str | None) -> DescribedGroupMember:
        """Itself, for operators; without what belongs to a generation where there is no ``protocol``."""
        return DescribedGroupMember(
            self.member_id,
            self.instance_id,
            self.caller.client_id,
            self.caller.host,
            self.metadata(protocol),
            b"" if protocol is None else self.assignment,
        )

    def stored(self, protocol: str | None, assignment: bytes) -> MemberMetadata:
        """Itself with an assignment, for the log."""
        return MemberMetadata(
            self.member_id,
            self.instance_id,
            self.caller.client_id,
            self.caller.host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.metadata(protocol),
            assignment,
        )


def restored(kept: MemberMetadata, protocol: str | None) -> Member:
    """A member as :meth:`Member.stored` has written it; it knows the protocol of its generation alone."""
    return Member(
        kept.member_id,
        kept.group_instance_id,
        Caller(kept.client_id, kept.client_host),
        kept.session_timeout,
        kept.rebalance_timeout,
        ((protocol or "", kept.subscription),),
        kept.assignment,
        is_new=False,
    )
