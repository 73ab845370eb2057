"""Offsets that are committed in a transaction, before and after KIP-447, in a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from harness.coordination.ports import ProducerIdentity
from harness.error_codes import ErrorCode
from harness.wire.keys import ApiKey
from harness.wire.messages.api_versions import ApiVersionsRequest
from harness.wire.messages.consumers import OffsetFetchRequest, OffsetFetchRequestTopic
from harness.wire.messages.coordination import FindCoordinatorRequest, InitProducerIdRequest
from harness.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.harness.broker.virtual_cluster import VirtualCluster

OLD, NEW = "unfenced", "fenced"
_GROUP, _TRANSACTION = 0, 1


class Pipeline:
    """A producer in a transaction that commits offsets of the group ``g``."""

    def __init__(self, knob: str) -> None:
        self.cluster = VirtualCluster("3.7", {"transactional_offsets": knob})
        self.cluster.create_topic()
        self.coordinator, self.group = self.found(_TRANSACTION), self.found(_GROUP)
        answer = self.ask(self.coordinator, ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest("g", 60_000))
        self.identity = ProducerIdentity(answer.producer_id, answer.producer_epoch)

    def found(self, kind: int) -> int:
        for _ in range(2):  # its topic is created when it is first asked for
            answer = self.ask(1, ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest("g", kind))
            self.cluster.world.sleep(2)
        return int(answer.node_id)

    def ask(self, node: int, key: ApiKey, version: int, body: Any) -> Any:
        answers = self.cluster.call(node, key, version, body)
        self.cluster.world.sleep(1)
        (answer,) = answers
        return answer

    def commit(self, version: int, offset: int, generation: int = -1, member: str = "") -> int | None:
        """The error; None: the broker has hung up."""
        self.ask(self.coordinator, ApiKey.ADD_OFFSETS_TO_TXN, 3, AddOffsetsToTxnRequest("g", *self.identity, "g"))
        topics = [TxnOffsetCommitRequestTopic("t", [TxnOffsetCommitRequestPartition(0, offset, 3, "")])]
        body = TxnOffsetCommitRequest("g", "g", *self.identity, generation, member, None, topics)
        answer = self.ask(self.group, ApiKey.TXN_OFFSET_COMMIT, version, body)
        return None if answer is None else int(answer.topics[0].partitions[0].error_code)

    def end(self) -> None:
        self.ask(self.coordinator, ApiKey.END_TXN, 3, EndTxnRequest("g", *self.identity, committed=True))

    def committed(self, version: int, *, stable: bool) -> tuple[int, int] | None:
        """The offset and the error; None: the broker has hung up."""
        body = OffsetFetchRequest("g", [OffsetFetchRequestTopic("t", [0])], require_stable=stable)
        answer = self.ask(self.group, ApiKey.OFFSET_FETCH, version, body)
        if answer is None:
            return None
        (one,) = answer.topics[0].partitions
        return one.committed_offset, one.error_code


@pytest.mark.parametrize(("knob", "newest"), [(OLD, (6, 2)), (NEW, (8, 4))])
def test_a_broker_advertises_the_versions_of_its_generation(knob: str, newest: tuple[int, int]) -> None:
    cluster = VirtualCluster("3.7", {"transactional_offsets": knob})
    (answer,) = cluster.call(0, ApiKey.API_VERSIONS, 3, ApiVersionsRequest("test", "1"))
    versions = {one.api_key: one.max_version for one in answer.api_keys}
    assert (versions[ApiKey.OFFSET_FETCH], versions[ApiKey.TXN_OFFSET_COMMIT]) == newest


@pytest.mark.parametrize(("knob", "error"), [(OLD, None), (NEW, ErrorCode.ILLEGAL_GENERATION)])
def test_a_member_that_the_group_does_not_have_cannot_commit_in_a_transaction_since_kip_447(
    knob: str, error: int | None
) -> None:
    assert Pipeline(knob).commit(3, 5, generation=7, member="gone") == error


@pytest.mark.parametrize("knob", [OLD, NEW])
def test_a_producer_that_does_not_say_its_member_is_not_fenced(knob: str) -> None:
    pipeline = Pipeline(knob)
    assert pipeline.commit(2, 5) == 0
    pipeline.end()
    assert pipeline.committed(6, stable=False) == (5, 0)


@pytest.mark.parametrize(("knob", "found"), [(OLD, None), (NEW, (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT))])
def test_a_reader_of_stable_offsets_waits_for_an_open_transaction_since_kip_447(
    knob: str, found: tuple[int, int] | None
) -> None:
    pipeline = Pipeline(knob)
    assert pipeline.commit(2, 5) == 0
    assert pipeline.committed(6, stable=False) == (-1, 0)
    assert pipeline.committed(7, stable=True) == found
