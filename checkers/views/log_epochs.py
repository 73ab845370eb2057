"""The leader epochs in the replicas' logs of one run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from checkers.views.about_run import AboutRun
from harness.facts import LogEpoch
from harness.model import TopicPartition


@dataclass(frozen=True)
class LogEpochs(AboutRun):
    """What replicas' logs hold of each leader epoch.

    Attributes:
        epochs: of all logs, in any order.
    """

    epochs: Sequence[LogEpoch]

    @cached_property
    def by_replica(self) -> dict[TopicPartition, dict[int, list[LogEpoch]]]:
        """The leader epochs in each replica's log, oldest first."""
        found: dict[TopicPartition, dict[int, list[LogEpoch]]] = defaultdict(lambda: defaultdict(list))
        for one in sorted(self.epochs):
            found[TopicPartition(one.topic, one.partition)][one.node].append(one)
        return found
