"""A member of a group, from its first poll to its end, and its rows in the history.

Polls are operations of the member's process, and the poll during which the client learns of a rebalance has its rows.
What it asks about its group's offsets, and what it commits, are operations of processes beside it, as in
:mod:`harness.client_tasks.group_process` and :mod:`harness.client_tasks.member_commits`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from harness.client_ports import (
    BEGINNING,
    MOVED_ERRORS,
    Begins,
    ClientContext,
    Clients,
    CommittedOffset,
    Isolation,
    Member,
    Transacted,
    TransactionalProducer,
)
from harness.client_tasks.deadline import Deadline
from harness.client_tasks.group_process import GroupProcess
from harness.client_tasks.member_commits import MemberCommits
from harness.client_tasks.polling import POLL_S, end_poll
from harness.history.recorder import Change, PolledRecord
from harness.membership import Membership
from harness.model import Offset, TopicPartition

Prepare = Callable[[Sequence[TopicPartition]], Awaitable[bool]]

_POLL_RECORDS = 500
_ASK_TIMEOUT_S = 1.0
_ASKS_S = 5.0
_BACKOFF_S = 0.05
_OUT = ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH")
"""What a coordinator answers that has removed the member: it has lost what it was given in the meantime."""

_COMMITS = 3
"""How often a member that has hung tries to commit."""


class GroupLife:
    """One member of a group.

    Args:
        context: of the run.
        clients: make the member.
        membership: of what, and how.
        isolation: of what it reads.
        from_beginning: whether it begins at the beginning of its partitions whatever its group has committed: what that
            was is no longer in the log.
        prepare: where it commits in transactions alone: runs when it is given partitions, before it takes them for its
            own and asks what is committed of them; returns whether it may begin.

    Attributes:
        polled: the records of the last poll.
        reached: by partition, up to where (exclusive) it has read.
        moved: whether a poll ended because its position is not in the log any more.
        has: the partitions that it has been given, and has not given up or lost.
    """

    def __init__(
        self,
        context: ClientContext,
        clients: Clients,
        membership: Membership,
        isolation: Isolation,
        *,
        from_beginning: bool = False,
        prepare: Prepare | None = None,
    ) -> None:
        self.polled: Sequence[PolledRecord] = ()
        self.reached: dict[TopicPartition, Offset] = {}
        self.moved = False
        self.has: set[TopicPartition] = set()
        self._recorder = context.recorder
        self._clients = clients
        self._group = membership.group
        self._from_beginning = from_beginning
        self._is_left_alone = membership.begin == "client" and context.real_time is not None
        self._prepare = prepare
        self._process = context.new_process()
        self._protocol = membership.protocol
        self._offsets = GroupProcess(context.recorder, context.new_process, membership.group, self._protocol)
        self._op = -1
        subscribing = self._recorder.invoke(self._process, "subscribe", sorted(membership.partitions), self._group)
        self._member: Member = clients.member(str(self._process), membership, isolation, self._rebalanced)
        self._recorder.complete(subscribing, "ok")
        self._commits = MemberCommits(context, membership, self._member)

    async def poll(self) -> str | None:
        """Poll once; returns the name of the error that ended it."""
        self._begin_poll()
        polled = await self._member.poll(_POLL_RECORDS, POLL_S)
        end_poll(self._recorder, self._op, polled)
        records, error, _ = polled
        self.polled = records
        self.reached |= {TopicPartition(one.topic, one.partition): one.offset + 1 for one in records}
        self.moved = error in MOVED_ERRORS
        return error

    async def commit(self) -> str | None:
        """Commit what was read since the last commit, of the partitions that it has, as its membership says.

        Returns the error's name; None: there was none, or its client commits by itself, or the answer is still to come.
        """
        return await self._commits.commit(self._member.positions)

    async def commit_in(
        self, producer: TransactionalProducer, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> Transacted | None:
        """Commit ``offsets`` in the open transaction of ``producer``; None: it stays open, for :meth:`ended_in`."""
        self._offsets.begin_commit(offsets, self._member.generation)
        return await producer.commit_offsets(self._member, offsets)

    def ended_in(self, transacted: Transacted) -> None:
        """The transaction of the last :meth:`commit_in` ended."""
        self._offsets.end_commit_as(transacted.kind, transacted.error, self._member.generation)

    async def hang(self, seconds: float) -> None:
        """Do nothing for that long, and then commit, if need be again, before it hears whether it is still a member."""
        await self.stand_still(seconds)
        for _ in range(_COMMITS):
            if await self.commit() is None:
                break

    async def stand_still(self, seconds: float) -> None:
        """Do nothing for that long, and hear nothing of the group for a little longer."""
        self._member.stand_still(seconds + _COMMITS * _ASK_TIMEOUT_S)
        await self._clients.sleep(seconds)

    async def close(self) -> None:
        """Leave the group, unless it is a static member; what a rebalance does on the way belongs to a last poll."""
        self._begin_poll()
        await self._member.close()
        self._recorder.complete_poll(self._op, [])
        self._commits.end()

    def crash(self) -> None:
        """Its process was killed: it leaves nothing, and its partitions are its group's to take away."""
        self.has.clear()
        self._commits.end()
        self._recorder.crash(self._process)

    def _begin_poll(self) -> None:
        ours = self._member
        self._op = self._recorder.invoke_poll(
            self._process, False, self._group, ours.isolation, generation=ours.generation, protocol=self._protocol
        )

    async def _rebalanced(self, change: Change, partitions: Sequence[TopicPartition]) -> Begins | None:
        """See :data:`harness.client_ports.Rebalanced`."""
        names = sorted(partitions)
        if change == "revoked" and self._prepare is None:
            positions = {name: one for name, one in self._member.positions.items() if name in names}
            await self._commits.commit_before_release(positions)
        generation = self._member.generation
        is_ready = change != "assigned" or self._prepare is None or await self._prepare(names)
        if names:
            self._recorder.rebalance(self._op, change, names, generation, self._protocol)
        self.has = self.has | {*names} if change == "assigned" else self.has - {*names}
        if change != "assigned":
            self._commits.gone(names)
            return {}
        self._commits.given(names)
        return await self._begins(names) if is_ready else None

    async def _begins(self, names: Sequence[TopicPartition]) -> Begins | None:
        """Where to begin: what the group has committed, or else the beginning.

        What the group has committed is asked for in any case; a client that begins by itself asks, too.
        """
        if not names:
            return {}
        deadline = Deadline(self._clients, _ASKS_S)
        while left_s := deadline.left_s():
            self._offsets.ask(names)
            answer = await self._member.committed(names, min(left_s, _ASK_TIMEOUT_S))
            self._offsets.told(answer)
            if answer in _OUT:
                return None
            if not isinstance(answer, str):
                known = {} if self._from_beginning else answer
                told = [name for name in names if not (self._is_left_alone and name in known)]
                return {name: known.get(name, CommittedOffset(BEGINNING)) for name in told}
            await self._clients.sleep(_BACKOFF_S)
        return None
