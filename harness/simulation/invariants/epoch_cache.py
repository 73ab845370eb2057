"""R7: leader epochs rise, with their offsets, within the log; in the end the cache has what the log has."""

from __future__ import annotations

from itertools import pairwise

from harness.replication.epochs import LeaderEpochCache
from harness.replication.messages import EpochEntry
from harness.simulation.findings import Findings
from harness.simulation.invariants.final_logs import FinalLogs
from harness.simulation.invariants.invariant import Invariant
from harness.simulation.violations import DANGER
from harness.simulation.witnessed import Broker


class EpochCache(Invariant):
    """See the module."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def epochs_changed(self, broker: Broker, entries: tuple[EpochEntry, ...]) -> None:
        """See :class:`Invariant`."""
        ordered = all(a.leader_epoch < b.leader_epoch and a.start_offset < b.start_offset
                      for a, b in pairwise(entries))  # fmt: skip
        if not ordered or (entries and entries[-1].start_offset > broker.disk.end):
            why = f"epochs {entries}, log end {broker.disk.end}"
            self._findings.accuse("R7", DANGER, why, nodes=(broker.node,))

    def log_ended(self, broker: Broker, final: FinalLogs) -> None:
        """See :class:`Invariant`. Epochs without records are in the cache alone."""
        if broker.replica is None:
            return
        cache = LeaderEpochCache()
        for batch in broker.disk.batches:
            if batch.span.leader_epoch != cache.latest:
                cache.assign(batch.span.leader_epoch, max(batch.span.base_offset, broker.disk.start))
        cached = {entry.leader_epoch: entry.start_offset for entry in broker.replica.epoch_entries}
        wrong = [entry for entry in cache.entries if cached.get(entry.leader_epoch) != entry.start_offset]
        if wrong:
            why = f"the log has {cache.entries}, the cache {broker.replica.epoch_entries}"
            self._findings.accuse("R7", DANGER, why, offset=wrong[0].start_offset, nodes=(broker.node,))
