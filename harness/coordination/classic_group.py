"""A consumer group of the classic protocol: its members, its generations, and who waits for them.

After Kafka's ``GroupCoordinator`` and ``GroupMetadata``. A *rebalance* begins when a member joins, leaves or is silent
for too long: every member has to join again, the coordinator begins a generation when all have or the time is over,
the leader of the group assigns the partitions, and the coordinator stores the generation before it gives the others
their assignments. A group without members is kept for its offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Literal

from harness.coordination.append_errors import of_group
from harness.coordination.member import Join, Member, restored
from harness.coordination.members import Members
from harness.coordination.ports import Answer, GroupPorts, LogRecord, Timer
from harness.coordination.records import GroupMetadataKey, GroupMetadataValue, group_record
from harness.error_codes import ErrorCode
from harness.wire.messages.groups import (
    DescribedGroup,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupResponse,
)

State = Literal["Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"]
"""As ``kafka-consumer-groups`` prints it."""

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""After how long a new member is removed that has never been in a generation: its client may have given up."""

MEMBER_BYTES = 1_024
"""About how many bytes a member takes besides what it has sent."""

_IDS_REQUIRED_SINCE = 4
"""The version of JoinGroup from which on a member has to ask for its id first (KIP-394)."""

_SKIPS_SINCE = 9
"""The version of JoinGroup with which a leader can be spared to assign again (KIP-814)."""


