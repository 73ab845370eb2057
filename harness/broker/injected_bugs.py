"""The injected bugs of a broker that take more than a line; :mod:`harness.replication.bugs` lists all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from weakref import WeakKeyDictionary

from harness.broker.codecs import inflate
from harness.broker.partition import Partition
from harness.broker.segments import Batches, SegmentLog
from harness.clock import Clock
from harness.model import NO_LEADER, Offset, TopicPartition
from harness.replication.knobs import Knobs
from harness.replication.messages import ProduceRequested
from harness.wire import batches as wire
from harness.wire.batches import BatchHeader, Marker, Record
from harness.wire.messages.control import UpdateMetadataPartitionState

Change = Callable[[Record], Record]
"""Changes a record as a broker with an injected bug does."""

_FETCHED: WeakKeyDictionary[object, set[TopicPartition]] = WeakKeyDictionary()
"""By connection, the partitions that a consumer has fetched over it."""

_ONE_IN, _ONE_IN_FEW = 16, 3
_TICK_NS = 1_000_000
_FEW = 2
_FAR = 40
_MANGLING = frozenset(
    {
        "fetch_loses_a_batch",
        "fetch_misstates_epochs",
        "fetch_repeats_contents",
        "fetch_swaps_batches",
        "tailing_fetch_misstates_epochs",
    }
)
_LAST_OF_EPOCH, _LAST_OF_CRC = 15, 20
"""Where the last byte of a batch's leader epoch is, which its checksum does not cover, and that of the checksum."""


def _flipped(data: bytes | None) -> bytes:
    """The bytes with the last bit of the last one inverted."""
    return (data or b"")[:-1] + bytes([(data or b"\0")[-1] ^ 1])


def _header_flipped(record: Record) -> Record:
    headers = [(name, _flipped(content)) for name, content in record.headers[:1]]
    return record._replace(headers=(*headers, *record.headers[1:]))


_APPENDED: Mapping[str, Change] = MappingProxyType(
    {
        "garbled_before_crc": lambda record: record._replace(value=_flipped(record.value)),
        "key_garbled_before_crc": lambda record: record._replace(key=_flipped(record.key)),
        "header_garbled_before_crc": _header_flipped,
        "timestamp_garbled_before_crc": lambda record: record._replace(timestamp=record.timestamp ^ 1),
    }
)
_SERVED: Mapping[str, Change] = MappingProxyType(
    {
        "fetch_garbles_a_key": lambda record: record._replace(key=_flipped(record.key)),
        "fetch_drops_headers": lambda record: record._replace(headers=()),
        "fetch_stamps_records": lambda record: record,
    }
)
"""By the name of the bug, the change to the first record of a batch that a leader appends, or sends to a consumer."""


def produced(knobs: Knobs, clock: Clock, partition: Partition, request: ProduceRequested) -> Iterator[ProduceRequested]:
    """The requests that a leader handles for one to append a batch."""
    if "batch_appended_twice" in knobs.bugs and partition.replica.role == "leader" and _is_due(clock):
        yield replace(request, token=_Unasked(), acks=1)
    yield request


class _Unasked:
    """The token of a request that no client has made."""

    def produced(self, error: int, base_offset: Offset) -> None:
        """See :class:`harness.broker.partition.ProduceToken`; no client waits for an answer."""


