"""The final read: at the end of a run fresh consumers read every partition from its start to its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from harness.model import Offset, TopicPartition


class Unread(NamedTuple):
    """How far the final read of a partition has come that has not come to its end.

    Attributes:
        begun: whether a consumer has begun to read it.
        position: the offset that it waits for; None: no leader has said where the log begins.
        end: the offset up to which, exclusive, it is to read; None: no leader has said.
        error: the name of the error that ended the last consumer before it came there; None: there was none.
    """

    begun: bool = False
    position: Offset | None = None
    end: Offset | None = None
    error: str | None = None

    def come_to(self, position: Offset) -> Unread:
        """The same when a consumer stands at ``position``: what matters is how far any of them came."""
        return self._replace(position=position if self.position is None else max(position, self.position))

    def bounded(self, start: Offset, end: Offset) -> Unread:
        """The same when a leader has said from where to where the log can be read."""
        return self.come_to(start)._replace(end=end)


class FinalRead(Protocol):
    """Reads every partition to its end, and says how far it came."""

    def read(self, timeout_s: float) -> bool:
        """Read every partition from the start to its end with fresh consumers; waits until that is done.

        Returns whether the end was reached everywhere: False after ``timeout_s``, or when errors have ended consumers
        of every partition that is left. The read goes on then, until :meth:`stop`, with new consumers where errors
        ended the last ones, each from the start; the next call is about the same read.
        """
        ...

    def unread(self) -> Mapping[TopicPartition, Unread]:
        """By partition, how far the read has come; without those that it has read to their ends."""
        ...

    def stop(self) -> None:
        """Stop reading. Idempotent; the next call of :meth:`read` begins anew."""
        ...
