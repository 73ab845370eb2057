"""What a run has to tell, at either depth, and who listens.

The witness and the budget always do; a trace and a recording where somebody wants them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.history.delete_records_log import DeleteRecordsLog
from harness.model import Offset
from harness.replication.controller_messages import Elected, IsrChanged, SessionChanged
from harness.replication.messages import ErrorCode
from harness.simulation.core.configuration import Configuration
from harness.simulation.core.planned_fault import PlannedFault
from harness.simulation.witnessed import Process, Produce

if TYPE_CHECKING:
    from harness.simulation.core.budget import Budget
    from harness.simulation.core.recording import Recording
    from harness.simulation.trace import Trace
    from harness.simulation.witness import Witness


class RunObservers:
    """A run that tells its listeners; see the module. Who is one sets the attributes.

    Attributes:
        configuration: what was drawn.
        random: for what clients send.
        trace: told of every transition; None: nobody listens.
        recording: what a real run would leave behind; None: nothing is kept.
        orders: the DeleteRecords that were sent.
    """

    configuration: Configuration
    random: Callable[[], float]
    trace: Trace | None
    recording: Recording | None
    orders: DeleteRecordsLog
    witness: Witness
    budget: Budget
    _values: int

    def struck(self, trouble: PlannedFault) -> None:
        """A fault has happened."""
        if self.trace is not None:
            self.trace.trouble("strikes", trouble)
        if self.recording is not None:
            self.recording.struck(trouble)

    def healed(self, trouble: PlannedFault) -> None:
        """A fault is over."""
        if self.trace is not None:
            self.trace.trouble("is over", trouble)
        if self.recording is not None:
            self.recording.healed(trouble)

    def started(self, process: Process) -> None:
        """A broker or the controller has a new process."""
        if self.trace is not None:
            self.trace.started(process)
        if self.recording is not None:
            self.recording.started(process)

    def elected(self, effect: Elected) -> None:
        """The controller has changed the leader."""
        self.witness.elected(effect)
        self.budget.review()
        if self.recording is not None:
            self.recording.elected(effect)

    def isr_changed(self, effect: IsrChanged) -> None:
        """The controller has changed the ISR."""
        self.witness.isr_changed(effect)
        self.budget.review()
        if self.recording is not None:
            self.recording.isr_changed(effect)

    def session_changed(self, effect: SessionChanged) -> None:
        """A broker's session has begun or ended."""
        self.budget.review()
        if self.recording is not None:
            self.recording.session_changed(effect)

    def next_values(self) -> tuple[int, ...]:
        """Values that nobody has sent yet."""
        first = self._values
        most = self.configuration.records_per_send
        self._values += 1 if most == 1 else 1 + int(self.random() * most)
        return tuple(range(first, self._values))

    def sending(self, produce: Produce) -> None:
        """A producer sends."""
        if self.trace is not None:
            self.trace.sending(produce)
        if self.recording is not None:
            self.recording.sending(produce)

    def sent(self, produce: Produce, error: ErrorCode, base_offset: Offset) -> None:
        """A producer knows what came of a request, or that it will never know."""
        self.witness.sent(produce, error, base_offset)
        if self.trace is not None:
            self.trace.sent(produce, error, base_offset)
        if self.recording is not None:
            self.recording.sent(produce, error, base_offset)

    def polled(self, found: list[tuple[Offset, int, int]]) -> None:
        """The consumer got records: offset, value, leader epoch."""
        self.witness.polled(found)
        if self.trace is not None:
            self.trace.polled(found)
        if self.recording is not None:
            self.recording.polled(found)
