"""Facts about what a cluster told a client of its partitions, which no broker says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class MetadataEpoch(NamedTuple):
    """What the cluster told a client of one partition in one leader epoch, in answers to ListOffsets.

    Attributes:
        lowest: the lowest high watermark that the leader told; ``highest``: the highest.
        first_ns: when the first of these answers had come; ``last_ns``: the last.
    """

    run: str
    topic: str
    partition: int
    leader_epoch: int
    lowest: int
    highest: int
    first_ns: int
    last_ns: int


class ToldStart(NamedTuple):
    """The highest offset at which clients were told that a partition's log begins, above 0.

    Attributes:
        log_start: what lies before it had been deleted.
        row: the first row of the timeline, by its sequence, that has it; ``time_ns``: when that answer had come.
        acknowledged: the lowest offset of an acknowledged record of the partition; None: no acknowledgement names one.
    """

    run: str
    topic: str
    partition: int
    log_start: int
    row: int
    time_ns: int
    acknowledged: int | None = None


METADATA_REFUSALS: Mapping[str, str] = {"high watermark": "refused", "log start": "start_refused"}
"""By what a cluster was asked, the key of the detail of a row of the timeline that says why there is no answer."""


class MetadataRefusal(NamedTuple):
    """How many samples of what the cluster tells lack an answer, for one reason.

    Attributes:
        asked: ``high watermark`` or ``log start``.
    """

    run: str
    asked: str
    refused: str
    samples: int
