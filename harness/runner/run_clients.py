"""The clients of one run: its background load, the client of its schedule, and the final read."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from harness.final_read import FinalRead
from harness.orders import ScheduledClient
from harness.workload import Workload


@dataclass(frozen=True, slots=True)
class RunClients:
    """All of them.

    Attributes:
        workload: sends and reads by itself.
        scheduled: does what a schedule orders.
        final_read: reads everything in the end.
    """

    workload: Workload
    scheduled: ScheduledClient
    final_read: FinalRead

    def stop(self) -> None:
        """Stop each, whatever becomes of the others, and wait for every outstanding completion. Idempotent."""
        with ExitStack() as in_turn:
            in_turn.callback(self.final_read.stop)
            in_turn.callback(self.scheduled.stop)
            in_turn.callback(self.workload.stop)
