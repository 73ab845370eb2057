"""T11: a leader that fences followers of another epoch serves none of them."""

from __future__ import annotations

from harness.simulation.findings import Findings
from harness.simulation.invariants.invariant import Invariant
from harness.simulation.violations import DANGER
from harness.simulation.witnessed import Broker, Wanted


class FencedFetches(Invariant):
    """T11 for fetches, also those that waited."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def fetch_served(self, broker: Broker, wanted: Wanted) -> None:
        """See :class:`Invariant`."""
        replica = broker.replica
        if replica is not None and wanted.leader_epoch != replica.leader_epoch:
            why = f"epoch {replica.leader_epoch} serves a follower of {wanted.leader_epoch}"
            self._findings.accuse("T11", DANGER, why, nodes=(broker.node,))


class FencedLookups(Invariant):
    """T11 for a follower that asks where an epoch ends."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def lookup_served(self, broker: Broker, wanted: Wanted) -> None:
        """See :class:`Invariant`."""
        replica = broker.replica
        if replica is not None and wanted.leader_epoch != replica.leader_epoch:
            why = f"epoch {replica.leader_epoch} tells a follower of {wanted.leader_epoch} an epoch's end"
            self._findings.accuse("T11", DANGER, why, nodes=(broker.node,))