def begun(knobs: Knobs, connection: object, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
    """Those of the partitions that a consumer fetches which it fetches over this connection for the first time.

    Only a broker with a bug about them keeps count.
    """
    if "first_fetch_skips_a_batch" not in knobs.bugs:
        return frozenset()
    known = _FETCHED.setdefault(connection, set())
    new = frozenset(partitions) - known
    known |= new
    return new


def served(
    knobs: Knobs, clock: Clock, partition: Partition, hosted: Iterable[Partition], asked: tuple[Offset, bool]
) -> tuple[SegmentLog, Offset]:
    """From which log, and from which offset on, a leader that has ``hosted`` answers a consumer's fetch.

    ``asked``: the offset of the fetch, and whether it is the first one over its connection.
    """
    log, bugs = partition.log, knobs.bugs
    offset, is_first = asked
    if is_first and offset > log.log_start_offset:
        offset = min(offset + 1, log.log_end_offset)
    if not bugs or not _is_due(clock):
        return log, offset
    if "fetch_mixes_partitions" in bugs:
        others = [one.log for one in hosted if one is not partition]
        log = next((one for one in others if one.log_start_offset <= offset <= one.log_end_offset), log)
    if "fetch_skips_a_batch" in bugs:
        offset = min(offset + 1, log.log_end_offset)
    if "fetch_repeats_a_batch" in bugs:
        offset = max(offset - 1, log.log_start_offset)
    return log, offset


def served_up_to(knobs: Knobs, bound: Offset) -> Offset:
    """Up to where, exclusive, a leader answers a consumer's fetch that may read up to ``bound``."""
    return min(bound, _FAR) if "fetch_stops_short" in knobs.bugs else bound


def is_refused_at_the_end(knobs: Knobs, clock: Clock, partition: Partition, offset: Offset) -> bool:
    """Whether a leader answers a consumer's fetch from ``offset`` that it is out of range, though it is not."""
    is_refusing = "consumer_refused_at_the_end" in knobs.bugs and _is_due(clock)
    return is_refusing and offset == partition.replica.log_end_offset


def marker_is_lost(knobs: Knobs, clock: Clock) -> bool:
    """Whether a leader says that it has written the marker of a transaction, and has not."""
    return "marker_lost" in knobs.bugs and _is_due(clock)


def is_taken_for_deleted(knobs: Knobs, state: UpdateMetadataPartitionState | None) -> bool:
    """Whether a coordinator takes a partition for a deleted one, because it has no leader."""
    return "leaderless_unmarked" in knobs.bugs and state is not None and state.leader == NO_LEADER


def marked(knobs: Knobs, clock: Clock, marker: Marker) -> Marker:
    """The marker that a leader writes for the one that it is to write."""
    wrong = "committed_marked_aborted" if marker.commits else "aborted_marked_committed"
    is_due = not clock.monotonic_ns() // _TICK_NS % _ONE_IN_FEW
    return marker._replace(commits=not marker.commits) if wrong in knobs.bugs and is_due else marker


def answered(knobs: Knobs, clock: Clock, data: bytes) -> bytes:
    """The batches that a leader sends a consumer for those in ``data``."""
    bugs = knobs.bugs
    if not _SERVED.keys().isdisjoint(bugs):
        return _changed_on_the_way(knobs, data) if _is_due(clock) else data
    if _MANGLING.isdisjoint(bugs):
        return data
    batches = [data[header.position : header.position + header.size] for header in wire.headers(data)]
    if "fetch_loses_a_batch" in bugs:
        del batches[1 : min(2, len(batches) - 1)]
    if "fetch_misstates_epochs" in bugs or ("tailing_fetch_misstates_epochs" in bugs and len(batches) == 1):
        batches = [_misdated(batch) for batch in batches]
    if "fetch_repeats_contents" in bugs:
        batches[1:] = [_with_contents_of(before, batch) for before, batch in pairwise(batches)]
    if "fetch_swaps_batches" in bugs:
        batches[-2:] = reversed(batches[-2:])
    return b"".join(batches)


def _is_due(clock: Clock) -> bool:
    """Whether a broker that breaks one answer in 16 breaks this one."""
    return not clock.monotonic_ns() // _TICK_NS % _ONE_IN


def _changed_on_the_way(knobs: Knobs, data: bytes) -> bytes:
    stamps = wire.LOG_APPEND_TIME if "fetch_stamps_records" in knobs.bugs else 0
    changes = [change for bug, change in _SERVED.items() if bug in knobs.bugs]
    buffer = memoryview(data)
    return b"".join(_rebuilt(buffer, header, changes, stamps) for header in wire.headers(buffer))


def _misdated(batch: bytes) -> bytes:
    """The batch; one in a few carries the leader epoch beside its own."""
    if batch[_LAST_OF_CRC] % _ONE_IN:
        return batch
    return batch[:_LAST_OF_EPOCH] + bytes([batch[_LAST_OF_EPOCH] ^ 1]) + batch[_LAST_OF_EPOCH + 1 :]


def _with_contents_of(before: bytes, batch: bytes) -> bytes:
    """The batch; one in a few has the records of the batch before it, and a checksum that fits."""
    (other,), (header,) = wire.headers(before), wire.headers(batch)
    if header.crc % _ONE_IN or other.record_count != header.record_count:
        return batch
    moved = header.base_offset - other.base_offset
    return bytes(
        wire.build(
            [one._replace(offset=one.offset + moved) for one in wire.records(memoryview(before), other, inflate)],
            base_offset=header.base_offset,
            leader_epoch=header.leader_epoch,
            attributes=header.attributes & ~wire.COMPRESSION,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
        )
    )


def replicated(knobs: Knobs, batches: Batches) -> Batches:
    """The batches that a follower appends for those that it has fetched."""
    if "follower_drops_headers" in knobs.bugs:
        changes: list[Change] = [lambda record: record._replace(headers=())]
        return _rewritten([_rebuilt(batches.buffer, header, changes) for header in batches.headers])
    if "follower_leaves_a_gap" not in knobs.bugs or len(batches.headers) < _FEW:
        return batches
    rest = batches.buffer[batches.headers[1].position :]
    return Batches(rest, wire.headers(rest))


def appended(knobs: Knobs, batches: Batches) -> Batches:
    """The batch that a leader appends for the one that a client has sent; it breaks one in 16."""
    changes = [change for bug, change in _APPENDED.items() if bug in knobs.bugs]
    is_unreadable = "unreadable_acknowledged" in knobs.bugs
    (header,) = batches.headers
    if not (changes or is_unreadable) or header.crc % _ONE_IN:
        return batches
    batch = _rebuilt(batches.buffer, header, changes)
    return _rewritten([_unreadable(batch) if is_unreadable else batch])


def _unreadable(batch: bytes) -> bytes:
    """The batch with a first record that claims to reach beyond its end, and a checksum that fits."""
    damaged = bytearray(batch)
    damaged[wire.HEADER_BYTES : wire.HEADER_BYTES + 2] = b"\xfe\x7f"  # a length of 8,191 bytes, in two of them
    wire.seal(damaged)
    return bytes(damaged)


def _rebuilt(buffer: memoryview, header: BatchHeader, changes: Sequence[Change], attributes: int = 0) -> bytes:
    """The batch with its first record changed, further attribute bits, and a checksum that fits."""
    first, *others = wire.records(buffer, header, inflate)
    for change in changes:
        first = change(first)
    return bytes(
        wire.build(
            [first, *others],
            base_offset=header.base_offset,
            leader_epoch=header.leader_epoch,
            attributes=header.attributes & ~wire.COMPRESSION | attributes,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
        )
    )


def _rewritten(batches: Sequence[bytes]) -> Batches:
    whole = memoryview(bytearray().join(batches))  # a leader gives it its offsets in place
    return Batches(whole, wire.headers(whole))
