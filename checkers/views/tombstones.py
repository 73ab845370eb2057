"""How long a compacted log keeps a tombstone at least."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from checkers.views.row import Row
from faults import traits_of

_ROUNDING_MS = 1
"""Brokers count in whole milliseconds."""


def tombstones_stay_ns(guarantees: Mapping[str, Any], faults: Sequence[Row]) -> int | None:
    """For how many nanoseconds after its send a tombstone stays; None: the run does not state that one ever goes.

    Brokers measure ``delete.retention.ms`` by their wall clocks, so faults that step these make it less.
    """
    stay_ms = guarantees.get("tombstones_stay_ms")
    if not isinstance(stay_ms, int):
        return None
    stepped = [
        json.loads(fault["parameters"] or "{}").get("offset_ms", 0)
        for fault in faults
        if traits_of(fault["kind"]).moves_clock
    ]
    off_ms = int(max([0, *stepped]) - min([0, *stepped]))
    return max(0, stay_ms - off_ms - _ROUNDING_MS) * 1_000_000
