"""A load of steady sends, and of consumers that follow every partition, beside which a workload may do more."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

from harness.client_ports import ClientContext
from harness.client_tasks.polling import Tails
from harness.client_tasks.steady_sends import SteadySends, SteadySendsParameters
from harness.model import Offset, TopicPartition
from harness.workload import Workload


class SendsAndTails(Workload):
    """Sends at a steady rate and reads what comes of it.

    Args:
        parameters: of the sends.
        consumers: among how many the partitions are dealt out.
        context: of the run's clients.
    """

    def __init__(self, parameters: SteadySendsParameters, consumers: int, context: ClientContext) -> None:
        super().__init__(context)
        self._sends = SteadySends(parameters, context, self.clients)
        self._tails = Tails(context, consumers, parameters.isolation)

    def start(self) -> None:
        """See :class:`harness.workload.Workload`."""
        for work in (*self._tails.works(self.clients), *self._sends.works(), *self.works()):
            self.begin(work)

    def works(self) -> Iterable[Coroutine[Any, Any, None]]:
        """What else its clients do: a coroutine each."""
        return ()

    def polled(self) -> Mapping[TopicPartition, Offset]:
        """See :class:`harness.workload.Workload`."""
        return self._tails.polled()
