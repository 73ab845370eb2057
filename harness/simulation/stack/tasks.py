"""Coroutines of clients in virtual time, which wait for promises and nothing else.

There is no loop. A task goes on from within the act that keeps the promise it waits for, as a broker's handler does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

ValueT = TypeVar("ValueT")


class Promise(Generic[ValueT]):
    """A value to come. One task may wait for it."""

    def __init__(self) -> None:
        self._values: list[ValueT] = []
        self._waiting: Callable[[], None] | None = None

    def __await__(self) -> Generator[Promise[Any], None, ValueT]:
        if not self._values:
            yield self
        return self._values[0]

    @property
    def is_kept(self) -> bool:
        """Whether the value is there."""
        return bool(self._values)

    def keep(self, value: ValueT) -> None:
        """Set the value; the waiting task goes on at once. Only the first value counts."""
        if self._values:
            return
        self._values.append(value)
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting()

    def then(self, go_on: Callable[[], None]) -> None:
        """Call ``go_on`` when the value is there, which it is not yet."""
        assert self._waiting is None, "two wait for one promise"
        self._waiting = go_on


class Window:
    """Lets a number of tasks in at once, in the order in which they came."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._waiting: deque[Promise[None]] = deque()

    async def enter(self) -> None:
        """Wait until there is room."""
        if self._free and not self._waiting:
            self._free -= 1
            return
        promise: Promise[None] = Promise()
        self._waiting.append(promise)
        await promise

    def leave(self) -> None:
        """Let the next one in."""
        if self._waiting:
            self._waiting.popleft().keep(None)
        else:
            self._free += 1

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Enter, and leave in the end."""
        await self.enter()
        try:
            yield
        finally:
            self.leave()


class Task(Generic[ValueT]):
    """A coroutine under way; implements :class:`harness.workload.Pending`. It begins at once."""

    def __init__(self, coroutine: Coroutine[Promise[Any], None, ValueT]) -> None:
        self._coroutine = coroutine
        self._results: list[ValueT] = []
        self._failures: list[BaseException] = []
        self._step()

    @property
    def is_done(self) -> bool:
        """Whether it has come to its end, good or bad."""
        return bool(self._results or self._failures)

    def result(self) -> ValueT | None:
        """See :class:`harness.workload.Pending`."""
        if self._failures:
            raise self._failures[0]
        return self._results[0] if self._results else None

    def _step(self) -> None:
        try:
            promise = self._coroutine.send(None)
        except StopIteration as end:
            self._results.append(end.value)
        except BaseException as failure:  # noqa: BLE001 (raised again where the result is looked at)
            self._failures.append(failure)
        else:
            promise.then(self._step)


async def run_all(works: Sequence[Coroutine[Promise[Any], None, None]]) -> None:
    """Run ``works`` side by side until all of them have ended; the last one as a part of the task that waits.

    Raises:
        BaseException: what ended one of them.
    """
    *others, last = works
    left = [None for _ in others]
    ended: Promise[None] = Promise()

    async def run(work: Coroutine[Promise[Any], None, None]) -> None:
        try:
            await work
        finally:
            left.pop()
            if not left:
                ended.keep(None)

    tasks = [Task(run(work)) for work in others]
    await last
    if left:
        await ended
    for task in tasks:
        task.result()
