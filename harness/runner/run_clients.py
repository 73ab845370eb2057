"""The clients of one run: its background load, the client of its schedule, and the final read."""

from __future__ import annotations

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
        """Stop each, whatever becomes of the others, and wait for every outstanding completion. Idempotent.

        Raises:
            BaseException: an interrupt, else the first of what they raise; the others are its notes.
        """
        failures: list[BaseException] = []
        for stop in (self.workload.stop, self.scheduled.stop, self.final_read.stop):
            try:
                stop()
            except BaseException as failure:  # noqa: BLE001 (raised below)
                failures.append(failure)
        if failures:
            first = next((one for one in failures if not isinstance(one, Exception)), failures[0])
            for other in failures:
                if other is not first:
                    first.add_note(f"Besides, while the clients stopped: {other!r}")
            raise first
