"""What was done to the cluster of one run: its faults, and which of them may excuse something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from checkers.views.about_run import AboutRun
from checkers.views.delete_records_orders import Order
from checkers.views.row import Row
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
