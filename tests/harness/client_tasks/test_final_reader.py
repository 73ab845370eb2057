"""The final read: every partition, four at a time, and none waits for one that cannot be read."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from harness.client_ports import Bounds, ClientContext, Isolation, OffsetForTime, Polled
from harness.client_properties import Access
from harness.client_tasks import final_reader
from harness.client_tasks.final_reader import FinalReader
from harness.clients.threaded_clients import ThreadedClients
from harness.clock import SystemClock
from harness.final_read import Unread
from harness.history.kept_recorder import KeptRecorder
from harness.history.recorder import PolledRecord, Sending
from harness.model import Offset, TopicPartition

PARTITIONS = [TopicPartition("ledger", number) for number in range(9)]
LEADERLESS = PARTITIONS[0]


class Empty:
    """A consumer of empty logs; that of LEADERLESS has no leader."""

    isolation: Isolation = "read_uncommitted"

    def __init__(self, positions: Mapping[TopicPartition, Offset]) -> None:
        self.positions = positions

    async def poll(self, max_records: int, timeout_s: float) -> Polled:
        return Polled([], None)

    async def bounds(self, partition: TopicPartition, timeout_s: float) -> Bounds | None:
        return None if partition == LEADERLESS else Bounds(0, 0)

    async def offset_for_time(self, partition: TopicPartition, timestamp_ms: int, timeout_s: float) -> OffsetForTime:
        return OffsetForTime(None)

    def close(self) -> None:
        pass


class OnEmptyLogs(ThreadedClients):
    """Clients whose consumers find nothing."""

    def consumer(self, name: str, positions: Mapping[TopicPartition, Offset], *_: object, **__: object) -> Empty:  # type: ignore[override]
        return Empty(positions)


@dataclass
class Growing:
    """A consumer of a log that the broker bounds at offset 2, and whose third record comes when it was asked often."""

    positions: dict[TopicPartition, Offset]
    comes_at: float
    isolation: Isolation = "read_uncommitted"
    polls: int = 0

    async def poll(self, max_records: int, timeout_s: float) -> Polled:
        time.sleep(0.01)  # noqa: ASYNC251 - a thread of ThreadedClients blocks
        self.polls += 1
        [where] = self.positions
        held = 3 if self.polls >= self.comes_at else 2
        records = [PolledRecord(*where, offset, offset, 0, True) for offset in range(self.positions[where], held)]
        self.positions[where] = held
        return Polled(records, None)

    async def bounds(self, partition: TopicPartition, timeout_s: float) -> Bounds | None:
        return Bounds(0, 2)

    async def offset_for_time(self, partition: TopicPartition, timestamp_ms: int, timeout_s: float) -> OffsetForTime:
        return OffsetForTime(None)

    def close(self) -> None:
        pass


LINGERING: tuple[Isolation, float] = ("read_uncommitted", 0.05)
COMMITTED: tuple[Isolation, float] = ("read_committed", 0.0)


@pytest.mark.parametrize(
    ("how", "acknowledged", "comes_at", "held"),
    [
        (LINGERING, 2, 0, 3),
        (LINGERING, 2, math.inf, 2),
        (LINGERING, 3, 30, 3),
        (LINGERING, 3, math.inf, 2),
        (LINGERING, 2, 30, 2),
        (COMMITTED, 3, 30, 3),
        (COMMITTED, 3, math.inf, 2),
        (COMMITTED, 2, 3, 2),
    ],
)
def test_what_was_acknowledged_and_does_not_come_is_asked_for_again_for_longer(
    how: tuple[Isolation, float], acknowledged: int, comes_at: float, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(final_reader, "LONGEST_LINGERING_S", 60.0 if held == acknowledged else 0.3)
    consumers: list[Growing] = []

    class OnOneLog(ThreadedClients):
        def consumer(self, name: str, positions: Mapping[TopicPartition, Offset], *_: object, **__: object) -> Growing:  # type: ignore[override]
            consumers.append(Growing(dict.fromkeys(positions, 0), comes_at))
            return consumers[-1]

    log = logging.getLogger("seawall.tests.clients")
    recorder = KeptRecorder("r", SystemClock())
    context = ClientContext(lambda: OnOneLog(Access("localhost:1"), log), PARTITIONS[:1], recorder, seed=1)
    for value in range(acknowledged):
        op = recorder.invoke_send(context.new_process(), Sending(*PARTITIONS[0], value))
        recorder.complete_send(op, "ok", value)
    isolation, lingers_s = how
    assert FinalReader(context, isolation, lingers_s).read(30)
    [consumer] = consumers
    assert consumer.positions == {PARTITIONS[0]: held}


def test_partitions_are_read_whichever_of_them_has_no_leader() -> None:
    log = logging.getLogger("seawall.tests.clients")
    context = ClientContext(
        lambda: OnEmptyLogs(Access("localhost:1"), log), PARTITIONS, KeptRecorder("r", SystemClock()), seed=1
    )
    reader = FinalReader(context)
    try:
        assert not reader.read(2 * final_reader._AFTER_FAILED_READ_S)
        assert reader.unread() == {LEADERLESS: Unread(begun=True)}
    finally:
        reader.stop()
