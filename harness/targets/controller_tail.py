"""Reads leaders and ISRs from the timeline that a built-in controller writes, while it grows: no node is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from harness.model import NodeId, TopicPartition
from harness.target import Leadership

_DECISIONS = (b'"kind":"election"', b'"kind":"isr"')


class ControllerTail:
    """The last decision about each partition; ``new_lines`` returns what the timeline has got since the last call.

    For one thread.
    """

    def __init__(self, new_lines: Callable[[], Iterable[bytes]]) -> None:
        self._new_lines = new_lines
        self._leaders: dict[TopicPartition, Leadership] = {}

    def leaders(self) -> Mapping[TopicPartition, Leadership]:
        """By partition."""
        for line in self._new_lines():
            if any(kind in line for kind in _DECISIONS):
                self._note(line)
        return dict(self._leaders)

    def _note(self, line: bytes) -> None:
        with suppress(ValueError, KeyError, TypeError):  # a line that a crash has torn
            row = json.loads(line)
            where = TopicPartition(row["topic"], row["partition"])
            self._leaders[where] = Leadership(NodeId(row["leader"]), tuple(map(NodeId, row["isr"])))


class GrowingFile:
    """Returns the whole lines that a file has got since the last call; none while there is no file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def __call__(self) -> Sequence[bytes]:
        """See the class."""
        with suppress(OSError), self._path.open("rb") as file:
            file.seek(self._read)
            whole, end, _ = file.read().rpartition(b"\n")
            self._read += len(whole) + len(end)
            return whole.splitlines()
        return ()


class GrowingList:
    """Returns the elements that a list has got since the last call; another thread may append to it."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines
        self._read = 0

    def __call__(self) -> Sequence[bytes]:
        """See the class."""
        added = self._lines[self._read :]
        self._read += len(added)
        return added
