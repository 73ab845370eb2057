from __future__ import annotations

from itertools import starmap

from harness.wire.batches import build, headers
from harness.wire.frames import ApiKey, encode_response
from harness.wire.messages.metadata import MetadataResponse, MetadataResponseTopic
from harness.wire.messages.shares import (
    AcknowledgedPartition,
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    AcquiredRecords,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
    ShareFetchableTopicResponse,
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchTopic,
    SharePartitionData,
)
from harness.wire.parts import Part
from harness.wire.summary import Summaries
from tests.harness.wire.test_summary import exchanged

TOPIC_ID = bytes(range(16))
BATCHES = [build([b"a"] * 5, base_offset=20), build([b"b"] * 2, base_offset=26)]
"""Offsets 20 to 24, and 26 and 27."""


def acquainted() -> Summaries:
    """Has seen what the topic is called."""
    summaries = Summaries()
    metadata = MetadataResponse(topics=[MetadataResponseTopic(0, "ledger", TOPIC_ID)])
    summaries.response("METADATA", 12, b"".join(encode_response(ApiKey.METADATA, 12, 1, metadata)))
    return summaries


def fetch(*said: AcknowledgementBatch) -> ShareFetchRequest:
    return ShareFetchRequest("g", "m", 1, topics=[ShareFetchTopic(TOPIC_ID, [ShareFetchPartition(3, [*said])])])


def fetched(*acquired: tuple[int, int, int], error: int = 0, refusal: int = 0) -> ShareFetchResponse:
    data = SharePartitionData(3, error, acknowledge_error_code=refusal, records=b"".join(map(bytes, BATCHES)))
    data.acquired_records = [*starmap(AcquiredRecords, acquired)]
    return ShareFetchResponse(responses=[ShareFetchableTopicResponse(TOPIC_ID, [data])])


def acknowledged(rows: list[Part]) -> list[tuple[str, int, int]]:
    return [
        (row["acknowledgement"], row["base_offset"], row["end_offset"]) for row in rows if row.get("acknowledgement")
    ]


def test_what_is_acquired_is_not_told_from_what_its_batch_holds_besides() -> None:
    rows = exchanged(fetch(), fetched((21, 22, 1), (24, 26, 2)), 2, acquainted())
    first, second = (headers(batch)[0].crc for batch in BATCHES)
    found = [(row["base_offset"], row["end_offset"], row["delivery_count"], row.get("batch_crc")) for row in rows]
    assert found == [(21, 23, 1, first), (24, 25, 2, first), (25, 26, 2, None), (26, 27, 2, second)]
    assert {(row["group"], row["topic"], row["partition"], row["error"]) for row in rows} == {("g", "ledger", 3, 0)}


def test_what_a_fetch_acknowledges_is_mixed_up_with_what_it_is_given() -> None:
    said = [AcknowledgementBatch(10, 12, [1]), AcknowledgementBatch(13, 16, [2, 2, 0, 3])]
    rows = exchanged(fetch(*said), fetched((21, 22, 1), (24, 24, 1), refusal=121), 2, acquainted())
    kinds = [("accept", 10, 13), ("release", 13, 15), ("gap", 15, 16), ("reject", 16, 17)]
    assert acknowledged(rows) == kinds
    given = [row for row in rows if "delivery_count" in row]
    assert [(row["base_offset"], row["end_offset"]) for row in given] == [(21, 23), (24, 25)]
    assert {row["acknowledge_error"] for row in rows} == {121}
    assert {row["error"] for row in rows} == {0}


def test_a_session_that_is_not_known_hides_what_was_acknowledged() -> None:
    rows = exchanged(fetch(AcknowledgementBatch(10, 12, [1])), ShareFetchResponse(error_code=122), 2, acquainted())
    assert acknowledged(rows) == [("accept", 10, 13)]
    assert {(row["error"], row.get("acknowledge_error")) for row in rows} == {(122, None)}


def test_a_partition_of_the_session_that_the_request_does_not_name_is_of_no_group() -> None:
    (row,) = exchanged(ShareFetchRequest("g", "m", 2), fetched((20, 24, 1)), 1, acquainted())
    assert (row["group"], row["topic"], row["base_offset"], row["end_offset"]) == ("g", "ledger", 20, 25)


def test_an_acknowledgement_alone_lacks_its_answer() -> None:
    partition = AcknowledgePartition(3, [AcknowledgementBatch(10, 11, [1]), AcknowledgementBatch(12, 12, [4])])
    asked = ShareAcknowledgeRequest("g", "m", 1, topics=[AcknowledgeTopic(TOPIC_ID, [partition])])
    told = ShareAcknowledgeTopicResponse(TOPIC_ID, [AcknowledgedPartition(3, 0)])
    rows = exchanged(asked, ShareAcknowledgeResponse(responses=[told]), 2, acquainted())
    assert acknowledged(rows) == [("accept", 10, 12), ("renew", 12, 13)]
    assert {(row["group"], row["topic"], row["acknowledge_error"]) for row in rows} == {("g", "ledger", 0)}


def test_offsets_that_no_table_could_hold_end_a_tap() -> None:
    said = [AcknowledgementBatch(-5, 2**63 - 1, [1]), AcknowledgementBatch(2**63 - 1, 0, [9, 9])]
    rows = exchanged(fetch(*said), fetched((-3, 2**63 - 1, 1)), 2, acquainted())
    spans = [row[name] for row in rows for name in ("base_offset", "end_offset") if name in row]
    assert all(0 <= one < 2**63 for one in spans)
