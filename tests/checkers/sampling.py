"""A timeline as of a cluster whose brokers are looked at now and then."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from harness.detection.withheld import samples

Row = dict[str, Any]

SAMPLED: Row = {"timeline": "sampled", "min_insync_replicas": 2}
"""The guarantees of such a run."""


def some_of(timeline: Iterable[Row], rng: random.Random, share: float) -> list[Row]:
    """Samples of a timeline: about this share of what there was to see."""
    return samples(timeline, lambda _: rng.random() < share)
