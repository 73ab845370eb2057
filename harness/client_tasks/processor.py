"""A processor: it reads in a group, sends a record for each one that it is given, and commits both in one transaction.

What it sends and the offsets behind what it was given take effect together, or not at all (KIP-98, KIP-447), so that
the output holds every record of the input once, whatever becomes of processors and brokers.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from harness.client_ports import (
    ABORTED,
    ClientContext,
    ClientProcess,
    Clients,
    CommittedOffset,
    Transacted,
    TransactionalClients,
    TransactionalProducer,
)
from harness.client_tasks.group_life import GroupLife
from harness.client_tasks.sending_process import TransactingProcess
from harness.history.recorder import PolledRecord
from harness.identity import KEYS
from harness.membership import Membership
from harness.model import TopicPartition

_LEFT_OPEN, _KILLED = "LEFT_OPEN", "KILLED"


Moment = Literal["results", "offsets", "commit"]
MOMENTS: tuple[Moment, ...] = get_args(Moment)


class Kill(NamedTuple):
    """A processor is killed in a transaction.

    Attributes:
        process: that of its clients.
        moment: when it has sent its ``results`` alone; when it has committed its ``offsets``, too; or in the midst of
            the ``commit`` of the transaction, ``after_s`` after it has begun, or when it ends before that.
        silently: see :meth:`harness.client_ports.ClientProcess.kill`.
    """

    process: ClientProcess
    moment: Moment
    silently: bool
    after_s: float = 0


Fate = Literal["commit", "abort", "abandon"] | Kill
"""What becomes of a transaction: its processor commits or aborts it, ends before it has done either, or is killed."""


class Pause(NamedTuple):
    """How long a processor stands still in a transaction: before it has committed its offsets in it, and after."""

    before_s: float = 0
    after_s: float = 0


NO_PAUSE = Pause()


@dataclass(frozen=True)
class Processing:
    """What all processors of a group do.

    Attributes:
        membership: in the group.
        outputs: the partitions of the output; the key of a record decides in which of them its result is.
        per_partition: whether a processor has a transactional id for each partition that it is given, by which it
            fences its predecessors off (as Kafka Streams did before KIP-447); else one of its own, and the group's
            coordinator fences members off.
        timeout_s: how long each part of a transaction may take.
        size: to how many bytes the text of a result is padded.
        made: takes by value of a result the value that it was made of.
    """

    membership: Membership
    outputs: Sequence[TopicPartition]
    per_partition: bool
    timeout_s: float
    size: int
    made: MutableMapping[int, int]

    def output_of(self, value: int) -> TopicPartition:
        """Where the result of a record is."""
        return self.outputs[value % KEYS % len(self.outputs)]


class Processor:
    """One processor, from its first poll to its end.

    Args:
        context: of the run.
        clients: make the member and the producers; a process of their own where it is to be killed.
        processing: what it does.
        number: which of the group's processors it is.
        numbered: whether its transactions are of version 2, see
            :meth:`harness.client_ports.TransactionalClients.transactional_producer`.

    Attributes:
        ready: the partitions that it has, and of whose transactional ids it is the owner.
        is_dead: whether it was killed.
    """

    def __init__(
        self, context: ClientContext, clients: Clients, processing: Processing, number: int, *, numbered: bool
    ) -> None:
        self._context = context
        self._clients = clients
        self._processing = processing
        self._number = number
        self._numbered = numbered
        self.is_dead = False
        self._producers: dict[str, TransactionalProducer] = {}
        self._life = GroupLife(context, clients, processing.membership, "read_committed", prepare=self._take_over)

    @property
    def ready(self) -> set[TopicPartition]:
        """See the class."""
        return {name for name in self._life.has if self._lane(name) in self._producers}

    async def poll(self) -> str | None:
        """Wait for records; returns the name of the error that ends the processor."""
        return await self._life.poll()

    async def process(self, fate: Fate = "commit", pause: Pause = NO_PAUSE) -> bool:
        """Process what the last poll has given it; returns whether the processor can go on.

        Args:
            fate: what becomes of the first transaction; one that is aborted is tried again.
            pause: when it stands still in the first transaction.
        """
        lanes: dict[str, list[PolledRecord]] = {}
        for record in self._life.polled:
            name = TopicPartition(record.topic, record.partition)
            if name in self.ready and record.value is not None:
                lanes.setdefault(self._lane(name), []).append(record)
        for lane, records in lanes.items():
            if not await self._process(lane, records, fate, pause) or self.is_dead:
                return False
            fate, pause = "commit", NO_PAUSE
        return True

    async def close(self) -> None:
        """Leave the group, and leave open whatever transaction is; a processor that was killed does neither."""
        if self.is_dead:
            return
        for producer in self._producers.values():
            producer.close()
        await self._life.close()

    async def _process(self, lane: str, records: Sequence[PolledRecord], fate: Fate, pause: Pause) -> bool:
        ended = await self._transact(self._producers[lane], records, fate, pause)
        if ended.error == ABORTED:  # after any other end the producer may be fenced off
            ended = await self._transact(self._producers[lane], records, "commit", NO_PAUSE)
        return ended.kind == "ok"

    async def _transact(
        self, producer: TransactionalProducer, records: Sequence[PolledRecord], fate: Fate, pause: Pause
    ) -> Transacted:
        """Run one transaction."""
        context, ours = self._context, self._processing
        process = TransactingProcess(context.recorder, context.new_process(), context.carried)
        ended: Transacted | None = None
        for place, values in self._results(records).items():
            if ended is None:
                batch = process.begin(place, len(values), ours.size, self._clients.wall_ms())
                ours.made.update(zip(process.values[-len(values) :], values, strict=True))
                ended = await producer.send(place, batch)
        if ended is None:
            await self._stand_still(pause.before_s)
            if isinstance(fate, Kill) and fate.moment == "results":
                ended = self._killed(producer, fate)
            else:
                ended = await self._commit(producer, records, fate, pause)
        process.end(ended)
        return ended

    async def _commit(
        self, producer: TransactionalProducer, records: Sequence[PolledRecord], fate: Fate, pause: Pause
    ) -> Transacted:
        """Commit the offsets in the transaction, and end it."""
        ended = await self._life.commit_in(producer, _behind(records))
        if ended is None:
            await self._stand_still(pause.after_s)
            ended = await self._end(producer, fate)
        self._life.ended_in(ended)
        return ended

    async def _end(self, producer: TransactionalProducer, fate: Fate) -> Transacted:
        match fate:
            case "abandon":  # no client ever asks to commit it
                return Transacted("fail", list(producer.offsets), _LEFT_OPEN)
            case Kill(moment="offsets"):
                return self._killed(producer, fate)
            case Kill():
                self._clients.begin(self._kill_later(fate))
                ended = await producer.end(commits=True)
                self._kill(fate)
                return ended._replace(error=_KILLED) if ended.kind == "info" else ended
        return await producer.end(commits=fate == "commit")

    def _killed(self, producer: TransactionalProducer, kill: Kill) -> Transacted:
        """Kill the processor before any client has asked to commit the transaction."""
        offsets = list(producer.offsets)
        self._kill(kill)
        return Transacted("fail", offsets, _KILLED)

    async def _kill_later(self, kill: Kill) -> None:
        await self._clients.sleep(kill.after_s)
        kill.process.kill(silently=kill.silently)

    def _kill(self, kill: Kill) -> None:
        kill.process.kill(silently=kill.silently)
        self.is_dead = True
        self._life.crash()

    async def _stand_still(self, seconds: float) -> None:
        if seconds:
            await self._life.stand_still(seconds)

    def _results(self, records: Sequence[PolledRecord]) -> Mapping[TopicPartition, list[int]]:
        """By partition of the output, of which values it gets results."""
        found: dict[TopicPartition, list[int]] = {}
        for record in records:
            if record.value is not None:
                found.setdefault(self._processing.output_of(record.value), []).append(record.value)
        return found

    async def _take_over(self, names: Sequence[TopicPartition]) -> bool:
        """Fence the predecessors off who may have partitions in open transactions; returns whether that is done."""
        assert isinstance(self._clients, TransactionalClients), "the plan lets no workload transact on these clients"
        for lane in dict.fromkeys(map(self._lane, names)):
            if lane in self._producers and not self._processing.per_partition:
                continue
            if lane in self._producers:
                self._producers.pop(lane).close()
            timeout_s = self._processing.timeout_s
            producer = self._clients.transactional_producer(lane, timeout_s, numbered=self._numbered)
            if await producer.initialise() is not None:
                producer.close()
                return False
            self._producers[lane] = producer
        return True

    def _lane(self, name: TopicPartition) -> str:
        """Whose transactions have the records of a partition."""
        ours = self._processing
        return f"{ours.membership.group}-{name if ours.per_partition else self._number}"


def _behind(records: Sequence[PolledRecord]) -> Mapping[TopicPartition, CommittedOffset]:
    """What to commit once ``records`` are processed."""
    return {TopicPartition(one.topic, one.partition): CommittedOffset.after(one) for one in records}
