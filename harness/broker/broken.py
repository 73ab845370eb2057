"""What a broker with a switched bug does where that takes more than a line; see :mod:`harness.replication.bugs`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from harness.broker.segments import Batches
from harness.model import Offset
from harness.replication.messages import ErrorCode
from harness.wire import batches as wire
from harness.wire.batches import BatchHeader

if TYPE_CHECKING:
    from harness.broker.broker import Broker
    from harness.broker.consumer_offsets import CommittedOffset
    from harness.broker.partition import Partition, ProduceToken
    from harness.broker.segments import SegmentLog
    from harness.model import TopicPartition
    from harness.replication.knobs import Knobs
    from harness.replication.messages import ProduceRequested

_ONE_IN = 16
_TICK_NS = 1_000_000
_FEW = 2
_MANGLING = frozenset({"fetch_loses_a_batch", "fetch_swaps_batches"})


def produced(broker: Broker, partition: Partition, request: ProduceRequested) -> Iterator[ProduceRequested]:
    """What a leader does with a request to append one batch; none: it says that it has."""
    bugs = broker.knobs.bugs
    if not bugs or partition.replica.role != "leader" or broker.clock.monotonic_ns() // _TICK_NS % _ONE_IN:
        yield request
    elif "acks_1_not_appended" in bugs and request.acks == 1:
        cast("ProduceToken", request.token).produced(ErrorCode.NONE, partition.log.log_end_offset)
    else:
        if "batch_appended_twice" in bugs:
            yield replace(request, token=_Unasked(), acks=1)
        yield request


class _Unasked:
    """The token of a request that no client has made."""

    def produced(self, error: int, base_offset: Offset) -> None:
        """See :class:`harness.broker.partition.ProduceToken`; there is nobody to answer."""


def served(broker: Broker, partition: Partition, offset: Offset) -> tuple[SegmentLog, Offset]:
    """From which log, and from which offset on, a consumer's fetch is answered."""
    log, bugs = partition.log, broker.knobs.bugs
    if not bugs or broker.clock.monotonic_ns() // _TICK_NS % _ONE_IN:
        return log, offset
    if "fetch_mixes_partitions" in bugs:
        others = [one.log for one in broker.partitions.values() if one is not partition]
        log = next((one for one in others if one.log_start_offset <= offset <= one.log_end_offset), log)
    if "fetch_skips_a_batch" in bugs:
        offset = min(offset + 1, log.log_end_offset)
    if "fetch_repeats_a_batch" in bugs:
        offset = max(offset - 1, log.log_start_offset)
    return log, offset


def answered(broker: Broker, data: bytes) -> bytes:
    """What a consumer is given of the batches in ``data``."""
    bugs = broker.knobs.bugs
    if _MANGLING.isdisjoint(bugs):
        return data
    batches = [data[header.position : header.position + header.size] for header in wire.headers(data)]
    if "fetch_loses_a_batch" in bugs:
        del batches[1 : min(2, len(batches) - 1)]
    if "fetch_swaps_batches" in bugs:
        batches[-2:] = reversed(batches[-2:])
    return b"".join(batches)


def replicated(batches: Batches) -> Batches:
    """What a follower appends of the batches that it has fetched, when it leaves a gap."""
    if len(batches.headers) < _FEW:
        return batches
    rest = batches.buffer[batches.headers[1].position :]
    return Batches(rest, wire.headers(rest))


def kept(knobs: Knobs, offsets: dict[TopicPartition, CommittedOffset]) -> dict[TopicPartition, CommittedOffset]:
    """What the controller keeps of the ``offsets`` that a group commits."""
    if "commit_forgotten" in knobs.bugs:
        return {}
    if "commits_swapped" in knobs.bugs:
        return dict(zip(offsets, reversed(offsets.values()), strict=True))
    return offsets


def garble(buffer: memoryview, header: BatchHeader) -> None:
    """Change the last byte of one record's value in a few batches, and make the checksum fit."""
    if header.crc % _ONE_IN == 0:
        buffer[header.position + header.size - 2] ^= 1
        wire.seal(buffer[header.position : header.position + header.size])
