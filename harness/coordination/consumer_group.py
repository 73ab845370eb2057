"""A group of the consumer protocol (KIP-848): the coordinator assigns the partitions, and each member follows.

After Kafka's ``ConsumerGroup`` and ``GroupMetadataManager``. A change of the members or of their topics raises the
*group epoch*; the coordinator computes the *target assignment* of that epoch; and every member, at its own pace, is
reconciled with it, by its heartbeats (:mod:`harness.coordination.consumer_member`).

What the group knows is what its records in the log say, and nothing else changes it: a request is answered once the
records that it leads to are stored and replayed. Requests are served in turn, the next one when that has been done; a
commit of offsets has to wait only while what is being stored may change whether its sender is a member.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from harness.coordination.append_errors import is_in_log, of_heartbeat
from harness.coordination.assignors import ASSIGNORS, NOTHING, Share, Subscriber
from harness.coordination.consumer_member import (
    JOINING,
    LEAVING,
    LEAVING_FOR_A_WHILE,
    ConsumerMember,
    MemberState,
    reconciled,
)
from harness.coordination.consumer_records import ConsumerRecord, consumer_record
from harness.coordination.consumer_state import ConsumerState, preferred
from harness.coordination.heartbeat import Heartbeat, Refusal, epoch_refusal
from harness.coordination.ports import GroupPorts, Timer
from harness.coordination.topics_of_group import metadata_hash, topics_of, topics_of_all
from harness.error_codes import ErrorCode

_STORES_AGAIN_MS = 500


class ConsumerLimits(NamedTuple):
    """Kafka's settings ``group.consumer.*``; times in milliseconds, bounds inclusive."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_size: int


class _Step(NamedTuple):
    """Where a heartbeat has brought a member; ``shows``: its answer has what it has; ``is_new``: it has moved."""

    member: ConsumerMember
    shows: bool
    is_new: bool


