"""What the replicas' logs of the compacted topic of one run hold, as collected in the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from checkers.views.row import Row, where
from harness.compacted import key_number
from harness.model import TopicPartition

LastOfKeys = dict[int, tuple[int, int]]
"""By the number of a key, the offset and the value of its last record."""


@dataclass(frozen=True)
class CompactedLogs:
    """The records of every replica of the topic whose log is compacted (:mod:`harness.compacted`).

    Attributes:
        rows: those of the table of replica logs that are about it.
    """

    run: str
    rows: Sequence[Row]

    @cached_property
    def last(self) -> dict[TopicPartition, dict[int, LastOfKeys]]:
        """What each log has last of each key, by partition and node; records that are not intact do not count."""
        found: dict[TopicPartition, dict[int, LastOfKeys]] = defaultdict(lambda: defaultdict(dict))
        for row in self.rows:
            if row["value"] is not None and row["intact"]:
                log, key = found[where(row)][row["node"]], key_number(row["value"])
                log[key] = max(log.get(key, (-1, -1)), (row["offset"], row["value"]))
        return found
