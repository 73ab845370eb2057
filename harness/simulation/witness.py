"""The omniscient witness: it sees every log, and checks the invariants of replication at every event.

What lies behind an event it finds out first: which batch a batch follows, what a leader has committed, which replica
has become the leader. The invariants are in :mod:`harness.simulation.invariants`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.error_codes import ErrorCode
from harness.model import Offset
from harness.replication.controller_messages import Elected, IsrChanged
from harness.replication.messages import EpochEntry, ProposeIsr, RaiseLogStart, ReplicaFailed, StartLogAt, Truncate
from harness.simulation.core.disk import Batch
from harness.simulation.findings import Findings
from harness.simulation.invariants.catalogue import invariants_of
from harness.simulation.invariants.client_records import ClientRecords
from harness.simulation.invariants.committed_log import CommittedLog
from harness.simulation.invariants.final_logs import final_logs
from harness.simulation.invariants.invariant import Invariant
from harness.simulation.invariants.log_matching import Lineage
from harness.simulation.violations import Violation
from harness.simulation.witnessed import Broker, Cluster, Produce, ProduceRequest, Wanted


class Witness:
    """See the module.

    Args:
        cluster: what it sees.
        report: is called with each violation.

    Attributes:
        findings: the violations.
        committed: the truth.
        lineage: every batch that was written.
        clients: what producers and the consumer know.
        invariants: in the order in which they look at an event.
    """

    def __init__(self, cluster: Cluster, report: Callable[[Violation], None] = lambda _: None) -> None:
        self.findings = Findings(cluster, report)
        self.committed = CommittedLog(cluster.configuration)
        self.lineage = Lineage()
        self.clients = ClientRecords()
        self.invariants = invariants_of(cluster, self.findings, self.committed, self.lineage, self.clients)
        self._cluster = cluster
        self._checks = {name: _watching(self.invariants, name) for name in vars(Invariant) if name[0] != "_"}

    @property
    def violations(self) -> list[Violation]:
        """What it has seen, in the order in which it happened."""
        return self.findings.violations

    def _check(self, event: str, *details: Any) -> None:
        for look in self._checks[event]:
            look(*details)

    def finish(self, *, converged: bool) -> None:
        """Look at everything once more, now that the run is over."""
        final = final_logs(self._cluster, self.committed.deleted, converged=converged)
        self._check("ended", final)
        for broker in self._cluster.brokers:
            self._check("log_ended", broker, final)

    # --------------------------------------------------------------------------------------------------------- logs

    def appended(self, broker: Broker, batches: list[Batch]) -> None:
        """Batches have been appended to a log."""
        log = broker.disk.batches
        at = len(log) - len(batches)
        before = log[at - 1].span if at else None
        for batch in batches:
            self._check("batch_appended", broker, batch, before)
            before = batch.span

    def truncated(self, broker: Broker, effect: Truncate, cut: list[Batch]) -> None:
        """A replica has cut its log."""
        self.committed.shortened(broker, broker.disk.end)
        self._check("truncated", broker, effect, cut)

    def wiped(self, broker: Broker, effect: StartLogAt) -> None:
        """A whole log is going to begin anew."""
        self.committed.compared[broker.node] = effect.offset
        self._check("wiped", broker, effect)

    def log_start_raised(self, broker: Broker, effect: RaiseLogStart) -> None:
        """A replica is going to delete the beginning of its log; a follower does what its leader has done."""
        self._check("log_start_raised", broker, effect)
        if effect.reason != "leader":
            self.committed.delete(effect.to_offset)

    def power_lost(self, broker: Broker, lost: list[Batch]) -> None:
        """What was not flushed is gone, as it must be expected to be."""
        if lost:
            self.committed.shortened(broker, broker.disk.end)

    def epochs_changed(self, broker: Broker, entries: tuple[EpochEntry, ...]) -> None:
        """A replica has written its leader epochs."""
        self._check("epochs_changed", broker, entries)

    # ------------------------------------------------------------------------------------------- leaders and the ISR

    def watermark_advanced(self, broker: Broker, high_watermark: Offset) -> None:
        """A replica's high watermark has risen; if it leads, it has committed something."""
        self._check("watermark_advanced", broker, high_watermark)
        replica = broker.replica
        assert replica is not None
        if replica.role == "leader" and high_watermark > self.committed.end:
            first = self.committed.commit(broker, replica.leader_epoch, high_watermark)
            self._check("committed", broker, first)

    def acknowledged(self, broker: Broker, produce: ProduceRequest, base_offset: Offset) -> None:
        """A leader acknowledges records."""
        self._check("acknowledged", broker, produce, base_offset)

    def fetch_served(self, broker: Broker, wanted: Wanted) -> None:
        """A leader serves a follower's fetch."""
        self._check("fetch_served", broker, wanted)

    def lookup_served(self, broker: Broker, wanted: Wanted) -> None:
        """A leader tells a follower where an epoch ends."""
        self._check("lookup_served", broker, wanted)

    def state_applied(self, broker: Broker, before: tuple[int, int]) -> None:
        """A replica follows the controller; ``before``: its leader epoch and its partition epoch until then."""
        self._check("state_applied", broker, before)
        replica = broker.replica
        assert replica is not None
        epoch = replica.leader_epoch
        if replica.role == "leader" and epoch != before[0]:
            self._check("took_office", broker, epoch)
            self.committed.took_office(broker, epoch)

    def elected(self, effect: Elected) -> None:
        """The controller has changed the leader."""
        self.committed.elected(effect)
        self._check("elected", effect)

    def isr_changed(self, effect: IsrChanged) -> None:
        """The controller has changed the ISR."""
        self._check("isr_changed", effect)

    def proposed(self, broker: Broker, proposal: ProposeIsr) -> None:
        """A leader proposes an ISR, and must wait for every replica in it from now on."""
        self._check("proposed", broker, proposal)

    def failed(self, broker: Broker, effect: ReplicaFailed) -> None:
        """The protocol makes a broker exit, or its disk does."""
        self._check("failed", broker, effect)

    # ------------------------------------------------------------------------------------------------------- clients

    def sent(self, produce: Produce, error: ErrorCode, base_offset: Offset) -> None:
        """A producer has the result of a request."""
        self.clients.sent(produce, error, base_offset)

    def polled(self, found: list[tuple[Offset, int, int]]) -> None:
        """The consumer has read records."""
        self.clients.polled(found)


def _watching(invariants: Sequence[Invariant], event: str) -> tuple[Callable[..., None], ...]:
    """The methods that look at an event, of those invariants that have one of their own."""
    unwatched = getattr(Invariant, event)
    return tuple(getattr(one, event) for one in invariants if getattr(type(one), event) is not unwatched)
