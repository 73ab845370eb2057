"""What a workload is given to work with."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from harness.history.recorder import Recorder
from harness.model import ProcessId, TopicPartition
from harness.payload import EVERYTHING, Carried


@dataclass(frozen=True)
class WorkloadContext:
    """The cluster, the history, and the seed.

    Attributes:
        bootstrap: ``host:port,...``.
        partitions: every partition of the scenario.
        log: takes what the clients have to say.
        failed: told, in any thread, what has ended the background load before its time.
        carried: what of a record the cluster stores as it was sent.
    """

    bootstrap: str
    partitions: Sequence[TopicPartition]
    recorder: Recorder
    seed: int
    log: logging.Logger
    failed: Callable[[BaseException], None] = lambda failure: None
    carried: Carried = EVERYTHING
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def new_process(self) -> ProcessId:
        """A process number that was never used before in this run; any thread may ask."""
        return ProcessId(next(self._numbers))
