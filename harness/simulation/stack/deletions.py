"""Deletes records on the whole broker: by retention, or because a client has asked for it."""

from __future__ import annotations

from typing import cast

from harness.error_codes import ErrorCode
from harness.history.delete_records_log import GAVE_UP, LOST, DeleteRecordsLog
from harness.model import Offset
from harness.simulation.core.configuration import PARTITION
from harness.simulation.stack.cluster import Request
from harness.simulation.stack.observed_cluster import ObservedCluster
from harness.simulation.stack.observed_nodes import ObservedNode
from harness.wire.declaration import Message
from harness.wire.keys import ApiKey
from harness.wire.messages.operators import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)

_DELETE_RECORDS_VERSION = 2
_FRAMES = 8
"""More frames than it takes to connect, to introduce oneself, to ask and to be answered."""


class Deletions:
    """See the module.

    Args:
        cluster: whose records they are.
        orders: records what clients ask for.
    """

    def __init__(self, cluster: ObservedCluster, orders: DeleteRecordsLog) -> None:
        self._cluster = cluster
        self._orders = orders

    def retire(self, broker: ObservedNode, percent: int) -> None:
        """As if a broker's oldest batches had reached ``log.retention.ms``."""
        disk = broker.disk
        batches = disk.batches[len(disk.batches) * percent // 100 :]
        broker.retire(batches[0].span.base_offset if batches else disk.end)

    def order(self, broker: ObservedNode, percent: int) -> None:
        """Ask a leader to delete that much of what is committed."""
        replica, start = broker.replica, broker.disk.start
        assert replica is not None
        self._order(broker, start + (replica.high_watermark - start) * percent // 100)

    def _order(self, broker: ObservedNode, before: Offset) -> None:
        """A client asks for the deletion, and waits as long as the leader may, and its frames may be on their way."""
        cluster, drawn, orders = self._cluster, self._cluster.configuration, self._orders
        wait_ms = drawn.send_timeout_ms
        slowest_us = (drawn.delay_us + drawn.spread_us) * (drawn.late_factor if drawn.late else 1)
        topic = DeleteRecordsTopic(PARTITION.topic, [DeleteRecordsPartition(PARTITION.partition, before)])
        asked = DeleteRecordsRequest([topic], wait_ms)
        request = Request(
            ApiKey.DELETE_RECORDS, _DELETE_RECORDS_VERSION, asked, wait_ms / 1e3 + _FRAMES * slowest_us / 1e6
        )
        order = orders.sent(PARTITION, before, wait_ms, broker.node)
        given_up_ns = cluster.now_ns + round(request.timeout_s * 1e9)

        def answered(answer: Message | None) -> None:
            if answer is None:
                orders.ended(order, GAVE_UP if cluster.now_ns >= given_up_ns else LOST)
            else:
                part = cast("DeleteRecordsResponse", answer).topics[0].partitions[0]
                orders.ended(order, ErrorCode(part.error_code).name if part.error_code else None, part.low_watermark)
            caller.close()

        caller = cluster.simulated.call(broker.simulated.name, request, answered)
