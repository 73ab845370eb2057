"""A timeline as somebody would have it who looks at the brokers now and then."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from harness.model import CONTROLLER_ID

Row = dict[str, Any]

SAMPLED: Row = {"timeline": "sampled", "min_insync_replicas": 2}
"""The guarantees of such a run."""


def samples(timeline: Iterable[Row], is_seen: Callable[[Row], bool]) -> list[Row]:
    """Of what brokers say of their replicas only what ``is_seen``, and never that they cut a log.

    What the controller decided, and the ``final`` rows, are all there. Every life's rows are numbered anew.
    """
    kept = [row for row in timeline if _is_complete(row) or (row["kind"] == "state" and is_seen(row))]
    numbers: Counter[tuple[int, int]] = Counter()
    found = []
    for row in kept:
        life = row["node"], row["incarnation"]
        found.append(row | {"sequence": numbers[life]})
        numbers[life] += row["kind"] != "final"
    return found


def some_of(timeline: Iterable[Row], rng: random.Random, share: float) -> list[Row]:
    """Samples of a timeline: about this share of what there was to see."""
    return samples(timeline, lambda _: rng.random() < share)


def _is_complete(row: Row) -> bool:
    return bool(row["kind"] == "final" or row["node"] == CONTROLLER_ID)
