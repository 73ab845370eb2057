"""What a simulated group member commits without waiting: when its workload calls for it, or by itself."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from harness.client_ports import CommitAnswered, CommittedOffset
from harness.membership import Commits
from harness.model import TopicPartition
from harness.simulation.stack.tasks import Task

Offsets = Mapping[TopicPartition, CommittedOffset]

_NS_PER_S = 1_000_000_000


def _unheard(_: str | None) -> None:
    """The application hears no answer to an automatic commit."""


class PendingCommits:
    """The asynchronous commits of one member; automatic ones are made as Kafka's own client makes them.

    That is in a poll, of what earlier polls have returned, and before partitions are given up.

    Args:
        commits: how the member commits.
        commit: commits, and waits for the answer.
        now_ns: the time of the run.
    """

    def __init__(
        self,
        commits: Commits,
        commit: Callable[[Offsets], Coroutine[Any, Any, str | None]],
        now_ns: Callable[[], int],
    ) -> None:
        self._commits = commits
        self._commit = commit
        self._now_ns = now_ns
        self._due_ns = now_ns() + round(commits.every_s * _NS_PER_S)
        self._tasks: list[Task[None]] = []

    def begin(self, offsets: Offsets, answered: CommitAnswered = _unheard) -> None:
        """Commit ``offsets``; ``answered`` is called when the answer has come."""

        async def ask() -> None:
            answered(await self._commit(offsets))

        self._tasks.append(Task(ask()))

    def poll_begins(self, positions: Offsets) -> None:
        """Commit ``positions`` if the member does so by itself, and it is time.

        Raises:
            BaseException: a bug in a commit that was begun before.
        """
        for task in self._tasks:
            task.result()
        self._tasks = [task for task in self._tasks if not task.is_done]
        if self._commits.is_automatic and positions and self._now_ns() >= self._due_ns:
            self._due_ns = self._now_ns() + round(self._commits.every_s * _NS_PER_S)
            self.begin(dict(positions))

    async def before_release(self, positions: Offsets) -> None:
        """Commit ``positions`` if the member does so by itself, and wait: it is about to give them up."""
        if self._commits.is_automatic and positions:
            await self._commit(dict(positions))
