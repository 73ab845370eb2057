"""What the replicas' logs of one run hold, as collected in the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from checkers.views.row import Row, where
from harness.model import TopicPartition


@dataclass(frozen=True)
class ReplicaLogs:
    """The records of every replica's log.

    Attributes:
        rows: every row of the table.
    """

    run: str
    rows: Sequence[Row]

    @cached_property
    def logged(self) -> dict[TopicPartition, dict[int, list[Row]]]:
        """The replicas' records: by partition and offset."""
        found: dict[TopicPartition, dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
        for row in self.rows:
            found[where(row)][row["offset"]].append(row)
        return found
