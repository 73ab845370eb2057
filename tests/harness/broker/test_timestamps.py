"""Records from the future."""

from __future__ import annotations

import pytest

from harness.error_codes import ErrorCode
from harness.wire.keys import ApiKey
from tests.harness.broker.raw_client import batch, produce_request
from tests.harness.broker.virtual_cluster import VirtualCluster


def appended(cluster: VirtualCluster, ahead_ms: int) -> tuple[int, int]:
    """A batch whose last record is ``ahead_ms`` ahead of the leader's clock: the error, and where it went."""
    records = batch(b"a", b"b", timestamp_ms=cluster.node(0).clock.wall_ms() + ahead_ms)
    (answer,) = cluster.call(0, ApiKey.PRODUCE, 9, produce_request("t", records))
    (response,) = answer.responses[0].partition_responses
    return response.error_code, response.base_offset


@pytest.mark.parametrize("ahead_ms", [-1_000_000, 0, 3_000])
def test_a_record_that_is_ahead_by_less_than_the_limit_is_taken(ahead_ms: int) -> None:
    cluster = VirtualCluster("4.1", log_message_timestamp_after_max_ms=5_000)
    cluster.create_topic()
    assert appended(cluster, ahead_ms) == (ErrorCode.NONE, 0)


def test_a_batch_that_is_ahead_by_more_than_the_limit_is_refused_and_nothing_of_it_is_appended() -> None:
    cluster = VirtualCluster("4.1", log_message_timestamp_after_max_ms=5_000)
    cluster.create_topic()
    assert appended(cluster, 60_000) == (ErrorCode.INVALID_TIMESTAMP, -1)
    assert appended(cluster, 0) == (ErrorCode.NONE, 0)


def test_there_is_no_limit_unless_one_is_set() -> None:
    cluster = VirtualCluster("3.7")
    cluster.create_topic()
    assert appended(cluster, 10 * 365 * 86_400_000) == (ErrorCode.NONE, 0)
