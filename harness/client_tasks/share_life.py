"""A consumer of a share group, from its first poll to its end, and its rows in the history (KIP-932)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.client_ports import ClientContext
from harness.history.recorder import PolledRecord
from harness.history.shares import Acknowledging, SharedRecord, Shares
from harness.model import Acknowledgement, Offset, TopicPartition
from harness.share_ports import ShareMembership, SharingClients

_POLL_S = 0.2
_COMMIT_S = 3.0

Says = Callable[[SharedRecord], Acknowledgement]
"""What a consumer says of a record that it was given."""


class ShareLife:
    """One consumer of a share group, which is one process of the history.

    Args:
        context: of the run.
        clients: make the consumer.
        shares: takes its rows.
        membership: how it takes part.

    Attributes:
        reached: up to where (exclusive) it was given records, by partition.
        is_usable: whether it goes on: no poll has failed, and all that it acknowledged was confirmed.
    """

    def __init__(
        self, context: ClientContext, clients: SharingClients, shares: Shares, membership: ShareMembership
    ) -> None:
        self.reached: dict[TopicPartition, Offset] = {}
        self.is_usable = True
        self._shares = shares
        self._group = membership.group
        self._process = context.new_process()
        self._consumer = clients.share_consumer(str(self._process), membership)

    async def acquire(self) -> list[SharedRecord]:
        """Poll once; what it is given must be acknowledged before the next time."""
        op = self._shares.invoke_acquire(self._process, self._group)
        given, error = await self._consumer.acquire(_POLL_S)
        self._shares.complete_acquire(op, given, error)
        self.is_usable &= error is None
        for record in (one.record for one in given):
            place = TopicPartition(record.topic, record.partition)
            self.reached[place] = max(self.reached.get(place, 0), record.offset + 1)
        return given

    async def acknowledge(self, given: Sequence[SharedRecord], says: Says) -> None:
        """Acknowledge what it was given, and wait for the answers."""
        said = [_acknowledging(one.record, says(one)) for one in given]
        op = self._shares.invoke_acknowledge(self._process, self._group, said)
        answers = await self._consumer.acknowledge(said, _COMMIT_S)
        self._shares.complete_acknowledge(op, answers)
        self.is_usable &= all(answer.kind == "ok" for answer in answers)

    async def close(self) -> None:
        """Leave the group, and give back what is not acknowledged."""
        await self._consumer.close()


class Drain:
    """Gives one consumer after the other all that a share group is not done with, until no more comes.

    A record that a consumer of before holds comes when its lock has ended. That the consumer to which nothing more
    comes is given records of a partition at all is shown by one that was sent to it since the drain began.

    Args:
        context: of the run.
        clients: make the consumers.
        shares: takes their rows.
        membership: how they take part.
        silence_s: for how long nothing may come in the end: longer than a consumer may hold a record.

    Attributes:
        is_over: whether it has come to its end.
    """

    def __init__(
        self, context: ClientContext, clients: SharingClients, shares: Shares, membership: ShareMembership,
        silence_s: float,
    ) -> None:  # fmt: skip
        self.is_over = False
        self._context = context
        self._clients = clients
        self._shares = shares
        self._membership = membership
        self._silence_ns = round(silence_s * 1e9)

    async def run(self, is_new: Callable[[int], bool]) -> None:
        """Drain the group, until the clients stop at the latest.

        ``is_new``: whether the record of a value was sent since the drain began. Every partition is sent one now and
        then, so that every consumer is given some; they do not count as what comes.
        """
        partitions = sorted(self._context.partitions)
        op = self._shares.invoke_drain(self._context.new_process(), self._membership.group, partitions)
        while not self._clients.stopping and not self.is_over:
            life = ShareLife(self._context, self._clients, self._shares, self._membership)
            shown: set[TopicPartition] = set()
            quiet_ns = self._clients.monotonic_ns()
            while life.is_usable and not self._clients.stopping and not self.is_over:
                given = await life.acquire()
                if given:
                    await life.acknowledge(given, lambda _: "accept")
                new = [one for one in given if one.record.value is not None and is_new(one.record.value)]
                if len(new) < len(given) or not shown.issuperset(partitions):
                    quiet_ns = self._clients.monotonic_ns()
                shown.update(TopicPartition(one.record.topic, one.record.partition) for one in new)
                is_quiet = self._clients.monotonic_ns() - quiet_ns >= self._silence_ns
                self.is_over = is_quiet and shown.issuperset(partitions)
            await life.close()
        drained = frozenset(partitions) if self.is_over else frozenset()
        self._shares.complete_drain(op, drained)


def _acknowledging(record: PolledRecord, acknowledgement: Acknowledgement) -> Acknowledging:
    return Acknowledging(record.topic, record.partition, record.offset, record.value, acknowledgement)