class ConsumerGroup:
    """One group.

    Args:
        group_id: its name.
        ports: the broker.
        limits: see :class:`ConsumerLimits`.
        freed: called when a member is gone.
        bugs: the injected ones of :data:`harness.replication.bugs.BUGS`.

    Attributes:
        known: what the log says.
    """

    def __init__(
        self,
        group_id: str,
        ports: GroupPorts,
        limits: ConsumerLimits,
        freed: Callable[[], None],
        bugs: Collection[str],
    ) -> None:
        self.known = ConsumerState(group_id)
        self._ports = ports
        self._limits = limits
        self._freed = freed
        self._bugs = bugs
        self._sessions: dict[str, Timer] = {}
        self._revocations: dict[str, Timer] = {}
        self._turns: deque[tuple[Callable[[], None], Callable[[], None]]] = deque()
        self._storing: Sequence[ConsumerRecord] = ()
        self._is_over = False
        self._compared: int | None = None  # the version of the topics that the last epoch was found to be about

    def heartbeat(self, asked: Heartbeat) -> None:
        """Serve ConsumerGroupHeartbeat, in its turn."""
        self._take_turn(partial(self._serve, asked), lambda: asked.refuse(ErrorCode.NOT_COORDINATOR))

    def once_certain(self, member_id: str, serve: Callable[[], None], give_up: Callable[[], None]) -> None:
        """Serve a commit when it is certain whether its sender is a member, and in which epoch.

        What has been appended counts, and may yet fail. An empty ``member_id`` is that of a consumer which assigns
        itself its partitions: it may commit while there is no member at all.
        """
        about = {getattr(key, "member_id", None) for key, _ in self._storing}
        if about and (not member_id or member_id in about):
            self._take_turn(serve, give_up)
        else:
            serve()

    def commit_error(self, member_id: str, epoch: int) -> ErrorCode:
        """Why this sender must not commit offsets now."""
        if epoch < 0 and not self.known.members:
            return ErrorCode.NONE  # a consumer that assigns itself its partitions
        return self.member_error(member_id, epoch)

    def member_error(self, member_id: str, epoch: int) -> ErrorCode:
        """Why the sender of a request is no member in this epoch."""
        if "stale_member_epochs_obeyed" in self._bugs:
            return ErrorCode.NONE
        member = self.known.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member.epoch == epoch else ErrorCode.STALE_MEMBER_EPOCH

    @property
    def subscribed(self) -> set[str]:
        """The topics that some member subscribes to."""
        return {*topics_of_all(self._ports.topics, self.known)}

    @property
    def is_busy(self) -> bool:
        """Whether a request waits, or what it has led to is being stored."""
        return bool(self._storing or self._turns)

    # ------------------------------------------------------------------------------------ its life

    def begin(self) -> None:
        """The log has been read: the sessions of the members begin."""
        for member in self.known:
            self._keep_alive(member.member_id)
            self._expect_revocation(member)

    def end(self) -> None:
        """The broker has resigned, or the group is gone: members that wait have to find the new coordinator."""
        self._is_over = True
        for timer in (*self._sessions.values(), *self._revocations.values()):
            timer.cancel()
        for _, give_up in self._turns:
            give_up()
        self._turns.clear()

    def _take_turn(self, serve: Callable[[], None], give_up: Callable[[], None]) -> None:
        """Serve a request when what others have led to is stored."""
        if self._is_over:
            give_up()
            return
        self._turns.append((serve, give_up))
        self._go_on()

    def _go_on(self) -> None:
        while self._turns and not self._storing and not self._is_over:
            serve, _ = self._turns.popleft()
            serve()

    def _store(self, records: Sequence[ConsumerRecord], then: Callable[[int], None]) -> None:
        """Store records, replay them, and call ``then`` with the error code of the append.

        What the leader has appended counts, whether or not it is certain that others have it: it is in the log.
        """

        def stored(error: int) -> None:
            self._storing = ()
            if self._is_over:
                then(ErrorCode.UNKNOWN_SERVER_ERROR)
                return
            for one in records if is_in_log(error) else ():
                self.known.replay(*one)
            self._rest_of_the_gone()
            then(error)
            self._go_on()

        self._storing = records
        self._ports.store([consumer_record(*one) for one in records], stored)

    # ------------------------------------------------------------------------------------ heartbeats

    def _serve(self, asked: Heartbeat) -> None:
        refusal = self._refusal(asked)
        if refusal is not None:
            asked.refuse(*refusal)
        elif asked.request.member_epoch in (LEAVING, LEAVING_FOR_A_WHILE):
            self._leave(asked)
        else:
            self._step(asked)

    def _refusal(self, asked: Heartbeat) -> Refusal | None:
        """Why the sender is none of the group, or not in this epoch."""
        request, known = asked.request, self.known
        if request.member_epoch == JOINING:
            return self._join_refusal(asked)
        member = known.static(request.instance_id) if request.instance_id else known.members.get(request.member_id)
        if member is None:
            return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, "The sender is no member of the group.")
        if member.member_id != request.member_id:
            return Refusal(ErrorCode.FENCED_INSTANCE_ID, "Another member has this instance id by now.")
        return None if request.member_epoch < 0 else epoch_refusal(member, request.member_epoch, asked.owned)

    def _join_refusal(self, asked: Heartbeat) -> Refusal | None:
        """Why the sender must not join; one that is a member already owns nothing any more, and joins again."""
        members, member_id = self.known.members, asked.member_id
        if member_id not in members and len(members) >= self._limits.max_size:
            return Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, f"The group has {len(members)} members already.")
        former = self.known.static(asked.request.instance_id)
        if former is None or former.member_id == member_id or former.epoch == LEAVING_FOR_A_WHILE:
            return None
        return Refusal(ErrorCode.UNRELEASED_INSTANCE_ID, "Another member has this instance id.")

    def _step(self, asked: Heartbeat) -> None:
        """Have the member take its next step, and answer when that is stored."""
        records: list[ConsumerRecord] = []
        member = self._subject(asked, records)
        updated = asked.updated(member)
        if updated.member_id not in self.known.members or updated != member:
            records.append(self.known.member_record(updated))
        former = self.known.static(updated.instance_id)
        gone = former.member_id if former is not None else updated.member_id
        members = {**{one.member_id: one for one in self.known if one.member_id != gone}, updated.member_id: updated}
        epoch = self._epoch_after(member, updated, members, records)
        target_epoch, target = self._target_after(epoch, updated.member_id, members, gone, records)
        stepped = updated
        if not updated.is_reconciled(target_epoch):
            taken = NOTHING if "partitions_given_before_release" in self._bugs else self.known.taken
            stepped = reconciled(updated, target_epoch, target, taken, asked.owned)
        if stepped != updated:
            records.append(self.known.current_record(stepped))
        step = _Step(stepped, asked.is_full or stepped.assigned != member.assigned, stepped != updated)
        if records:
            self._store(records, partial(self._stepped, asked, step))
        else:
            self._stepped(asked, step, ErrorCode.NONE)

    def _stepped(self, asked: Heartbeat, step: _Step, error: int) -> None:
        if self._is_over:
            asked.refuse(ErrorCode.NOT_COORDINATOR)
            return
        if is_in_log(error):
            self._keep_alive(step.member.member_id)
            if step.is_new:
                self._expect_revocation(step.member)
        if error:
            asked.refuse(of_heartbeat(error))
        else:
            asked.confirm(step.member, self._limits.heartbeat_interval_ms, shows=step.shows)

    def _subject(self, asked: Heartbeat, records: list[ConsumerRecord]) -> ConsumerMember:
        """The member that has sent a heartbeat; a static one may take the place of its former self."""
        known, member_id = self.known, asked.member_id
        former = known.static(asked.request.instance_id)
        if former is None or former.member_id == member_id:
            return known.known(member_id)
        member = replace(former, member_id=member_id, epoch=JOINING, previous_epoch=JOINING)
        records += [
            *known.without(former.member_id),
            known.member_record(member),
            known.target_record(member_id, known.target(former.member_id)),
            known.current_record(member),
        ]
        return member

    def _epoch_after(
        self,
        member: ConsumerMember,
        updated: ConsumerMember,
        members: Mapping[str, ConsumerMember],
        records: list[ConsumerRecord],
    ) -> int:
        """The group epoch, which rises if the topics of the members are others now."""
        topics, is_same = self._ports.topics, (member.topics, member.regex) == (updated.topics, updated.regex)
        if is_same and topics.version == self._compared:
            return self.known.epoch
        now = metadata_hash(topics_of_all(topics, members.values()))
        if is_same and now == self.known.metadata_hash:
            self._compared = topics.version
            return self.known.epoch
        records.append(self.known.group_record(self.known.epoch + 1, now))
        return self.known.epoch + 1

    def _target_after(
        self,
        epoch: int,
        member_id: str,
        members: Mapping[str, ConsumerMember],
        gone: str,
        records: list[ConsumerRecord],
    ) -> tuple[int, Share]:
        """The epoch of the target assignment, and what a member is meant to have, which takes the place of ``gone``."""
        known, topics = self.known, self._ports.topics
        before = {**{name: known.target(name) for name in members}, member_id: known.target(gone)}
        if epoch <= known.assignment_epoch:
            return known.assignment_epoch, before[member_id]
        subscribers = {
            name: Subscriber(
                frozenset(topic.topic_id for topic in topics_of(topics, one).values()), before[name], one.instance_id
            )
            for name, one in members.items()
        }
        counts = dict(topics_of_all(topics, members.values()).values())
        shares = ASSIGNORS[preferred(members.values())](subscribers, counts)
        records += [known.target_record(name, share) for name, share in shares.items() if share != before[name]]
        records.append(known.assignment_record(epoch))
        return epoch, shares[member_id]

    # ------------------------------------------------------------------------------------ members that go

    def _leave(self, asked: Heartbeat) -> None:
        member = self.known.members[asked.request.member_id]
        if asked.request.member_epoch == LEAVING_FOR_A_WHILE:
            records = [self.known.current_record(replace(member, epoch=LEAVING_FOR_A_WHILE, revoking=NOTHING))]
        else:
            records = self._without(member.member_id)
        self._store(records, partial(self._left, asked))

    def _left(self, asked: Heartbeat, error: int) -> None:
        if self._is_over:
            asked.refuse(ErrorCode.NOT_COORDINATOR)
        elif error:
            asked.refuse(of_heartbeat(error))
        else:
            asked.let_go()

    def _without(self, member_id: str) -> list[ConsumerRecord]:
        """The records by which a member is out: its partitions are free, and the group has a new epoch."""
        others = [one for one in self.known if one.member_id != member_id]
        now = metadata_hash(topics_of_all(self._ports.topics, others))
        return [*self.known.without(member_id), self.known.group_record(self.known.epoch + 1, now)]

    def _fence(self, member_id: str, timers: dict[str, Timer], timer: Timer) -> None:
        """A member has been silent for too long, or has not given up its partitions in time, unless it has since."""
        if timers.get(member_id) is not timer or member_id not in self.known.members:
            return

        def fenced(error: int) -> None:
            if not is_in_log(error) and not self._is_over:
                self._wait(timers, member_id, _STORES_AGAIN_MS)

        self._store(self._without(member_id), fenced)

    # ------------------------------------------------------------------------------------ time

    def _keep_alive(self, member_id: str) -> None:
        """The member's session begins anew."""
        self._wait(self._sessions, member_id, self._limits.session_timeout_ms)

    def _expect_revocation(self, member: ConsumerMember) -> None:
        """A member that has to give partitions up has a time for each such step; one that has not, has none."""
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            self._wait(self._revocations, member.member_id, member.rebalance_timeout_ms)
        elif member.member_id in self._revocations:
            self._revocations.pop(member.member_id).cancel()

    def _wait(self, timers: dict[str, Timer], member_id: str, delay_ms: int) -> None:
        if member_id in timers:
            timers.pop(member_id).cancel()

        def over() -> None:
            self._take_turn(lambda: self._fence(member_id, timers, timer), lambda: None)

        timer = timers[member_id] = self._ports.call_later(delay_ms, over)

    def _rest_of_the_gone(self) -> None:
        """No timer runs for a member that is out."""
        for timers in (self._sessions, self._revocations):
            for member_id in [name for name in timers if name not in self.known.members]:
                timers.pop(member_id).cancel()
                self._freed()
