"""R5 and R6: along a log, offsets follow each other without gaps, and epochs never fall."""

from __future__ import annotations

from harness.replication.messages import BatchSpan
from harness.simulation.core.disk import Batch
from harness.simulation.findings import Findings
from harness.simulation.invariants.invariant import Invariant
from harness.simulation.violations import DANGER
from harness.simulation.witnessed import Broker


class ContiguousOffsets(Invariant):
    """R5: a batch begins where the one before it ends, and has an offset for each record."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def batch_appended(self, broker: Broker, batch: Batch, before: BatchSpan | None) -> None:
        """See :class:`Invariant`."""
        span, records = batch
        end = span.base_offset if before is None else before.end_offset
        if span.base_offset != end or span.end_offset != end + len(records):
            why = f"a batch {span} follows offset {end}"
            self._findings.accuse("R5", DANGER, why, offset=end, nodes=(broker.node,))


class MonotonicEpochs(Invariant):
    """R6: a batch is of no older epoch than the one before it."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def batch_appended(self, broker: Broker, batch: Batch, before: BatchSpan | None) -> None:
        """See :class:`Invariant`."""
        epoch = batch.span.leader_epoch
        if before is not None and epoch < before.leader_epoch:
            why = f"epoch {epoch} follows {before.leader_epoch}"
            self._findings.accuse("R6", DANGER, why, offset=before.end_offset, nodes=(broker.node,))
