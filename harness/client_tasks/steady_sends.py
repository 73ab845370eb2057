"""Background producers that send records one at a time, at a steady rate: part of several workloads.

A *process* is one client and has at most one operation under way. A producer whose operation ended with ``info``
may still have a record under way somewhere, so it ends there: a new client goes on under a new process number,
and no number is ever used twice.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, Literal, Self

from pydantic import Field

from harness.client_ports import NUMBERED, PLAIN, ClientContext, Clients
from harness.client_tasks.sending_process import SendingProcesses
from harness.model import TopicPartition
from harness.orders import ALL_ACKS
from harness.steps import Seconds
from harness.workload import WorkloadParameters

_AFTER_INFO_S = 0.05
_NS_PER_S = 1_000_000_000


class SteadySendsParameters(WorkloadParameters):
    """What a scenario may write about the producers.

    Attributes:
        producers: background producers.
        rate: background records per second of all producers together; 0: only what a schedule sends.
        delivery_timeout_s: how long a background producer waits for an answer.
        acks: what background producers ask for, dealt out to them in turn.
        idempotent: whether background producers with acks=all number their records (KIP-98) and send them again until
            they are answered; generations and releases before 0.11 do not know that, and there they send once only.
    """

    producers: int = Field(default=4, ge=1, le=64)
    rate: float = Field(default=0.0, ge=0, le=100_000)
    delivery_timeout_s: Seconds = Field(default=2.0, gt=0)
    acks: tuple[Literal["all", 0, 1], ...] = Field(default=("all",), min_length=1)
    idempotent: bool = False

    def acks_of(self, producer: int) -> int:
        """What the background producer of that number, from 0, asks for: -1 (all), 1 or 0."""
        written = self.acks[producer % len(self.acks)]
        return ALL_ACKS if written == "all" else written

    def numbers(self, acks: int) -> bool:
        """Whether a background producer with these acks numbers its records."""
        return self.idempotent and acks == ALL_ACKS

    @property
    def has_background_load(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return self.rate > 0

    @property
    def answered_within_s(self) -> float:
        """See :class:`harness.workload.WorkloadParameters`."""
        return self.delivery_timeout_s

    @property
    def numbers_records(self) -> bool:
        """See :class:`harness.workload.WorkloadParameters`."""
        return self.idempotent

    @property
    def asked_acks(self) -> frozenset[int]:
        """See :class:`harness.workload.WorkloadParameters`."""
        return frozenset(map(self.acks_of, range(self.producers)))

    def without_numbers(self) -> Self:
        """See :class:`harness.workload.WorkloadParameters`."""
        return self.model_copy(update={"idempotent": False})


class SteadySends:
    """The producers of one run.

    Args:
        parameters: of the workload.
        context: of the run.
        clients: make the producers.
        processes: makes the processes of one producer, which draw its values.
        partitions: to which they send; None: to all.
    """

    def __init__(
        self,
        parameters: SteadySendsParameters,
        context: ClientContext,
        clients: Clients,
        processes: Callable[[ClientContext], SendingProcesses] = SendingProcesses,
        partitions: Sequence[TopicPartition] | None = None,
    ) -> None:
        self._parameters = parameters
        self._context = context
        self._clients = clients
        self._partitions = sorted(context.partitions if partitions is None else partitions)
        self._processes = processes

    def works(self) -> Iterator[Coroutine[Any, Any, None]]:
        """What each producer does."""
        if self._parameters.rate:
            yield from map(self._produce, range(self._parameters.producers))

    async def _produce(self, number: int) -> None:
        """Send at the given pace as one process after the other, each until an answer is ``info``."""
        clients, ours = self._clients, self._parameters
        drawn = random.Random(f"{self._context.seed}:producer:{number}")
        interval_ns = round(ours.producers / ours.rate * _NS_PER_S)
        due_ns = clients.monotonic_ns() + int(drawn.random() * interval_ns)
        acks = ours.acks_of(number)
        manner = NUMBERED if ours.numbers(acks) else PLAIN
        while not clients.stopping:
            process = self._processes(self._context)
            producer = clients.producer(str(process.first), acks, ours.delivery_timeout_s, manner)
            try:
                while not clients.stopping and process.are_usable:
                    await clients.sleep(max(0, due_ns - clients.monotonic_ns()) / _NS_PER_S)
                    if not clients.stopping:
                        partition = drawn.choice(self._partitions)
                        await process.send(producer, partition, [ours.size], acks, clients.wall_ms())
                    due_ns = max(due_ns + interval_ns, clients.monotonic_ns() - interval_ns)
            finally:
                producer.close()
            due_ns = max(due_ns, clients.monotonic_ns() + round(_AFTER_INFO_S * _NS_PER_S))
