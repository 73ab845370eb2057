"""Passes the events of a run, at either depth, to its observers.

These are the witness and the budget, and a trace and a recording where the run has one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.error_codes import ErrorCode
from harness.model import Offset
from harness.replication.controller_messages import Elected, IsrChanged, SessionChanged
from harness.replication.messages import RaiseLogStart, ReplicaFailed, StartLogAt, Truncate
from harness.simulation.core.budget import Budget
from harness.simulation.core.disk import Batch
from harness.simulation.core.planned import Planned
from harness.simulation.core.recording import Recording
from harness.simulation.trace import Trace
from harness.simulation.witness import Witness
from harness.simulation.witnessed import Broker, Process, Produce


@dataclass(frozen=True, slots=True)
class ProcessObservers:
    """Of a broker or the controller.

    Attributes:
        witness: sees everything.
        trace: gets every transition; None: there is none.
        recording: what a real run would leave behind; None: nothing is kept.
    """

    witness: Witness
    trace: Trace | None
    recording: Recording | None

    def started(self, process: Process) -> None:
        """It has a new process."""
        if self.trace is not None:
            self.trace.started(process)
        if self.recording is not None:
            self.recording.started(process)


@dataclass(frozen=True, slots=True)
class ReplicaObservers(ProcessObservers):
    """Of a broker and its replica; the broker reports to the witness itself what only the witness gets."""

    def handled(self, broker: Broker, event: object, effects: Iterable[object]) -> None:
        """The replica has taken in an event."""
        if self.trace is not None:
            self.trace.replica(broker, event, effects)

    def observed(self, broker: Broker) -> None:
        """The replica may have changed."""
        if self.recording is not None:
            self.recording.observed(broker)

    def truncated(self, broker: Broker, effect: Truncate, cut: list[Batch], end_before: Offset) -> None:
        """The replica has cut its log."""
        self.witness.truncated(broker, effect, cut)
        if self.recording is not None:
            self.recording.truncated(broker, effect, end_before)

    def log_start_moves(self, broker: Broker, effect: RaiseLogStart | StartLogAt) -> None:
        """The log is about to begin elsewhere."""
        if isinstance(effect, RaiseLogStart):
            self.witness.log_start_raised(broker, effect)
        else:
            self.witness.wiped(broker, effect)

    def log_start_moved(self, broker: Broker, effect: RaiseLogStart | StartLogAt, from_offset: Offset) -> None:
        """It does."""
        if self.recording is not None:
            self.recording.log_start_moved(broker, effect, from_offset)

    def exited(self, broker: Broker, effect: ReplicaFailed) -> None:
        """The broker has exited because its replica failed."""
        if self.recording is not None:
            self.recording.failed(broker, effect)


@dataclass(frozen=True, slots=True)
class ControllerObservers(ProcessObservers):
    """Of the controller.

    Attributes:
        budget: looks again at which brokers have caught up.
    """

    budget: Budget

    def handled(self, controller: Process, event: object, effects: Iterable[object]) -> None:
        """The controller has taken in an event."""
        if self.trace is not None:
            self.trace.controller(controller, event, effects)

    def elected(self, effect: Elected) -> None:
        """It has changed the leader."""
        self.witness.elected(effect)
        self.budget.review()
        if self.recording is not None:
            self.recording.elected(effect)

    def isr_changed(self, effect: IsrChanged) -> None:
        """It has changed the ISR."""
        self.witness.isr_changed(effect)
        self.budget.review()
        if self.recording is not None:
            self.recording.isr_changed(effect)

    def session_changed(self, effect: SessionChanged) -> None:
        """A broker's session has begun or ended."""
        self.budget.review()
        if self.recording is not None:
            self.recording.session_changed(effect)


@dataclass(frozen=True, slots=True)
class ClientObservers:
    """Of the clients; attributes as of :class:`ProcessObservers`."""

    witness: Witness
    trace: Trace | None
    recording: Recording | None

    def sending(self, produce: Produce) -> None:
        """A producer sends."""
        if self.trace is not None:
            self.trace.sending(produce)
        if self.recording is not None:
            self.recording.sending(produce)

    def sent(self, produce: Produce, error: ErrorCode, base_offset: Offset) -> None:
        """A producer has the result of a request, or will never have one."""
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


@dataclass(frozen=True, slots=True)
class PlannedObservers:
    """Of faults and disturbances; attributes as of :class:`ProcessObservers`."""

    trace: Trace | None
    recording: Recording | None

    def struck(self, planned: Planned) -> None:
        """One has happened."""
        if self.trace is not None:
            self.trace.planned("strikes", planned)
        if self.recording is not None:
            self.recording.struck(planned)

    def healed(self, planned: Planned) -> None:
        """One is over."""
        if self.trace is not None:
            self.trace.planned("is over", planned)
        if self.recording is not None:
            self.recording.healed(planned)
