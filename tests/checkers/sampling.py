"""A timeline as of a cluster whose brokers are looked at now and then."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from harness.detection.withheld import ends, samples

Row = dict[str, Any]

SAMPLED: Row = {"timeline": "sampled", "min_insync_replicas": 2}
"""The guarantees of such a run."""

ON_DISKS: Row = {"timeline": "logs", "min_insync_replicas": 2}
"""The guarantees of a run whose brokers' disks were read in the end, and of which nothing else is known."""


def some_of(timeline: Iterable[Row], rng: random.Random, share: float) -> list[Row]:
    """Samples of a timeline: about this share of what there was to see."""
    return samples(timeline, lambda _: rng.random() < share)


def at_the_end(timeline: Iterable[Row]) -> list[Row]:
    """What the disks say in the end."""
    return list(ends(timeline))
