"""R1b: a batch follows the same batch in every log that it followed where its leader wrote it.

A log that begins with a batch has none to compare. Whether it may begin there is another invariant's (R8).
"""

from __future__ import annotations

from harness.model import Offset
from harness.replication.messages import BatchSpan
from harness.simulation.core.disk import Batch, Record
from harness.simulation.findings import Findings
from harness.simulation.invariants.committed_log import CommittedLog
from harness.simulation.invariants.invariant import Invariant
from harness.simulation.violations import DANGER
from harness.simulation.witnessed import Broker


class Lineage:
    """Every batch that was written.

    Attributes:
        batches: by epoch and offset, its records, and the epoch and offset of the batch before it; None: it was the
            first.
    """

    def __init__(self) -> None:
        self.batches: dict[tuple[int, Offset], tuple[tuple[Record, ...], tuple[int, Offset] | None]] = {}

    def written_in(self) -> dict[int, int]:
        """In which leader epoch each value was written."""
        return {record.value: record.leader_epoch for records, _ in self.batches.values() for record in records}


class LogMatching(Invariant):
    """See the module."""

    def __init__(self, findings: Findings, lineage: Lineage, committed: CommittedLog) -> None:
        self._findings = findings
        self._batches = lineage.batches
        self._committed = committed

    def batch_appended(self, broker: Broker, batch: Batch, before: BatchSpan | None) -> None:
        """See :class:`Invariant`."""
        span, records = batch
        key = (span.leader_epoch, span.base_offset)
        parent = None if before is None else (before.leader_epoch, before.base_offset)
        known = self._batches.get(key)
        if known is None:
            self._batches[key] = (records, parent)
        elif broker.replica is not None and broker.replica.role == "leader":
            self._accuse(broker, span, f"epoch {span.leader_epoch} is used again for offset {span.base_offset}")
        elif known[0] != records or (known[1] != parent and not self._may_begin_with(broker, span)):
            batch_of = f"the batch of epoch {span.leader_epoch}"
            self._accuse(broker, span, f"{batch_of} is put after {parent}, which its leader had after {known[1]}")

    def _may_begin_with(self, broker: Broker, span: BatchSpan) -> bool:
        return span.base_offset <= self._committed.deleted or span.base_offset == broker.disk.start

    def _accuse(self, broker: Broker, span: BatchSpan, why: str) -> None:
        self._findings.accuse("R1b", DANGER, why, offset=span.base_offset, nodes=(broker.node,))
