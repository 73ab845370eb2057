"""Whether a cluster at rest serves its clients: records, acknowledgements, and what other clients have held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from harness.final_read import FinalRead, Unread
from harness.model import TopicPartition
from harness.orders import Pending, ScheduledClient, SendOrder, Sent
from harness.runner.unrest import Look
from harness.workload import Waits


def takeovers(waits: Waits) -> Look:
    """What clients still wait for that take over what others held; see :meth:`harness.workload.Workload.take_over`."""
    missing = [f"{name}: {words}" for words, names in sorted(waits().items()) for name in sorted(names)]
    return Look(not missing, missing, len(missing))


_AT_ONCE = 8
"""To how many partitions records are under way at one time."""


def reads(final_read: FinalRead) -> Look:
    """What the final read has not come to the end of; only what it has begun to read is named."""
    unread = final_read.unread()
    missing = [f"{name}: {_words(one)}" for name, one in sorted(unread.items()) if one.begun]
    done = sum((one.position or 0) + (one.end is not None) for one in unread.values())
    return Look(not unread, missing, -done)


def _words(one: Unread) -> str:
    if one.end is None:
        return "no leader says where the log begins and ends"
    error = f", where {one.error} ended it" if one.error is not None else ""
    return f"the final read stands at offset {one.position}{error}, and the high watermark is {one.end}"


@dataclass
class _Asked:
    """What became of the records that a partition was sent: how many were not acknowledged, and the last error."""

    pending: Pending[Sequence[Sent]] | None = None
    tries: int = 0
    error: str | None = None


class Sends:
    """Records with acks=all, to each partition a new one until one is acknowledged.

    Args:
        timeout_s: how long a record waits for its acknowledgement.
        idempotent: whether producers number their records.
    """

    def __init__(
        self, client: ScheduledClient, partitions: Sequence[TopicPartition], *, timeout_s: float, idempotent: bool
    ) -> None:
        self._client = client
        self._timeout_s = timeout_s
        self._idempotent = idempotent
        self._asked = {name: _Asked() for name in sorted(partitions)}

    def look(self) -> Look:
        """What has not been acknowledged; sends again where a record is under way no longer."""
        for name, one in list(self._asked.items()):
            if one.pending is not None and (sent := one.pending.result()) is not None:
                self._note(name, one, sent)
        waiting = [name for name, one in self._asked.items() if one.pending is None]
        under_way = len(self._asked) - len(waiting)
        for name in islice(sorted(waiting, key=lambda name: self._asked[name].tries), _AT_ONCE - under_way):
            self._asked[name].pending = self._client.send(
                SendOrder((name,), 1, timeout_s=self._timeout_s, idempotent=self._idempotent)
            )
        return Look(not self._asked, list(self._missing()), len(self._asked))

    def _note(self, name: TopicPartition, one: _Asked, sent: Sequence[Sent]) -> None:
        if any(record.kind == "ok" for record in sent):
            del self._asked[name]
            return
        one.pending = None
        one.tries += len(sent)
        one.error = sent[-1].error if sent else one.error

    def _missing(self) -> Iterator[str]:
        for name, one in self._asked.items():
            if one.tries:
                yield f"{name}: {one.tries} sends with acks=all, and none was acknowledged (the last: {one.error})"
