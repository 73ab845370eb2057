"""What was done to the cluster of one run: its faults, and which of them may excuse something."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from checkers.views.about_run import AboutRun
from checkers.views.configured import Configured
from checkers.views.delete_records_orders import Order
from checkers.views.row import Row
from faults import traits_of
from harness.fault_losses import taken
from harness.model import TopicPartition


@dataclass(frozen=True)
class FaultJournal(AboutRun):
    """What was done.

    Attributes:
        faults: every row of the table.
        excusing: those that may excuse something, see :mod:`checkers.views.proofs_match`.
        orders: the DeleteRecords that were sent, by partition; None: the run does not say.
    """

    faults: Sequence[Row]
    excusing: Sequence[Row]
    orders: Mapping[TopicPartition, Sequence[Order]] | None

    @cached_property
    def robbing(self) -> Callable[[int, TopicPartition], Sequence[Row]]:
        """By node and partition: the excusing faults whose proofs name data that they took from that replica's log."""
        return cache(lambda node, place: _took_from(self.excusing, node, place))


def _took_from(faults: Sequence[Row], node: int, place: TopicPartition) -> Sequence[Row]:
    """The faults whose proofs name data that they took from a replica's log."""
    return [
        fault
        for fault in faults
        if fault["proven_ns"] is not None
        and str(node) in fault["nodes"]
        and taken(traits_of(fault["kind"]).disk, fault["proof"], place) is not None
    ]


def deletes(configured: Configured, journal: FaultJournal) -> bool:
    """Whether records of a run may be deleted: by DeleteRecords that it has sent, or by retention."""
    return bool(journal.orders) or configured.guarantees.get("retention") is not False