class ClassicGroup:
    """One group.

    Args:
        group_id: its name.
        ports: the broker.
        initial_delay_ms: how long an empty group waits for further members after the first
            (``group.initial.rebalance.delay.ms``, KIP-134).
        freed: called when a member is gone.
        bugs: the injected ones of :data:`harness.replication.bugs.BUGS`.

    Attributes:
        members: see :class:`harness.coordination.members.Members`.
        generation: of the last rebalance; 0 before the first.
        protocol: the assignment protocol that this generation uses.
        empty_since_ms: since when its last generation has no members, by the wall clock; None: it has some, or had none
            ever.
    """

    def __init__(
        self, group_id: str, ports: GroupPorts, initial_delay_ms: int, freed: Callable[[], None], bugs: Collection[str]
    ) -> None:
        self.group_id = group_id
        self.state: State = "Empty"
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.empty_since_ms: int | None = None
        self.members = Members()
        self._ports = ports
        self._initial_delay_ms = initial_delay_ms
        self._freed = freed
        self._hurries = "rebalance_cut_short" in bugs
        self._announced: dict[str, Timer] = {}
        self._unsynced: set[str] = set()
        self._timer: Timer | None = None
        self._waits_for_first = False
        self._has_newcomer = False

    # ------------------------------------------------------------------------------------ requests

    def join(self, asked: Join) -> None:
        """Serve JoinGroup: the answer comes when the next generation begins."""
        request = asked.request
        names = {one.name for one in request.protocols}
        if self.members:
            fits = request.protocol_type == self.protocol_type and bool(names & self.members.shared_protocols())
        else:
            fits = bool(request.protocol_type and names)
        if not fits:
            asked.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif request.member_id:
            self._join_known(asked)
        else:
            self._join_new(asked)

    def sync(self, request: SyncGroupRequest, answer: Answer) -> None:
        """Serve SyncGroup: the answer comes when the leader has assigned the partitions, and that is stored."""
        error = self._sync_error(request)
        if error:
            answer(SyncGroupResponse(error_code=error))
            return
        member = self.members[request.member_id]
        self._unsynced.discard(member.member_id)
        if self.state == "Stable":
            answer(self._synced(member))
            self._keep_alive(member)
            return
        member.wait_to_sync(answer)
        if member.member_id == self.members.leader:
            self._assign({one.member_id: one.assignment for one in request.assignments})

    def heartbeat(self, request: HeartbeatRequest, answer: Answer) -> None:
        """Serve Heartbeat."""
        error = self.member_error(request.member_id, request.group_instance_id, request.generation_id)
        if not error:
            self._keep_alive(self.members[request.member_id])
            if self.state == "PreparingRebalance":
                error = ErrorCode.REBALANCE_IN_PROGRESS
        answer(HeartbeatResponse(error_code=error))

    def leave(self, who: MemberIdentity) -> ErrorCode:
        """Remove a member at its own request, or an operator's."""
        if who.group_instance_id is None and who.member_id in self._announced:
            self._announced.pop(who.member_id).cancel()
            self._complete_if_all_joined()
            return ErrorCode.NONE
        if who.group_instance_id is None:
            error = self.members.identity_error(who.member_id, None)
            member = None if error else self.members[who.member_id]
        else:
            error = self.members.static_error(who.member_id, who.group_instance_id)
            member = self.members.static(who.group_instance_id)
        if not error and member is not None:
            self._remove(member)
            self._rebalance()
        return error

    def commit_error(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """Why this sender must not commit offsets now; its session begins anew if it may."""
        if generation < 0 and self.state == "Empty":
            return ErrorCode.NONE  # a consumer that assigns itself its partitions
        error = self.member_error(member_id, instance_id, generation)
        if error:
            return error
        self._keep_alive(self.members[member_id])
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state == "CompletingRebalance" else ErrorCode.NONE

    def member_error(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """Why the sender of a request is not a member of this generation."""
        error = self.members.identity_error(member_id, instance_id)
        if error:
            return error
        return ErrorCode.NONE if generation == self.generation else ErrorCode.ILLEGAL_GENERATION

    def described(self) -> DescribedGroup:
        """Itself, for operators."""
        stable = self.state == "Stable"
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state,
            protocol_type=self.protocol_type or "",
            protocol_data=self.protocol or "" if stable else "",
            members=[member.described(self.protocol if stable else None) for member in self.members],
        )

    @property
    def count(self) -> int:
        """How many members it has, those included that have only asked for an id."""
        return len(self.members) + len(self._announced)

    def expects(self, member_id: str) -> bool:
        """Whether this id was given to a client that has not joined with it yet."""
        return member_id in self._announced

    @property
    def size(self) -> int:
        """About how many bytes its members take."""
        return self.members.size + self.count * MEMBER_BYTES

    # ------------------------------------------------------------------------------------ the log

    def restore(self, value: GroupMetadataValue) -> None:
        """Be what the log says; :meth:`begin` follows when all of it has been read."""
        self.protocol_type = value.protocol_type
        self.generation = value.generation
        self.protocol = value.protocol
        self.members = Members()
        for one in value.members:
            self.members.add(restored(one, value.protocol))
        if value.leader is not None and value.leader in self.members:
            self.members.leader = value.leader
        self.state = "Stable" if self.members else "Empty"
        since_ms = value.current_state_timestamp
        self.empty_since_ms = None if self.members or since_ms < 0 else since_ms

    def begin(self) -> None:
        """The log has been read: the sessions of the members begin."""
        for member in self.members:
            self._keep_alive(member)

    def end(self) -> None:
        """The broker has resigned: members that wait have to find the new coordinator."""
        self.state = "Dead"
        self._stop_waiting()
        for timer in self._announced.values():
            timer.cancel()
        for member in self.members:
            member.rest()
            member.refuse_join(ErrorCode.NOT_COORDINATOR)
            member.refuse_sync(ErrorCode.NOT_COORDINATOR)

    def _sync_error(self, request: SyncGroupRequest) -> ErrorCode:
        error = self.member_error(request.member_id, request.group_instance_id, request.generation_id)
        if error:
            return error
        told = ((request.protocol_type, self.protocol_type), (request.protocol_name, self.protocol))
        if any(theirs is not None and theirs != ours for theirs, ours in told):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state == "PreparingRebalance" else ErrorCode.NONE

    # ------------------------------------------------------------------------------------ joining

    def _join_new(self, asked: Join) -> None:
        instance = asked.request.group_instance_id
        member_id = self._ports.new_member_id(instance or asked.caller.client_id)
        former = None if instance is None else self.members.static(instance)
        if former is not None:
            self._replace(asked, former, member_id)
        elif instance is not None or asked.version < _IDS_REQUIRED_SINCE:
            self._add(asked, member_id)
        else:
            timeout_ms = asked.request.session_timeout_ms
            self._announced[member_id] = self._ports.call_later(timeout_ms, lambda: self._forget(member_id))
            asked.refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id)

    def _forget(self, member_id: str) -> None:
        """A client that got an id has not joined with it."""
        del self._announced[member_id]
        self._freed()
        self._complete_if_all_joined()

    def _join_known(self, asked: Join) -> None:
        request = asked.request
        if request.member_id in self._announced and request.group_instance_id is None:
            self._announced.pop(request.member_id).cancel()
            self._add(asked, request.member_id)
            return
        error = self.members.identity_error(request.member_id, request.group_instance_id)
        if error:
            asked.refuse(error)
            return
        member = self.members[request.member_id]
        is_leader = member.member_id == self.members.leader
        unchanged = member.protocols == asked.protocols
        if unchanged and (self.state == "CompletingRebalance" or (self.state == "Stable" and not is_leader)):
            asked.answer(self._joined(member))  # its client has not got the answer
            self._keep_alive(member)
            return
        member.take_over(asked)
        member.wait_to_join(asked)
        self._rebalance()

    def _add(self, asked: Join, member_id: str) -> None:
        request = asked.request
        member = Member(
            member_id,
            request.group_instance_id,
            asked.caller,
            request.session_timeout_ms,
            asked.rebalance_timeout_ms,
            asked.protocols,
        )
        self.protocol_type = request.protocol_type
        self._has_newcomer = self._waits_for_first and self.generation == 0
        self.members.add(member)
        member.wait_to_join(asked)
        self._expire(member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalance()

    def _replace(self, asked: Join, member: Member, member_id: str) -> None:
        """A static member has been started again: it takes the place of its former self, which is fenced."""
        leader, former = self.members.leader, replace(member, joining=None, syncing=None, timer=None)
        member.rest()
        member.refuse_join(ErrorCode.FENCED_INSTANCE_ID)
        member.refuse_sync(ErrorCode.FENCED_INSTANCE_ID)
        self._unsynced.discard(member.member_id)
        self.members.rename(member, member_id)
        member.caller = asked.caller
        member.take_over(asked)
        self._keep_alive(member)
        if self.state == "Stable" and self.members.vote() == self.protocol:
            self._store_replacement(asked, member, former, leader)
        else:
            member.wait_to_join(asked)
            self._rebalance()

    def _store_replacement(self, asked: Join, member: Member, former: Member, leader: str | None) -> None:
        """Let a static member go on with its assignment, without a rebalance (KIP-345).

        Where that cannot be stored, its former self keeps its place.
        """
        generation, member_id = self.generation, member.member_id

        def stored(error: int) -> None:
            if member.member_id != member_id:
                asked.refuse(ErrorCode.FENCED_INSTANCE_ID)  # it has been started once more
                return
            if member_id not in self.members:
                asked.refuse(ErrorCode.UNKNOWN_MEMBER_ID)  # its session has ended, or it has left
                return
            if error:
                asked.refuse(of_group(error))
                self.members.rename(member, former.member_id)
                member.become(former)
                return
            if self.state != "Stable" or self.generation != generation:
                asked.refuse(ErrorCode.REBALANCE_IN_PROGRESS)
                return
            response = self._joined(member)
            if asked.version >= _SKIPS_SINCE:
                response.skip_assignment = member.member_id == self.members.leader
            else:
                response.leader, response.members = leader or "", []  # so that its client does not assign again
            asked.answer(response)

        self._ports.store([self._record({})], stored)

    # ------------------------------------------------------------------------------------ a rebalance

    def _rebalance(self) -> None:
        """The members have changed: begin a rebalance, or see whether the one under way can end."""
        if self.state != "PreparingRebalance":
            self._begin_rebalance()
        self._complete_if_all_joined()

    def _begin_rebalance(self) -> None:
        was_empty = self.state == "Empty"
        self._stop_waiting()
        for member in self.members:
            member.refuse_sync(ErrorCode.REBALANCE_IN_PROGRESS)
        self.state = "PreparingRebalance"
        if was_empty:
            self._waits_for_first = True
            self._wait_for_newcomers(self.members.rebalance_timeout_ms)
        else:
            self._wait(self.members.rebalance_timeout_ms // (10 if self._hurries else 1), self._begin_generation)

    def _wait_for_newcomers(self, left_ms: int) -> None:
        """The first members of a group arrive within a short time, so that one rebalance is enough for all."""
        delay_ms = min(self._initial_delay_ms, left_ms)
        self._has_newcomer = False

        def over() -> None:
            if self._has_newcomer and left_ms > delay_ms:
                self._wait_for_newcomers(left_ms - delay_ms)
            else:
                self._begin_generation()

        self._wait(delay_ms, over)

    def _complete_if_all_joined(self) -> None:
        ready = self.state == "PreparingRebalance" and not self._waits_for_first and not self._announced
        if ready and all(member.joining is not None for member in self.members):
            self._begin_generation()

    def _begin_generation(self) -> None:
        """All members have joined, or the others have taken too long and are removed, but for static ones."""
        self._stop_waiting()
        for member in self.members:
            if member.joining is None and member.instance_id is None:
                self._remove(member)
        if self.members and not self.members.elect_joined():
            self._wait(self.members.rebalance_timeout_ms, self._begin_generation)
            return
        self.generation += 1
        if not self.members:
            self.state, self.protocol, self.empty_since_ms = "Empty", None, self._ports.wall_ms()
            self._ports.store([self._record({})], lambda _: None)
            return
        self.protocol, self.empty_since_ms = self.members.vote(), None
        self.state = "CompletingRebalance"
        self._unsynced = {member.member_id for member in self.members}
        self._wait(self.members.rebalance_timeout_ms, self._remove_unsynced)
        for member in self.members:
            joining, member.joining = member.joining, None
            member.is_new = False
            self._keep_alive(member)
            if joining is not None:
                joining.answer(self._joined(member))

    def _remove_unsynced(self) -> None:
        """Members that have joined and not asked for their assignments have taken too long."""
        silent = [member for member in self.members if member.member_id in self._unsynced]
        for member in silent:
            self._remove(member)
        if silent:
            self._rebalance()

    def _assign(self, assigned: Mapping[str, bytes]) -> None:
        """Store the generation with what its leader has assigned, nothing to members that it has left out."""
        generation = self.generation
        assignments = {member.member_id: assigned.get(member.member_id, b"") for member in self.members}

        def stored(error: int) -> None:
            if self.state != "CompletingRebalance" or self.generation != generation:
                return
            for member in self.members:
                member.assignment = b"" if error else assignments[member.member_id]
            if error:
                self._refuse_syncs(of_group(error))
                self._rebalance()
                return
            self.state = "Stable"
            for member in self.members:
                member.answer_sync(self._synced(member))
                self._keep_alive(member)

        self._ports.store([self._record(assignments)], stored)

    def _refuse_syncs(self, error: int) -> None:
        for member in self.members:
            member.refuse_sync(error)
            self._keep_alive(member)

    # ------------------------------------------------------------------------------------ time

    def _wait(self, delay_ms: int, then: Callable[[], None]) -> None:
        self._timer = self._ports.call_later(delay_ms, then)

    def _stop_waiting(self) -> None:
        self._waits_for_first = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _keep_alive(self, member: Member) -> None:
        """The member's session begins anew."""
        self._expire(member, member.session_timeout_ms)

    def _expire(self, member: Member, after_ms: int) -> None:
        member.rest()

        def expired() -> None:
            if member.is_new or not member.is_waiting:
                self._remove(member)
                self._rebalance()

        member.timer = self._ports.call_later(after_ms, expired)

    def _remove(self, member: Member) -> None:
        member.rest()
        member.refuse_join(ErrorCode.UNKNOWN_MEMBER_ID)
        member.refuse_sync(ErrorCode.UNKNOWN_MEMBER_ID)
        self.members.remove(member)
        self._freed()
        self._unsynced.discard(member.member_id)

    # ------------------------------------------------------------------------------------ answers

    def _joined(self, member: Member) -> JoinGroupResponse:
        protocol = self.protocol or ""
        is_leader = member.member_id == self.members.leader
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=protocol,
            leader=self.members.leader or "",
            member_id=member.member_id,
            members=[one.joined(protocol) for one in self.members] if is_leader else [],
        )

    def _synced(self, member: Member) -> SyncGroupResponse:
        return SyncGroupResponse(
            protocol_type=self.protocol_type, protocol_name=self.protocol, assignment=member.assignment
        )

    def _record(self, assignments: Mapping[str, bytes]) -> LogRecord:
        """The generation with ``assignments``; a member without one there keeps the one that it has."""
        members = [
            member.stored(self.protocol, assignments.get(member.member_id, member.assignment))
            for member in self.members
        ]
        value = GroupMetadataValue(
            self.protocol_type or "",
            self.generation,
            self.protocol,
            self.members.leader,
            self._ports.wall_ms(),
            members,
        )
        return group_record(GroupMetadataKey(self.group_id), value)
