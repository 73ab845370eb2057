"""How quick and how available the cluster was in a window, by its own sends."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

from harness.audit.ceiling import Load
from harness.audit.ledger import CanarySend
from harness.audit.result import Latency, PartitionMeasures

_NS_PER_S = 1_000_000_000
_GRACE_S = 2.0


def longest_pace_s(load: Load) -> float:
    """How long a partition may go without an acknowledgement before it counts as unavailable."""
    return 2 * load.partitions / load.rate + _GRACE_S


def latency(durations_ns: Iterable[int]) -> Latency | None:
    """Their median, their 99th percentile (nearest rank) and the greatest; None: there is none."""
    ordered = sorted(durations_ns)
    if not ordered:
        return None

    def rank(share: float) -> float:
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)] / 1e6

    return Latency(p50_ms=rank(0.5), p99_ms=rank(0.99), max_ms=ordered[-1] / 1e6)


class Availability:
    """Follows when each partition acknowledged, across windows.

    Args:
        load: of the audit.
        since_ns: when it began to send.
    """

    def __init__(self, load: Load, since_ns: int) -> None:
        self._longest_ns = round(longest_pace_s(load) * _NS_PER_S)
        self._last_ns = dict.fromkeys(range(load.partitions), since_ns)

    def note(self, sends: Sequence[CanarySend], held_ns: Sequence[tuple[int, int]]) -> None:
        """The audit has reported the window of these sends."""
        for number, last_ns in self._last_ns.items():
            ended = [one.ended_ns for one in sends if one.partition == number and one.kind == "ok"]
            at_ns = [*(at for at in ended if at is not None), *(until for _, until in held_ns)]
            self._last_ns[number] = max([last_ns, *at_ns])

    def of_window(
        self, sends: Sequence[CanarySend], span_ns: tuple[int, int], held_ns: Sequence[tuple[int, int]]
    ) -> list[PartitionMeasures]:
        """By partition, what became of the sends of a window.

        Args:
            sends: all that began in it.
            span_ns: its beginning and its end.
            held_ns: when the audit itself sent nothing, from and to.
        """
        return [
            self._of_partition(number, [one for one in sends if one.partition == number], span_ns, held_ns)
            for number in self._last_ns
        ]

    def _of_partition(
        self, number: int, sends: Sequence[CanarySend], span_ns: tuple[int, int], held_ns: Sequence[tuple[int, int]]
    ) -> PartitionMeasures:
        begin_ns, end_ns = span_ns
        acknowledged = sorted(one.ended_ns for one in sends if one.kind == "ok" and one.ended_ns is not None)
        marks = sorted([self._last_ns[number], *acknowledged, *(at for held in held_ns for at in held)])
        marks += [end_ns] if marks[-1] < end_ns else []
        silences = [(since, until) for since, until in pairwise(marks) if (since, until) not in held_ns]
        gaps = [(since, until) for since, until in silences if until - since > self._longest_ns]
        lost_ns = sum(max(0, min(until, end_ns) - max(since, begin_ns)) for since, until in gaps)
        return PartitionMeasures(
            partition=number,
            sent=len(sends),
            acknowledged=len(acknowledged),
            availability=max(0.0, 1 - lost_ns / max(1, end_ns - begin_ns)),
            longest_gap_s=max((until - since for since, until in silences), default=0) / _NS_PER_S,
        )
