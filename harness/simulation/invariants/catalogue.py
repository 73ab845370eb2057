"""The invariants that the witness checks: those that the protocol generation promises."""

from __future__ import annotations

from harness.simulation.findings import Findings
from harness.simulation.invariants.client_records import ClientRecords
from harness.simulation.invariants.committed_kept import CutsNothingCommitted, DeletesWhatItMay
from harness.simulation.invariants.committed_log import CommittedLog
from harness.simulation.invariants.eligible_replicas import EligibleHoldCommitted, JoinsWithCommitted
from harness.simulation.invariants.epoch_cache import EpochCache
from harness.simulation.invariants.fencing import FencedFetches, FencedLookups
from harness.simulation.invariants.invariant import Invariant
from harness.simulation.invariants.isr import LeaderWaitsForIsr, ValidElr, ValidIsr
from harness.simulation.invariants.justified_acks import JustifiedAcks
from harness.simulation.invariants.leaders import EpochsNeverFall, LeaderHoldsCommitted, OneLeaderPerEpoch
from harness.simulation.invariants.log_matching import Lineage, LogMatching
from harness.simulation.invariants.log_order import ContiguousOffsets, MonotonicEpochs
from harness.simulation.invariants.promises import promises
from harness.simulation.invariants.records_kept import AcknowledgedKept, DeliveredKept
from harness.simulation.invariants.rest import ComesToRest
from harness.simulation.invariants.watermarks import EqualBelowWatermark, FrozenWatermark
from harness.simulation.witnessed import Cluster


def invariants_of(
    cluster: Cluster, findings: Findings, committed: CommittedLog, lineage: Lineage, clients: ClientRecords
) -> list[Invariant]:
    """Those of the protocol of ``cluster``, in the order in which they look at an event."""
    knobs, promised = cluster.knobs, promises(cluster.knobs)
    everywhere: list[Invariant] = [
        ContiguousOffsets(findings),
        MonotonicEpochs(findings),
        LogMatching(findings, lineage, committed),
        EpochsNeverFall(findings),
        OneLeaderPerEpoch(findings),
        LeaderHoldsCommitted(findings, committed),
        DeletesWhatItMay(findings, committed),
        EqualBelowWatermark(findings, committed),
        JustifiedAcks(findings, cluster, committed, copied=promised.no_committed_cut),
        ValidIsr(findings, cluster),
        ComesToRest(findings),
        AcknowledgedKept(findings, cluster, committed, lineage, clients),
        DeliveredKept(findings, committed, lineage, clients),
        EpochCache(findings),
    ]
    promised_only: list[tuple[bool, Invariant]] = [
        (promised.no_committed_cut, CutsNothingCommitted(findings, cluster, committed)),
        (promised.frozen, FrozenWatermark(findings, cluster.configuration.minimal_isr)),
        (promised.fenced, FencedFetches(findings)),
        (knobs.lookup_fencing, FencedLookups(findings)),
        (knobs.elections == "elr", ValidElr(findings, cluster)),
        (promised.no_committed_cut, EligibleHoldCommitted(findings, cluster, committed)),
        (promised.no_committed_cut, JoinsWithCommitted(findings, cluster, committed)),
        (knobs.isr_update != "naive", LeaderWaitsForIsr(findings, cluster)),
    ]
    return everywhere + [invariant for holds, invariant in promised_only if holds]
