"""How long a compacted log keeps a tombstone at least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from checkers.views.clock_steps import clock_steps_ms
from checkers.views.row import Row

_ROUNDING_MS = 1
"""Brokers count in whole milliseconds."""


def tombstones_stay_ns(guarantees: Mapping[str, Any], faults: Sequence[Row]) -> int | None:
    """For how many nanoseconds after its send a tombstone stays; None: the run does not state that one ever goes.

    Brokers measure ``delete.retention.ms`` by their wall clocks, so faults that step these make it less.
    """
    stay_ms = guarantees.get("tombstones_stay_ms")
    if not isinstance(stay_ms, int):
        return None
    return max(0, stay_ms - clock_steps_ms(faults) - _ROUNDING_MS) * 1_000_000
