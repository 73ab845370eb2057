"""The base of readers of a controller's log that is still being written, and that a power loss may truncate."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from harness.errors import EnvironmentFault
from harness.targets.kafka.decisions import Decision, Withdrawal


class Mark(NamedTuple):
    """The last entry that was read: ``entry`` in the file ``path`` at ``position``."""

    path: Path
    position: int
    entry: bytes

    def stands(self) -> bool:
        """Whether it is still there, and so is all before it; or there is nothing to read now."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.position)
                return file.read(len(self.entry)) == self.entry or not file.seek(0, os.SEEK_END)
        except FileNotFoundError:
            return True


class GrowingLog(ABC):
    """The part of a :class:`~harness.targets.kafka.decisions.ControllerLog` that detects a truncated log."""

    def __init__(self) -> None:
        self._told: list[Decision] = []
        self._begin()

    def read_on(self) -> Sequence[Decision | Withdrawal]:
        """See :class:`~harness.targets.kafka.decisions.ControllerLog`.

        Raises:
            EnvironmentFault: a record has an unknown version, or the log is another one: no power loss takes the
                beginning, so decisions that took effect are lost.
        """
        if self._is_as_it_was():
            new = list(self._read())
            self._told += new
            return new
        assert self._last is not None, "where nothing was read, nothing has changed"
        before, path = self._told, self._last.path
        self._begin()
        self._told = list(self._read())
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, self._told, strict=False)))
        if before and not same:
            raise EnvironmentFault(f"the controller's log {path} does not begin as it did when it was read.")
        gone = before[same:]
        return [*([Withdrawal(gone)] if gone else []), *self._told[same:]]

    def _is_as_it_was(self) -> bool:
        """Whether everything that was read is still there."""
        return self._last is None or self._last.stands()

    def _begin(self) -> None:
        """Forget everything, and read from the beginning."""
        self._last: Mark | None = None
        self._forget()

    @abstractmethod
    def _forget(self) -> None:
        """Reset the state to that before the first entry."""

    @abstractmethod
    def _read(self) -> Iterator[Decision]:
        """The decisions since the last call; sets ``_last``."""
