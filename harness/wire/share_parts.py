"""Summarises what share groups fetch and acknowledge (KIP-932), for :mod:`harness.wire.summary`.

A ShareFetch request has a part for each partition that it names, and, as a ShareAcknowledge has, one for each run of
offsets of which it says the same. A ShareFetch response has one for each run of acquired offsets that are in one batch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import groupby
from types import MappingProxyType
from typing import Any

from harness.wire.messages.shares import (
    AcknowledgementBatch,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
    SharePartitionData,
)
from harness.wire.parts import Names, Part, batch_headers, known

_MOST_END = 2**63 - 1
_TYPES = MappingProxyType({0: "gap", 1: "accept", 2: "release", 3: "reject", 4: "renew"})


def fetch_request(body: ShareFetchRequest, names: Names) -> Iterator[Part]:
    """A part for each partition to fetch, and for each run of offsets that is acknowledged."""
    if not body.topics:
        yield {"group": body.group_id}
    for place, one in _placed(body.topics, names):
        yield {"group": body.group_id, **place}
        yield from _acknowledged({"group": body.group_id, **place}, one.acknowledgement_batches)


def fetch_response(body: ShareFetchResponse, names: Names) -> Iterator[Part]:
    """A part for each run of acquired offsets, or one for a partition of which nothing was acquired."""
    if body.error_code or not body.responses:
        yield {"error": body.error_code}
    for place, one in _placed(body.responses, names):
        common = {**place, "error": one.error_code, "acknowledge_error": one.acknowledge_error_code}
        for run in [*_acquired(one)] or [{}]:
            yield {**common, **run}


def acknowledge_request(body: ShareAcknowledgeRequest, names: Names) -> Iterator[Part]:
    """A part for each run of offsets that is acknowledged."""
    if not any(one.acknowledgement_batches for topic in body.topics for one in topic.partitions):
        yield {"group": body.group_id}
    for place, one in _placed(body.topics, names):
        yield from _acknowledged({"group": body.group_id, **place}, one.acknowledgement_batches)


def acknowledge_response(body: ShareAcknowledgeResponse, names: Names) -> Iterator[Part]:
    """A part for each partition."""
    if body.error_code or not body.responses:
        yield {"error": body.error_code}
    for place, one in _placed(body.responses, names):
        yield {**place, "acknowledge_error": one.error_code}


def _placed(topics: Iterable[Any], names: Names) -> Iterator[tuple[Part, Any]]:
    """What a message says of each partition, and the columns that name it."""
    for topic in topics:
        for one in topic.partitions:
            yield {"topic": names.get(topic.topic_id), "partition": one.partition_index}, one


def _acknowledged(common: Part, batches: Iterable[AcknowledgementBatch]) -> Iterator[Part]:
    for batch in batches:
        for number, at, end in _runs(batch):
            yield {**common, "acknowledgement": _TYPES.get(number, str(number)), **_span(at, end)}


def _runs(batch: AcknowledgementBatch) -> Iterator[tuple[int, int, int]]:
    """A type, and the offsets of which it is said: exclusive at the end. One type stands for the whole batch."""
    at = batch.first_offset
    if len(batch.acknowledge_types) == 1:
        yield batch.acknowledge_types[0], at, batch.last_offset + 1
        return
    for number, run in groupby(batch.acknowledge_types):
        end = at + len([*run])
        yield number, at, end
        at = end


def _acquired(data: SharePartitionData) -> Iterator[Part]:
    """Offsets that were acquired and are in no batch, for they have no record, are in parts without a batch."""
    batches = [*batch_headers(data.records)]
    ends = [header.end_offset for header in batches]
    for run in data.acquired_records:
        at, end, count = run.first_offset, run.last_offset + 1, {"delivery_count": run.delivery_count}
        for position in range(bisect_right(ends, at), len(batches)):
            header = batches[position]
            first, last = max(at, header.base_offset), min(end, header.end_offset)
            if first >= last:
                break
            if at < first:
                yield {**count, **_span(at, first)}
            which = {"batch": position, "batch_crc": header.crc, "leader_epoch": known(header.leader_epoch)}
            yield {**count, **_span(first, last), **which}
            at = last
        if at < end:
            yield {**count, **_span(at, end)}


def _span(at: int, end: int) -> Part:
    return {"base_offset": known(at), "end_offset": known(min(end, _MOST_END))}
