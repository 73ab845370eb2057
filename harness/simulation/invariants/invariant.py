"""The interface of an invariant: the witness calls it with events, and it reports violations."""

from __future__ import annotations

from harness.model import Offset
from harness.replication.controller_messages import Elected, IsrChanged
from harness.replication.messages import (
    BatchSpan,
    EpochEntry,
    ProposeIsr,
    RaiseLogStart,
    ReplicaFailed,
    StartLogAt,
    Truncate,
)
from harness.simulation.core.disk import Batch
from harness.simulation.invariants.final_logs import FinalLogs
from harness.simulation.witnessed import Broker, ProduceRequest, Wanted


class Invariant:
    """See the module. An invariant overrides the methods of those events that can break it.

    Each event changes little, so each check looks only at what has just changed; in the end everything is looked at
    once more.
    """

    def batch_appended(self, broker: Broker, batch: Batch, before: BatchSpan | None) -> None:
        """A batch was appended to a log, after the batch ``before``; None: it is the first."""

    def truncated(self, broker: Broker, effect: Truncate, cut: list[Batch]) -> None:
        """A replica has cut its log."""

    def wiped(self, broker: Broker, effect: StartLogAt) -> None:
        """A log is going to begin anew."""

    def log_start_raised(self, broker: Broker, effect: RaiseLogStart) -> None:
        """A replica is going to delete the beginning of its log."""

    def epochs_changed(self, broker: Broker, entries: tuple[EpochEntry, ...]) -> None:
        """A replica has written its leader epochs."""

    def watermark_advanced(self, broker: Broker, high_watermark: Offset) -> None:
        """A replica's high watermark has risen."""

    def committed(self, leader: Broker, first: Offset) -> None:
        """A leader has committed what lies from ``first`` on."""

    def acknowledged(self, broker: Broker, produce: ProduceRequest, base_offset: Offset) -> None:
        """A leader acknowledges records."""

    def fetch_served(self, broker: Broker, wanted: Wanted) -> None:
        """A leader serves a follower's fetch."""

    def lookup_served(self, broker: Broker, wanted: Wanted) -> None:
        """A leader tells a follower where an epoch ends."""

    def state_applied(self, broker: Broker, before: tuple[int, int]) -> None:
        """A replica follows the controller; ``before``: its leader epoch and its partition epoch until then."""

    def took_office(self, leader: Broker, epoch: int) -> None:
        """A replica has become the leader."""

    def elected(self, effect: Elected) -> None:
        """The controller has changed the leader."""

    def isr_changed(self, effect: IsrChanged) -> None:
        """The controller has changed the ISR."""

    def proposed(self, broker: Broker, proposal: ProposeIsr) -> None:
        """A leader proposes an ISR."""

    def failed(self, broker: Broker, effect: ReplicaFailed) -> None:
        """A replica has failed."""

    def ended(self, final: FinalLogs) -> None:
        """The run is over."""

    def log_ended(self, broker: Broker, final: FinalLogs) -> None:
        """The run is over: once for each broker."""
