"""trickle: one producer that sends a few records a second by itself."""

from __future__ import annotations

import itertools
from typing import Self

from pydantic import Field

from harness.client_ports import NUMBERED, PLAIN, ClientContext
from harness.client_tasks.sending_process import SendingProcesses
from harness.orders import ALL_ACKS
from harness.workload import Workload, WorkloadKind, WorkloadParameters

_TIMEOUT_S = 1.0


class TrickleParameters(WorkloadParameters):
    """``per_second`` records, numbered where the cluster knows that."""

    per_second: int = Field(ge=1)
    numbered: bool = True

    @property
    def has_background_load(self) -> bool:
        """It sends by itself."""
        return True

    @property
    def answered_within_s(self) -> float:
        """A second."""
        return _TIMEOUT_S

    @property
    def numbers_records(self) -> bool:
        """Where the cluster knows that."""
        return self.numbered

    @property
    def asked_acks(self) -> frozenset[int]:
        """All."""
        return frozenset((ALL_ACKS,))

    def without_numbers(self) -> Self:
        """For clusters before 0.11."""
        return self.model_copy(update={"numbered": False})


class Trickle(Workload):
    """Sends to one partition after the other; a process whose record may still be under way ends."""

    def __init__(self, parameters: TrickleParameters, context: ClientContext) -> None:
        super().__init__(context)
        self._parameters = parameters

    def start(self) -> None:
        """Begin to send."""
        self.begin(self._send())

    async def _send(self) -> None:
        manner = NUMBERED if self._parameters.numbered else PLAIN
        partitions = itertools.cycle(self.context.partitions)
        while not self.clients.stopping:
            process = SendingProcesses(self.context)
            producer = self.clients.producer(str(process.first), ALL_ACKS, _TIMEOUT_S, manner)
            try:
                while not self.clients.stopping and process.are_usable:
                    await process.send(producer, next(partitions), [0], ALL_ACKS, self.clients.wall_ms())
                    await self.clients.sleep(1 / self._parameters.per_second)
            finally:
                producer.close()


KIND = WorkloadKind("trickle", TrickleParameters, Trickle, {"per_second": 40})
