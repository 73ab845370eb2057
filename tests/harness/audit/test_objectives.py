"""What an operator demands of windows: bounds that are kept, missed, and kept by a hair."""

from __future__ import annotations

import pytest

from harness.audit.objectives import NO_OBJECTIVES, Objectives
from harness.audit.result import Latency, PartitionMeasures

SLOW = Latency(p50_ms=3.0, p99_ms=1500.0, max_ms=9000.0)
QUICK = Latency(p50_ms=1.0, p99_ms=20.0, max_ms=9000.0)


def measures(*availability: float) -> list[PartitionMeasures]:
    return [
        PartitionMeasures(partition=number, sent=100, acknowledged=99, availability=share, longest_gap_s=1.0)
        for number, share in enumerate(availability)
    ]


@pytest.mark.parametrize(
    ("objectives", "ack", "read", "sentences"),
    [
        (NO_OBJECTIVES, None, None, []),
        (Objectives(ack_p99_s=1.5), SLOW, None, []),
        (
            Objectives(ack_p99_s=1.4),
            SLOW,
            QUICK,
            ["The objective is 1,400 ms, and the 99th percentile took 1,500.0 ms until it was acknowledged."],
        ),
        (Objectives(ack_p99_s=1.4), None, QUICK, ["The objective is 1,400 ms, and nothing was acknowledged."]),
        (
            Objectives(ack_p99_s=1.4, read_p99_s=0.01),
            QUICK,
            QUICK,
            ["The objective is 10 ms, and the 99th percentile took 20.0 ms until it was read."],
        ),
        (
            Objectives(availability=0.999),
            QUICK,
            QUICK,
            ["The objective is to be available for 99.900%, and partition 1 was for 95.000%."],
        ),
        (Objectives(availability=0.95), QUICK, QUICK, []),
    ],
)
def test_a_window_misses_what_it_does_not_keep(
    objectives: Objectives, ack: Latency | None, read: Latency | None, sentences: list[str]
) -> None:
    assert list(objectives.missed(ack, read, measures(1.0, 0.95))) == sentences


def test_what_is_demanded_is_said() -> None:
    assert list(NO_OBJECTIVES.said()) == []
    [sentence] = Objectives(0.5, 2.0, 0.999).said()
    assert sentence == (
        "Objectives of every window: acknowledgements within 500 ms (99th percentile), first deliveries within "
        "2,000 ms (99th percentile), every partition available for 99.900%."
    )
