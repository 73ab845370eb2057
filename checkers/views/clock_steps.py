"""By how much faults stepped the wall clocks of nodes."""

from __future__ import annotations

import json
from collections.abc import Iterable

from checkers.views.row import Row
from faults import traits_of


def clock_steps_ms(faults: Iterable[Row]) -> int:
    """By how many milliseconds two readings of clocks may differ because of ``faults``, besides the time between."""
    steps = [0, *(clock_step_ms(fault) for fault in faults if traits_of(fault["kind"]).moves_clock)]
    return int(max(steps) - min(steps))


def clock_step_ms(fault: Row) -> float:
    """By how many milliseconds a fault that moves clocks has moved them; negative: back."""
    step_ms: float = json.loads(fault["parameters"] or "{}").get("offset_ms", 0)
    return step_ms
