"""consume_transform_produce: processors read an input in a group, and put out a result of each record exactly once.

The input is filled at a steady rate. A processor commits its results, in a topic of the workload, and the offsets
behind what it has read in one transaction. Some transactions it aborts; some it leaves open as it leaves the group; in
some it is killed, and says nothing to the cluster any more; and before some are committed it stands still, until others
may have taken its partitions over.

Promised: as under unique_sends; the output holds a result of every record of the input, once, in the partition of its
key and in the order of the records of that key; consumers of committed records see each transaction as a whole or not
at all, and the group's offsets move with it.

Judged: as under unique_sends, of the output as well; the output against the input, and against what the group has
committed in the end; each transaction, its results, its markers and its offsets; what the members of the group are
given, as under consumer_groups.

Missed: processors of librdkafka and kafka-python that are killed: their clients live in the harness's own process, and
such processors end in the other ways alone; Kafka's own client has a Java process for each processor that is to be
killed, and in virtual time half of those leave their connections open, as a machine does that loses power. A
transaction that its coordinator aborts too late, or, on real Kafka, never: the run is inconclusive then. What
consumer_groups misses, too; a group of the consumer protocol. In virtual time the processors' clients are the
simulation's own, not librdkafka.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Self

from pydantic import Field

from harness.client_ports import BEGINNING, Bounds, ClientContext, Clients, Isolation
from harness.client_tasks.deadline import Deadline
from harness.client_tasks.polling import poll, tail
from harness.client_tasks.processor import MOMENTS, NO_PAUSE, Fate, Kill, Pause, Processing, Processor
from harness.client_tasks.program_input import InputProcesses
from harness.client_tasks.steady_sends import SteadySends, SteadySendsParameters
from harness.errors import UsageError
from harness.history.recorder import Output, PolledRecord
from harness.membership import Assignor, Membership
from harness.model import Offset, TopicPartition
from harness.steps import Seconds
from harness.target import TopicSpec
from harness.workload import Circumstances, Waits, Workload, WorkloadKind, refuse_kills

_GROUP = "processors"
_AFTER_ERROR_S = 0.05
_ASK_TIMEOUT_S = 1.0
_NS_PER_S = 1_000_000_000
_KILLED = 1 / 3
_COMMITS_FOR_S = 0.01
"""About how long a commit takes in a cluster where nothing goes wrong."""


class ConsumeTransformProduceParameters(SteadySendsParameters):
    """What a scenario may write about the workload.

    Attributes:
        keys: how many keys the records of each partition of the input have.
        output_topic: the name of the topic of the output; it is created where the scenario has no such topic.
        processors: members of the group.
        assignor: how they share the partitions; in virtual time always ``range``.
        transactional_ids: what fences a processor off whose partitions another one has: a transactional id for each
            ``partition``, which every generation knows; or, with one for each ``member``, the group's coordinator
            (KIP-447, Kafka 2.5).
        stays_s: how long a processor stays on the average, before it ends: by leaving the group, by leaving it in the
            middle of a transaction, which stays open, or by being killed. 0: it stays.
        killed: the share of processors that end by being killed in a transaction: before its offsets, behind them, or
            while it is committed. They leave neither the group nor the transaction. None: a third, and with
            clients that run in the harness's own process, as librdkafka, 0.
        away_s: how long a processor that has ended stays away on the average.
        aborted: the share of transactions that are aborted, and tried again.
        late: the share of transactions in which a processor stands still, before or after it commits its offsets, for
            up to twice ``poll_timeout_s``.
        timeout_s: how long each part of a transaction may take, and after how long its coordinator aborts it. Where it
            is longer than twice ``poll_timeout_s``, a transaction outlives the membership of a processor that stands
            still.
        transaction_version_2: in virtual time, the share of processors whose transactions are of version 2 (KIP-890)
            where brokers offer that; a client library decides by itself.
        session_timeout_s: after how long without a heartbeat a coordinator removes a member.
        poll_timeout_s: after how long without a poll a member leaves by itself; not below ``session_timeout_s``.
        drain_s: how long the processors may take to finish when the faults are over.
    """

    rate: float = Field(default=50.0, gt=0, le=100_000)
    idempotent: bool = True
    isolation: Isolation = "read_committed"
    keys: int = Field(default=4, ge=1, le=64)
    output_topic: str = Field(default="output", pattern=r"^[a-zA-Z0-9._-]{1,200}$")
    processors: int = Field(default=3, ge=1, le=16)
    assignor: Assignor = "range"
    transactional_ids: Literal["partition", "member"] = "partition"
    stays_s: Seconds = Field(default=6.0, ge=0)
    killed: float | None = Field(default=None, ge=0, le=1)
    away_s: Seconds = Field(default=1.0, gt=0)
    aborted: float = Field(default=0.1, ge=0, le=1)
    late: float = Field(default=0.02, ge=0, le=1)
    timeout_s: Seconds = Field(default=6.0, ge=1)
    transaction_version_2: float = Field(default=0.5, ge=0, le=1)
    session_timeout_s: Seconds = Field(default=2.0, ge=0.5)
    poll_timeout_s: Seconds = Field(default=2.0, ge=0.5)
    drain_s: Seconds = Field(default=30.0, gt=0)

    @property
    def transacts(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return True

    @property
    def stands_alone(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`: other clients' records would be in its input."""
        return True

    @property
    def session_s(self) -> float:
        """See :class:`harness.workload.WorkloadParameters`."""
        return self.session_timeout_s

    @property
    def held_for_s(self) -> float:
        """See :class:`harness.workload.WorkloadParameters`."""
        return max(self.timeout_s, self.poll_timeout_s, self.session_timeout_s)

    @property
    def answered_within_s(self) -> float:
        """See :class:`harness.workload.WorkloadParameters`."""
        return max(self.delivery_timeout_s, self.timeout_s)

    @property
    def must_kill_clients(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return bool(self.killed)

    @property
    def guarantees(self) -> Mapping[str, bool | int]:
        """See :class:`harness.workload.WorkloadParameters`."""
        kept = {"members_kept_ms": round(self.session_timeout_s * 1000)}
        return kept | {"program_may_skip": False, "program_may_repeat": False, "program_may_reorder": False}

    def without_numbers(self) -> Self:
        """See :class:`harness.workload.WorkloadParameters`."""
        return self

    def with_prefix(self, prefix: str) -> Self:
        """See :class:`harness.workload.WorkloadParameters`."""
        return self.model_copy(update={"output_topic": f"{prefix}{self.output_topic}"})

    def own_topics(self, topics: Sequence[TopicSpec]) -> Sequence[TopicSpec]:
        """See :class:`harness.workload.WorkloadParameters`: the output, if the scenario has it not."""
        if any(topic.name == self.output_topic for topic in topics):
            return ()
        like, most = topics[0], max(topic.partitions for topic in topics)
        assignment = None if like.assignment is None else like.assignment[:1] * most
        return (TopicSpec(self.output_topic, most, like.replication_factor, assignment, like.configs),)

    @property
    def sends_to_own_topics(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return True

    def refuse(self, found: Circumstances) -> None:
        """See :class:`harness.workload.WorkloadParameters`."""
        if found.is_sent_to:
            raise UsageError(
                "workload consume_transform_produce fills its input by itself, and the schedule sends to it, too.",
                "Leave the schedule's sends out.",
            )
        refuse_kills("processors", self.killed, self.stays_s, self.client, found)
        if self.transactional_ids == "member" and not found.features.fences_members:
            raise UsageError(
                f"workload.transactional_ids=member needs coordinators that fence members off (KIP-447, Kafka 2.5), "
                f"and those of target {found.target!r} do not.",
                "Take transactional_ids=partition, or a generation or release from 2.5 on.",
            )
        if all(topic.name == self.output_topic for topic in found.topics):
            raise UsageError(
                f"workload consume_transform_produce puts its output into {self.output_topic!r}, the only topic.",
                "Have another topic, which is its input, or name another one: workload.output_topic.",
            )


class ConsumeTransformProduce(Workload):
    """Fills the input, runs the processors, and reads what they put out."""

    def __init__(self, parameters: ConsumeTransformProduceParameters, context: ClientContext) -> None:
        super().__init__(context)
        self._parameters = parameters
        every = sorted(context.partitions)
        self._output = [name for name in every if name.topic == parameters.output_topic]
        self._input = [name for name in every if name.topic != parameters.output_topic]
        self._made: dict[int, int] = {}
        self._seen: set[tuple[TopicPartition, Offset, int | None]] = set()
        self._polled: dict[TopicPartition, Offset] = dict.fromkeys(every, 0)
        membership = Membership(
            _GROUP, self._input, parameters.assignor, None, parameters.session_timeout_s,
            max(parameters.poll_timeout_s, parameters.session_timeout_s),
        )  # fmt: skip
        self._processing = Processing(
            membership, self._output, parameters.transactional_ids == "partition", parameters.timeout_s,
            parameters.size, self._made,
        )  # fmt: skip
        filled = partial(InputProcesses, keys=parameters.keys)
        self._sends = SteadySends(parameters, context, self.clients, filled, self._input)
        self._versions = random.Random(f"{context.seed}:transaction versions")

    def start(self) -> None:
        """See :class:`harness.workload.Workload`."""
        for work in (*self._sends.works(), *self._works(), self._follow()):
            self.begin(work)

    def polled(self) -> Mapping[TopicPartition, Offset]:
        """See :class:`harness.workload.Workload`."""
        return dict(self._polled)

    def finish(self, report: Callable[[str], None]) -> None:
        """See :class:`harness.workload.Workload`: process the rest of the input, and read the output."""
        ours = self._parameters
        report(f"letting the processors finish, for {ours.drain_s:g} s at the most")
        self.clients = self.context.new_clients()
        waits = set(self._input)
        self.begin(self._drain(waits))
        self.clients.wait_until(lambda: not waits, ours.drain_s)
        self.stop()
        self.clients = self.context.new_clients()
        reading = self.clients.begin(self._conclude())
        self.clients.wait_until(lambda: reading.result() is not None, 2 * ours.drain_s)
        self.stop()

    def take_over(self) -> Waits:
        """See :class:`harness.workload.Workload`: a new processor takes all partitions and transactional ids over."""
        self.clients = self.context.new_clients()
        waits = set(self._input)
        self.begin(self._take_all(waits))
        return lambda: {f"{_GROUP} has given it to no new processor": set(waits)} if waits else {}

    # ------------------------------------------------------------------------------------ the processors

    def _works(self) -> Iterator[Coroutine[Any, Any, None]]:
        yield from map(self._take_part, range(self._parameters.processors))

    async def _take_part(self, number: int) -> None:
        """Be one processor after the other, until the clients stop."""
        clients, ours = self.clients, self._parameters
        drawn = random.Random(f"{self.context.seed}:processor:{number}")
        end = self._drawn_end(drawn)
        while not clients.stopping:
            processor = self._processor(end.process if isinstance(end, Kill) else clients, number)
            has_failed = await self._live(processor, end, drawn)
            await processor.close()
            await clients.sleep(_AFTER_ERROR_S if has_failed else drawn.expovariate(1 / ours.away_s))
            if not has_failed and not clients.stopping:  # else its end is still to come
                end = self._drawn_end(drawn)
        if isinstance(end, Kill):
            end.process.kill(silently=False)

    def _processor(self, clients: Clients, number: int) -> Processor:
        numbered = self._versions.random() < self._parameters.transaction_version_2
        return Processor(self.context, clients, self._processing, number, numbered=numbered)

    def _drawn_end(self, drawn: random.Random) -> Fate | None:
        """How a processor is to end: by leaving the group (None), or in the middle of a transaction."""
        killed = _KILLED if self._parameters.killed is None else self._parameters.killed
        if drawn.random() < killed and (process := self.clients.process()) is not None:
            return Kill(process, drawn.choice(MOMENTS), drawn.random() < 1 / 2, drawn.uniform(0, _COMMITS_FOR_S))
        return None if drawn.random() < 1 / 2 else "abandon"

    async def _live(self, processor: Processor, end: Fate | None, drawn: random.Random) -> bool:
        """Process what comes until the processor ends; returns whether an error has ended it."""
        clients, ours = self.clients, self._parameters
        stays_ns = drawn.expovariate(1 / ours.stays_s) * _NS_PER_S if ours.stays_s else float("inf")
        leaves_ns = clients.monotonic_ns() + stays_ns
        while not clients.stopping:
            if await processor.poll() is not None:
                return True
            is_over = clients.monotonic_ns() >= leaves_ns
            if is_over and end is None:
                return False
            fate: Fate = "abort" if drawn.random() < ours.aborted else "commit"
            pause = NO_PAUSE
            if drawn.random() < ours.late:
                still_s, is_early = drawn.uniform(0, 2 * ours.poll_timeout_s), drawn.random() < 1 / 2
                pause = Pause(before_s=still_s) if is_early else Pause(after_s=still_s)
            if not await processor.process(end if is_over and end is not None else fate, pause):
                return not (is_over and (end == "abandon" or processor.is_dead))
        return False

    async def _drain(self, waits: set[TopicPartition]) -> None:
        """Be a processor until the group has committed to the end of the partitions of the input for which it waits."""
        clients = self.clients
        while waits and not clients.stopping:
            processor, is_well = self._processor(clients, 0), True
            while waits and is_well and not clients.stopping:
                is_well = await processor.poll() is None and await processor.process()
                waits &= await self._unprocessed(clients)
            await processor.close()
            await clients.sleep(_AFTER_ERROR_S)

    async def _unprocessed(self, clients: Clients) -> set[TopicPartition]:
        """The partitions of the input to whose ends the group has not committed, as far as is known."""
        committed, bounds = await self._committed(clients), await _bounds(clients, self._input)
        if isinstance(committed, str) or bounds is None:
            return set(self._input)
        return {name for name, one in bounds.items() if committed.get(name, one.start_offset) < one.end_offset}

    async def _take_all(self, waits: set[TopicPartition]) -> None:
        """Be one processor after the other, until it is ready to process every partition for which it waits."""
        clients = self.clients
        while waits and not clients.stopping:
            processor, error = self._processor(clients, 0), None
            while waits and error is None and not clients.stopping:
                error = await processor.poll()
                waits.difference_update(processor.ready)
            await processor.close()
            await clients.sleep(_AFTER_ERROR_S)

    # ------------------------------------------------------------------------------------ the output

    async def _follow(self) -> None:
        """Read the output while it is written, so that what the cluster loses later is known."""
        process = self.context.new_process()

        def came(records: Sequence[PolledRecord], positions: Mapping[TopicPartition, Offset]) -> None:
            self._polled.update(positions)
            self.context.recorder.outputs(process, list(self._new(records)), final=False)

        await tail(self.context, self.clients, self._output, came, "read_committed")

    def _new(self, records: Sequence[PolledRecord]) -> Iterator[Output]:
        """What has not been read before; a new consumer may begin at the beginning."""
        for record in records:
            name = TopicPartition(record.topic, record.partition)
            if (key := (name, record.offset, record.value)) not in self._seen:
                self._seen.add(key)
                yield self._output_of(record)

    def _output_of(self, record: PolledRecord) -> Output:
        held = self._made.get(record.value) if record.value is not None and record.intact else None
        return Output(record.topic, record.partition, record.offset, held)

    async def _conclude(self) -> bool:
        """Ask up to where the group has come, and read the output to its end; records both."""
        clients, recorder = self.clients, self.context.recorder
        deadline = Deadline(clients, self._parameters.drain_s)
        op = recorder.invoke_reached(self.context.new_process(), _GROUP, self._input)
        reached = await self._committed(clients)
        while isinstance(reached, str) and deadline.left_s():
            await clients.sleep(_AFTER_ERROR_S)
            reached = await self._committed(clients)
        output = await self._read_output(clients, Deadline(clients, self._parameters.drain_s))
        if isinstance(output, str):
            recorder.complete_reached(op, {}, f"OUTPUT_UNREAD: {output}")
        else:
            recorder.outputs(self.context.new_process(), list(map(self._output_of, output)), final=True)
            known = {} if isinstance(reached, str) else reached
            recorder.complete_reached(op, known, reached if isinstance(reached, str) else None)
        return True

    async def _committed(self, clients: Clients) -> dict[TopicPartition, Offset] | str:
        group = clients.group(_GROUP)
        try:
            answer = await group.committed(self._input, _ASK_TIMEOUT_S)
        finally:
            group.close()
        return answer if isinstance(answer, str) else {name: one.offset for name, one in answer.items()}

    async def _read_output(self, clients: Clients, deadline: Deadline) -> list[PolledRecord] | str:
        """Everything in the output, from new consumers until one comes to the end; or why there is none."""
        error: str | None = None
        while deadline.left_s():
            process, bounds = self.context.new_process(), await _bounds(clients, self._output)
            starts = dict.fromkeys(self._output, BEGINNING)
            consumer = clients.consumer(str(process), starts, isolation="read_committed")
            records: list[PolledRecord] = []
            error = None
            try:
                while bounds is not None and error is None and deadline.left_s():
                    if all(_has_come_to(one, consumer.positions[name]) for name, one in bounds.items()):
                        return records
                    polled, error, _ = await poll(self.context.recorder, process, consumer, final=False)
                    records += polled
            finally:
                consumer.close()
            await clients.sleep(_AFTER_ERROR_S)
        return error or "_TIMED_OUT"


async def _bounds(clients: Clients, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Bounds] | None:
    """From where to where the partitions can be read once no transaction is open; None: a leader does not say."""
    found: dict[TopicPartition, Bounds] = {}
    for name in partitions:
        consumer = clients.consumer(f"bounds-of-{name}", {name: BEGINNING})
        try:
            bounds = await consumer.bounds(name, _ASK_TIMEOUT_S)
        finally:
            consumer.close()
        if bounds is None:
            return None
        found[name] = bounds
    return found


def _has_come_to(bounds: Bounds, position: Offset) -> bool:
    """Whether a consumer at ``position`` has read all that there was."""
    return bounds.end_offset <= (bounds.start_offset if position == BEGINNING else position)


KIND = WorkloadKind(
    "consume_transform_produce",
    ConsumeTransformProduceParameters,
    ConsumeTransformProduce,
    {"rate": 30, "producers": 2, "processors": 2, "timeout_s": 3, "session_timeout_s": 1, "poll_timeout_s": 1,
     "stays_s": 2},
)  # fmt: skip
