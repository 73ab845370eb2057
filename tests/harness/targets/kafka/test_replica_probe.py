"""What is seen of a replica was true in one epoch, or nothing is said of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.clients.conversation import Conversation
from harness.model import NodeId, TopicPartition
from harness.targets.kafka.replica_probe import ReplicaProbe
from harness.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from harness.wire.messages.offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LEDGER = TopicPartition("ledger", 0)


def seen_while(epoch: Callable[[int], int], monkeypatch: pytest.MonkeyPatch) -> object:
    """What is seen of a replica that names, when it is asked for the nth time, this epoch."""
    asked: list[object] = []

    def ask(_: Conversation, request: object, *rest: object) -> object:
        asked.append(request)
        if isinstance(request, ListOffsetsRequest):
            one = ListOffsetsPartitionResponse(0, 0, offset=21, leader_epoch=epoch(len(asked)))
            return ListOffsetsResponse(topics=[ListOffsetsTopicResponse("ledger", [one])])
        data = PartitionData(0, 0, high_watermark=21, log_start_offset=0)
        return FetchResponse(responses=[FetchableTopicResponse("ledger", partitions=[data])])

    monkeypatch.setattr(Conversation, "ask", ask)
    monkeypatch.setattr(Conversation, "version", lambda *_: 12)
    return ReplicaProbe(NodeId(0), ("127.0.0.1", 1), 1.0, None).look([LEDGER]).get(LEDGER)


def test_a_replica_that_gets_its_first_epoch_while_it_is_looked_at_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seen_while(lambda times: -1 if times == 1 else 3, monkeypatch) is None


@pytest.mark.parametrize("epoch", [-1, 3])
def test_a_replica_whose_epoch_stays_is_seen(epoch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert seen_while(lambda _: epoch, monkeypatch) is not None
