"""pipelined_sends: producers with many records in flight, in batches, and consumers that follow every partition.

A producer hands over *bursts*, each of records for one partition, and does not wait for one before it hands over the
next, up to a limit. librdkafka makes batches of them and requests of the batches, several of them under way at once.
Where the producer numbers its records, Kafka promises that those of one burst are stored in the order in which they
were handed over, so they are one operation; of other producers each record is an operation of its own.

Promised: as under unique_sends; and the acknowledged records of a burst whose producer numbers them are stored in the
order in which it has handed them over, whatever it has sent again.

Judged: as under unique_sends, and the order of the acknowledged records of each numbered burst.

Missed: the order of records without an answer, and of those of producers that do not number them; whether the client or
the leader made a second copy; what takes a group or a transaction.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from harness.client_ports import ClientContext, Compression, Manner, Producer
from harness.client_tasks.polling import Tails
from harness.client_tasks.sending_process import SendingProcesses
from harness.model import Offset, TopicPartition
from harness.orders import ALL_ACKS
from harness.steps import Seconds
from harness.workload import Circumstances, Workload, WorkloadKind, WorkloadParameters, refuse_unused

_AFTER_INFO_S = 0.05
_NS_PER_S = 1_000_000_000
_NUMBERED_RETRIES = 1000


class PipelinedSendsParameters(WorkloadParameters):
    """What a scenario may write about the workload.

    Attributes:
        producers: background producers.
        consumers: tailing consumers; the partitions are dealt out among them.
        rate: records per second of all producers together, or ``max``: as many as there is room for.
        burst: how many records a producer hands over at a time, all of them to one partition.
        bursts: how many bursts of a producer may be under way at once.
        batch: the most records in one batch.
        linger_ms: how long a batch that is not full waits for more records.
        in_flight: how many requests of a producer may be under way at once on a connection.
        compression: of the batches, dealt out to the producers in turn; a codec that a cluster does not know is left
            out by the client.
        acks: what the producers ask for, dealt out to them in turn.
        idempotent: whether producers with acks=all number their records (KIP-98) and send them again until they are
            answered; generations and releases before 0.11 do not know that.
        retries: how often other producers send a request again that was refused, or not answered in time; with acks=all
            the cluster may then store a record twice, which is no anomaly.
        headers: whether records have headers.
        size_up_to: where it is greater than ``size``: texts are padded to a size drawn from between the two.
        delivery_timeout_s: how long a producer waits for an answer.
    """

    producers: int = Field(default=4, ge=1, le=64)
    consumers: int = Field(default=2, ge=0, le=64)
    rate: Annotated[float, Field(gt=0, le=1_000_000)] | Literal["max"] = "max"
    burst: int = Field(default=500, ge=1, le=10_000)
    bursts: int = Field(default=2, ge=1, le=16)
    batch: int = Field(default=100, ge=1, le=10_000)
    linger_ms: int = Field(default=5, ge=0, le=10_000)
    in_flight: int = Field(default=5, ge=1, le=5)
    compression: tuple[Compression, ...] = Field(default=("none",), min_length=1)
    acks: tuple[Literal["all", 0, 1], ...] = Field(default=("all",), min_length=1)
    idempotent: bool = True
    retries: int = Field(default=0, ge=0, le=1000)
    headers: bool = True
    size_up_to: int = Field(default=0, ge=0, le=1_000_000)
    delivery_timeout_s: Seconds = Field(default=5.0, gt=0)

    @model_validator(mode="after")
    def _has_sizes(self) -> Self:
        if self.size_up_to and self.size_up_to < self.size:
            raise ValueError(f"size_up_to is {self.size_up_to}, less than size, {self.size}")
        return self

    def refuse(self, found: Circumstances) -> None:
        """See :class:`harness.workload.WorkloadParameters`."""
        codecs = {self.manner_of(number).compression for number in range(self.producers)}
        refuse_unused(self, {"compression": codecs}, f"{self.producers} producer(s)")

    def acks_of(self, producer: int) -> int:
        """What the producer of that number, from 0, asks for: -1 (all), 1 or 0."""
        written = self.acks[producer % len(self.acks)]
        return ALL_ACKS if written == "all" else written

    def numbers(self, producer: int) -> bool:
        """Whether the producer of that number, from 0, numbers its records."""
        return self.idempotent and self.acks_of(producer) == ALL_ACKS

    def manner_of(self, producer: int) -> Manner:
        """How the producer of that number, from 0, sends."""
        return Manner(
            retries=_NUMBERED_RETRIES if self.numbers(producer) else self.retries,
            idempotent=self.numbers(producer),
            batch=self.batch,
            linger_s=self.linger_ms / 1000,
            in_flight=self.in_flight,
            compression=self.compression[producer % len(self.compression)],
        )

    @property
    def has_background_load(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return True

    @property
    def answered_within_s(self) -> float:
        """See :class:`harness.workload.WorkloadParameters`."""
        return self.delivery_timeout_s

    @property
    def numbers_records(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return self.idempotent

    @property
    def acknowledges_in_turn(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return not self.idempotent or self.in_flight == 1

    @property
    def asked_acks(self) -> frozenset[int]:
        """See :class:`harness.workload.WorkloadParameters`."""
        return frozenset(map(self.acks_of, range(self.producers)))

    @property
    def appends_once(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        if self.retries and not all(map(self.numbers, range(self.producers))):
            return False
        return super().appends_once

    @property
    def largest_size(self) -> int:
        """See :class:`harness.workload.WorkloadParameters`."""
        return max(self.size, self.size_up_to)

    def without_numbers(self) -> Self:
        """See :class:`harness.workload.WorkloadParameters`."""
        return self.model_copy(update={"idempotent": False})


class _Lane(NamedTuple):
    """Bursts of one producer, one after the other; it has as many lanes as bursts may be under way."""

    number: int
    place: int
    producer: Producer
    sending: SendingProcesses
    drawn: random.Random


class PipelinedSends(Workload):
    """Hands over bursts of records and reads what comes of them."""

    def __init__(self, parameters: PipelinedSendsParameters, context: ClientContext) -> None:
        super().__init__(context)
        self._parameters = parameters
        self._partitions = sorted(context.partitions)
        self._tails = Tails(context, parameters.consumers, parameters.isolation)
        self._producers: list[Producer] = []
        self._under_way: dict[int, dict[int, TopicPartition | None]] = {
            number: dict.fromkeys(range(parameters.bursts)) for number in range(parameters.producers)
        }

    def start(self) -> None:
        """See :class:`harness.workload.Workload`."""
        ours = self._parameters
        for work in self._tails.works(self.clients):
            self.begin(work)
        for number in range(ours.producers):
            self.begin(self._produce(number))

    def polled(self) -> Mapping[TopicPartition, Offset]:
        """See :class:`harness.workload.Workload`."""
        return self._tails.polled()

    def stop(self) -> None:
        """See :class:`harness.workload.Workload`."""
        super().stop()
        while self._producers:
            self._producers.pop().close()

    async def _produce(self, number: int) -> None:
        """Open a producer, and begin to hand over bursts with it, in as many lanes as may be under way."""
        ours = self._parameters
        carried = self.context.carried
        context = replace(self.context, carried=carried._replace(headers=carried.headers and ours.headers))
        acks, manner = ours.acks_of(number), ours.manner_of(number)
        lanes = [SendingProcesses(context, in_order=manner.idempotent) for _ in range(ours.bursts)]
        producer = self.clients.producer(str(lanes[0].first), acks, ours.delivery_timeout_s, manner)
        self._producers.append(producer)
        for place, sending in enumerate(lanes):
            drawn = random.Random(f"{context.seed}:pipelined:{number}:{place}")
            self.begin(self._send(_Lane(number, place, producer, sending, drawn)))

    async def _send(self, lane: _Lane) -> None:
        """Hand over one burst after the other, each when the one before it has been answered."""
        clients, ours = self.clients, self._parameters
        acks = ours.acks_of(lane.number)
        due = self._due_ns(lane)
        while not clients.stopping:
            await clients.sleep(max(0, next(due) - clients.monotonic_ns()) / _NS_PER_S)
            if clients.stopping:
                return
            partition = self._under_way[lane.number][lane.place] = self._choose(lane)
            await lane.sending.send(lane.producer, partition, self._sizes(lane.drawn), acks, clients.wall_ms())
            self._under_way[lane.number][lane.place] = None
            if not lane.sending.are_usable:
                await clients.sleep(_AFTER_INFO_S)

    def _choose(self, lane: _Lane) -> TopicPartition:
        """One of the partitions with the fewest bursts of the producer under way: one without a leader blocks few."""
        busy = Counter(self._under_way[lane.number].values())
        least = min(busy[name] for name in self._partitions)
        return lane.drawn.choice([name for name in self._partitions if busy[name] == least])

    def _due_ns(self, lane: _Lane) -> Iterator[int]:
        """When each burst of a lane is due; one that is late moves those after it."""
        ours, now = self._parameters, self.clients.monotonic_ns
        if ours.rate == "max":
            yield from itertools.repeat(0)
            return
        interval_ns = round(ours.burst * ours.bursts * ours.producers / ours.rate * _NS_PER_S)
        due_ns = now() + int(lane.drawn.random() * interval_ns)
        while True:
            yield due_ns
            due_ns = max(due_ns + interval_ns, now() - interval_ns)

    def _sizes(self, drawn: random.Random) -> list[int]:
        ours = self._parameters
        if ours.size_up_to > ours.size:
            return [drawn.randint(ours.size, ours.size_up_to) for _ in range(ours.burst)]
        return [ours.size] * ours.burst


KIND = WorkloadKind(
    "pipelined_sends",
    PipelinedSendsParameters,
    PipelinedSends,
    {"rate": 200, "producers": 2, "consumers": 1, "burst": 10, "batch": 4, "compression": ["none", "lz4"]},
)
