"""The commits of one member of a group, made as its membership says, and their rows in the history.

A commit that the client makes by itself has no row, for the application hears neither when it makes one nor how it
ends. Instead there is an operation ``auto_commit`` of unknown outcome when the member is given a partition: from then
on its client may commit there whatever it has been given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.client_ports import ClientContext, CommittedOffset, Member
from harness.client_tasks.group_process import GroupProcess
from harness.membership import Membership
from harness.model import TopicPartition

Offsets = Mapping[TopicPartition, CommittedOffset]

UNANSWERED = "_DESTROY"
"""The error of an asynchronous commit whose client was closed before the answer came."""


class MemberCommits:
    """What one member commits.

    Args:
        context: of the run.
        membership: of the member.
        member: commits.
    """

    def __init__(self, context: ClientContext, membership: Membership, member: Member) -> None:
        self._context = context
        self._membership = membership
        self._member = member
        self._idle = [self._new_process()]
        self._under_way: set[GroupProcess] = set()
        self._begun: dict[TopicPartition, CommittedOffset] = {}
        self._acknowledged: dict[TopicPartition, CommittedOffset] = {}

    async def commit(self, positions: Offsets) -> str | None:
        """Commit what is new in ``positions``, unless the client does so by itself.

        Returns:
            the error's name, None: it was acknowledged, or there was nothing to wait for.
        """
        match self._membership.commits.mode:
            case "sync":
                return await self.commit_and_wait(positions)
            case "async":
                self._begin(_news(positions, self._begun))
        return None

    async def commit_before_release(self, positions: Offsets) -> None:
        """Commit what is not known to be committed of partitions that are about to be given up, and wait.

        Unless the client does so by itself. After asynchronous commits it is the one on which an application relies.
        """
        if not self._membership.commits.is_automatic:
            await self.commit_and_wait(positions)

    async def commit_and_wait(self, positions: Offsets) -> str | None:
        """Commit what is not known to be committed of ``positions``; the error's name, None for success."""
        news = _news(positions, self._acknowledged)
        if not news:
            return None
        process = self._take()
        process.begin_commit(news, self._member.generation)
        error = await self._member.commit(news)
        self._ended(process, news, error)
        return error

    def given(self, names: Sequence[TopicPartition]) -> None:
        """The member is given partitions, of which it has committed nothing yet."""
        self.gone(names)
        if self._membership.commits.is_automatic and names:
            recorder, group = self._context.recorder, self._membership.group
            op = recorder.invoke(self._context.new_process(), "auto_commit", names, group)
            recorder.complete(op, "info")

    def gone(self, names: Sequence[TopicPartition]) -> None:
        """The member has given partitions up, or has lost them."""
        for name in names:
            self._begun.pop(name, None)
            self._acknowledged.pop(name, None)

    def end(self) -> None:
        """The member is closed, or was killed: answers that have not come do not come any more."""
        while self._under_way:
            process = min(self._under_way, key=lambda one: one.op)
            self._under_way.discard(process)
            process.end_commit(UNANSWERED)

    def _begin(self, news: Offsets) -> None:
        if not news:
            return
        process = self._take()
        process.begin_commit(news, self._member.generation)
        self._begun |= news

        def answered(error: str | None) -> None:
            if process in self._under_way:  # else it has come too late
                self._ended(process, news, error)

        self._member.commit_async(news, answered)

    def _ended(self, process: GroupProcess, news: Offsets, error: str | None) -> None:
        process.end_commit(error, self._member.generation)
        self._under_way.discard(process)
        self._idle.append(process)
        for name, one in news.items():
            if error is None:
                self._acknowledged[name] = one
            elif self._begun.get(name) == one:
                del self._begun[name]

    def _take(self) -> GroupProcess:
        process = self._idle.pop() if self._idle else self._new_process()
        self._under_way.add(process)
        return process

    def _new_process(self) -> GroupProcess:
        context, ours = self._context, self._membership
        return GroupProcess(context.recorder, context.new_process, ours.group, ours.protocol)


def _news(positions: Offsets, known: Offsets) -> dict[TopicPartition, CommittedOffset]:
    return {name: one for name, one in sorted(positions.items()) if known.get(name) != one}
