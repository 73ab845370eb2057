"""What an operator demands of windows: bounds that are kept, missed, and kept by a hair."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness.audit.ledger import CanarySend
from harness.audit.objectives import NO_OBJECTIVES, Objectives
from harness.audit.result import PartitionMeasures
from harness.model import ProcessId

MS = 1_000_000


def sends(*acks_ms: int | None, reads_ms: Sequence[int | None] = ()) -> list[CanarySend]:
    """Sends that were acknowledged after so long; None: never."""
    made = []
    for number, after_ms in enumerate(acks_ms):
        one = CanarySend(window=1, value=number, partition=0, process=ProcessId(1), begun_ns=7 * MS, timestamp_ms=7)
        if after_ms is not None:
            one.kind, one.ended_ns, one.offset = "ok", (7 + after_ms) * MS, number
        read_ms = reads_ms[number] if number < len(reads_ms) else None
        one.read_ns = None if read_ms is None else (7 + read_ms) * MS
        made.append(one)
    return made


def measures(*availability: float) -> list[PartitionMeasures]:
    return [
        PartitionMeasures(partition=number, sent=100, acknowledged=99, availability=share, longest_gap_s=1.0)
        for number, share in enumerate(availability)
    ]


@pytest.mark.parametrize(
    ("objectives", "window", "sentence"),
    [
        (NO_OBJECTIVES, sends(None, 9000), ""),
        (Objectives(ack_p99_s=0.5), sends(*[20] * 99, 501), ""),
        (Objectives(ack_p99_s=0.5), sends(*[500] * 99, None), ""),
        (
            Objectives(ack_p99_s=0.5),
            sends(*[20] * 98, 501, 600),
            "98.00% of 100 sends were acknowledged within 0.5 s; --max-ack-p99 demands 99%.",
        ),
        (
            Objectives(ack_p99_s=10),
            sends(*[20] * 60, *[None] * 40),
            "60.00% of 100 sends were acknowledged within 10 s; --max-ack-p99 demands 99%.",
        ),
        (Objectives(ack_p99_s=0.5), sends(), ""),
        (Objectives(read_p99_s=0.5), sends(20, None, reads_ms=[30, None]), ""),
        (
            Objectives(read_p99_s=0.5),
            sends(20, 20, reads_ms=[30, None]),
            "50.00% of 2 acknowledged records were given to a consumer within 0.5 s; --max-read-p99 demands 99%.",
        ),
        (
            Objectives(availability=0.999),
            sends(20),
            "Partition 1 was available for 95.0000% of the window; --min-availability demands 0.999 of it.",
        ),
        (Objectives(availability=0.95), sends(20), ""),
    ],
)
def test_a_window_misses_what_it_does_not_keep(objectives: Objectives, window: list[CanarySend], sentence: str) -> None:
    assert list(objectives.missed(window, measures(1.0, 0.95))) == ([sentence] if sentence else [])


def test_what_is_demanded_is_said() -> None:
    assert list(NO_OBJECTIVES.said()) == []
    [sentence] = Objectives(0.5, 2.0, 0.999).said()
    assert sentence == (
        "Objectives of every window: 99% of the acknowledgements within 0.5 s, 99% of the first deliveries within 2 s, "
        "every partition available for 0.999."
    )
