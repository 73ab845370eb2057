"""The final read: every partition, four at a time, and none waits for one that cannot be read."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from harness.client_ports import Bounds, ClientContext, Isolation, OffsetForTime, Polled
from harness.client_properties import Access
from harness.client_tasks import final_reader
from harness.client_tasks.final_reader import FinalReader
from harness.clients.threaded_clients import ThreadedClients
from harness.clock import SystemClock
from harness.final_read import Unread
from harness.history.kept_recorder import KeptRecorder
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
